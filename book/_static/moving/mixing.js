// Level lines of two atoms in latent, observed and learned space, at a strength of the mixing. What
// is learned is either the exact recovery, up to the freedom of Definition 4, or the affine map of
// the observations that fits the valuations best.
(() => {
  const { mixture, number, percent, random, range } = Moving;
  const BASE = {
    weights: [0.35, 0.35, 0.3], means: [[-0.9, -0.4], [0.8, 0.7], [0.5, -0.9]],
    covariances: [0, 1, 2].map(() => [[0.08, 0], [0, 0.08]]),
  };
  const WAVE = 1.6;

  const valuations = ([x, y], atoms) => atoms.map(([p, q]) => p * x + q * y);
  // Two shears and a quarter of a right angle: invertible at every strength, linear at zero.
  const [cosine, sine] = [Math.cos(Math.PI / 8), Math.sin(Math.PI / 8)];
  const mix = ([x, y], strength) => {
    const u = x + strength * Math.sin(WAVE * y);
    const v = y + strength * Math.sin(WAVE * u);
    return [cosine * u - sine * v, sine * u + cosine * v];
  };
  const unmix = ([s, t], strength) => {
    const [u, v] = [cosine * s + sine * t, cosine * t - sine * s];
    const y = v - strength * Math.sin(WAVE * u);
    return [u - strength * Math.sin(WAVE * y), y];
  };
  const points = mixture(BASE, 500, random(7));

  // Least squares of a target on (1, s, t), by Cramer's rule.
  const det = ([a, b, c]) =>
    a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) + c[0] * (a[1] * b[2] - a[2] * b[1]);
  const fit = (rows, targets) => {
    const full = rows.map(([s, t]) => [1, s, t]);
    const columns = [0, 1, 2].map((i) => [0, 1, 2].map((j) => full.reduce((sum, row) => sum + row[i] * row[j], 0)));
    const right = [0, 1, 2].map((j) => full.reduce((sum, row, k) => sum + row[j] * targets[k], 0));
    return [0, 1, 2].map((i) => det(columns.map((column, k) => (k === i ? right : column))) / det(columns));
  };
  // The best affine map of the observations, and its R² for each atom.
  const affine = (strength, atoms) => {
    const seen = points.map((z) => mix(z, strength));
    const truth = points.map((z) => valuations(z, atoms));
    return atoms.map((_, k) => {
      const targets = truth.map((row) => row[k]);
      const weights = fit(seen, targets);
      const mean = targets.reduce((sum, v) => sum + v, 0) / targets.length;
      const left = targets.reduce((sum, v, i) => sum + (v - weights[0] - weights[1] * seen[i][0] - weights[2] * seen[i][1]) ** 2, 0);
      const all = targets.reduce((sum, v) => sum + (v - mean) ** 2, 0);
      return { weights, r2: 1 - left / all };
    });
  };
  // The exact recovery: the valuations in the other order, with units, signs and zeros of its own.
  const exact = (x, strength, atoms) => {
    const [first, second] = valuations(unmix(x, strength), atoms);
    return [0.9 * second - 0.3, 0.4 - 1.2 * first];
  };

  Moving.define("mixing", {
    maths: { valuations, mix, unmix, points, affine, exact },
    controls: [
      { name: "strength", label: "strength of the mixing", min: 0, max: 1, step: 0.05, value: 0.5, say: (s) => number(s) },
      { name: "learner", label: "what is learned", value: "exact",
        options: { exact: "exact recovery", affine: "best affine map" } },
    ],
    panels: [
      { title: "Latent", x: [-2, 2], y: [-2, 2], xLabel: "z₁", yLabel: "z₂", width: 300, height: 238 },
      { title: "Observed", x: [-2.8, 2.8], y: [-2.8, 2.8], xLabel: "x₁", yLabel: "x₂", width: 300, height: 238 },
      { title: "Learned", x: [-2.8, 2.8], y: [-2.8, 2.8], xLabel: "first output", yLabel: "second output", width: 300, height: 238 },
    ],
    legend: [
      ["dot", "grey", "samples"],
      ["line", "a", "level lines of the first atom"],
      ["line", "b dashed", "level lines of the second atom"],
    ],
    draw({ strength, learner }, [latent, observed, learned], { atoms }) {
      const best = affine(strength, atoms);
      const output = (z) => {
        const x = mix(z, strength);
        return learner === "exact" ? exact(x, strength, atoms) : best.map(({ weights: [c, s, t] }) => c + s * x[0] + t * x[1]);
      };
      const views = [[latent, (z) => z], [observed, (z) => mix(z, strength)], [learned, output]];
      for (const [panel, view] of views) {
        panel.start();
        panel.marks(points.map(view), "grey faint", "dot", 1.5);
        atoms.forEach(([p, q], k) => {
          const length = p * p + q * q;
          for (const b of [-1.5, -1, -0.5, 0, 0.5, 1, 1.5]) {
            const line = range(-2.2, 2.2, 89).map((t) => [(b * p) / length - t * q, (b * q) / length + t * p]);
            panel.line(line.filter(([x, y]) => Math.hypot(x, y) < 2.2).map(view), k ? "b dashed thin" : "a thin");
          }
        });
      }
      const shares = best.map(({ r2 }) => percent(r2)).join(" and ");
      const affineSays = `An affine map of the observations explains ${shares} of the variance of the two valuations`;
      if (learner === "affine")
        return `${affineSays}. ${strength === 0 ? "The mixing is linear: nothing is lost." : "Its level lines stay bent."}`;
      return `Each output is one valuation, in another order and with its own unit, sign and zero, at every strength. ${affineSays}.`;
    },
  });
})();
