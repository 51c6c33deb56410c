// Conditioning on an atom (Definition 3, Algorithm 1, Lemma 4): b and the variance are set; shown
// are the kept draws, the density of the valuation, and the acceptance rate.
(() => {
  const { mixture, number, percent, random, range } = Moving;
  const DRAWS = 800;

  const normal = (x, mean, variance) =>
    Math.exp(-((x - mean) ** 2) / (2 * variance)) / Math.sqrt(2 * Math.PI * variance);
  // The valuation under the base: a mixture in one dimension.
  const valuation = ({ weights, means, covariances, atom: [p, q] }) =>
    weights.map((weight, k) => {
      const [[a, b], [, c]] = covariances[k];
      return { weight, mean: p * means[k][0] + q * means[k][1], variance: p * p * a + 2 * p * q * b + q * q * c };
    });
  const density = (parts, x) => parts.reduce((sum, { weight, mean, variance }) => sum + weight * normal(x, mean, variance), 0);
  // Lemma 4 for Gaussian q: N_C / M, where M is the largest value of q.
  const rate = (base, b, noise) =>
    Math.sqrt(2 * Math.PI * noise) * density(base.map((part) => ({ ...part, variance: part.variance + noise })), b);
  // The valuation under the concept conditional distribution, exactly.
  const conditional = (base, b, noise) => {
    const parts = base.map(({ weight, mean, variance }) => ({
      weight: weight * normal(b, mean, variance + noise),
      mean: mean + (variance / (variance + noise)) * (b - mean),
      variance: (variance * noise) / (variance + noise),
    }));
    const total = parts.reduce((sum, part) => sum + part.weight, 0);
    return parts.map((part) => ({ ...part, weight: part.weight / total }));
  };
  const mean = (parts) => parts.reduce((sum, part) => sum + part.weight * part.mean, 0);
  // Kullback-Leibler divergence of the conditional from the base, in nats.
  const information = (base, b, noise) => {
    const misses = conditional(base, b, noise).reduce(
      (sum, part) => sum + part.weight * ((part.mean - b) ** 2 + part.variance), 0);
    return -misses / (2 * noise) - Math.log(rate(base, b, noise));
  };
  // Algorithm 1: a draw and its number u; the same draws for all b and variances.
  const keeps = (value, b, noise, u) => Math.exp(-((value - b) ** 2) / (2 * noise)) >= u;
  const draws = (data) => {
    const uniform = random(3);
    return mixture(data, DRAWS, uniform).map((z) => ({
      z, u: uniform(), value: data.atom[0] * z[0] + data.atom[1] * z[1],
    }));
  };
  const kept = (data, b, noise) => draws(data).filter(({ value, u }) => keeps(value, b, noise, u));

  Moving.define("conditioning", {
    maths: { valuation, density, rate, conditional, mean, information, kept },
    controls: [
      { name: "b", label: "requested valuation b", min: -2, max: 2, step: 0.05, value: 0.4, say: (b) => number(b) },
      { name: "noise", label: "variance σ² of the noise", min: -3, max: 0.5, step: 0.05, value: -1.3,
        say: (power) => (10 ** power).toPrecision(2) },
    ],
    panels: [
      { title: "Latent space", x: [-1.9, 1.9], y: [-1.9, 1.9], xLabel: "z₁", yLabel: "z₂", width: 300, height: 262 },
      { title: "Valuation", x: [-2.2, 2.2], y: [0, 1], xLabel: "valuation ⟨a, z⟩", yLabel: "density", width: 300, height: 262 },
      { title: "Acceptance rate", x: [-2.2, 2.2], y: [0, 1], xLabel: "requested valuation b", yLabel: "share kept", width: 300, height: 262 },
    ],
    legend: [
      ["dot", "grey", "base"],
      ["triangle", "a", "kept"],
      ["line", "b", "⟨a, z⟩ = b"],
      ["line", "grey dashed", "base density"],
      ["area", "b", "chance to be kept"],
      ["line", "a", "density of what is kept, exact"],
    ],
    draw({ b, noise: power }, [plane, valuations, rates], data) {
      const noise = 10 ** power;
      const base = valuation(data);
      const after = conditional(base, b, noise);
      const chosen = kept(data, b, noise);

      plane.start();
      plane.marks(draws(data).map(({ z }) => z), "grey faint", "dot", 1.5);
      plane.marks(chosen.map(({ z }) => z), "a", "triangle", 2.2);
      const [p, q] = data.atom;
      plane.line([-3, 3].map((z) => [z, (b - p * z) / q]), "b");

      const grid = range(-2.2, 2.2, 401);
      const curve = grid.map((v) => [v, density(after, v)]);
      valuations.start({ y: [0, 1.1 * Math.max(1, ...curve.map(([, d]) => d))] });
      valuations.area([...grid.map((v) => [v, Math.exp(-((v - b) ** 2) / (2 * noise))]), [2.2, 0], [-2.2, 0]], "b");
      valuations.line(grid.map((v) => [v, density(base, v)]), "grey dashed");
      valuations.line(curve, "a");
      valuations.line([[b, 0], [b, 99]], "b");

      const predicted = grid.map((v) => [v, rate(base, v, noise)]);
      rates.start({ y: [0, 1.15 * Math.max(...predicted.map(([, r]) => r))] });
      rates.line(predicted, "ink");
      const here = rate(base, b, noise);
      rates.line([[b, 0], [b, here]], "b");
      rates.marks([[b, here]], "b", "dot", 5);

      const cost = 1 / here;
      return `Kept ${chosen.length} of ${DRAWS} draws; Lemma 4 predicts ${percent(here)}, ` +
        `or ${cost < 1e4 ? number(cost, cost < 10 ? 1 : 0) : cost.toExponential(0).replace("e+", " · 10^")} draws per kept sample. ` +
        `Mean valuation of what is kept: ${number(mean(after))}, requested: ${number(b)}. ` +
        `Information per sample: ${number(information(base, b, noise))} nats.`;
    },
  });
})();
