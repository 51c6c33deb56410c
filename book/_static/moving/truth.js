// Two Gaussian clouds, true and false, whose means differ by δ: the probe θ = Σ⁻¹δ, and what a
// second probe, orthogonal to θ, still reads. The noise is stretched along one axis, and turned.
(() => {
  const { number, percent, range } = Moving;
  const RADIANS = Math.PI / 180;

  const dot = ([a, b], [c, d]) => a * c + b * d;
  const norm = (v) => Math.hypot(...v);
  // The standard deviation is `stretch` along the axis at `angle` degrees, and 1 across.
  const axes = (angle) => [[Math.cos(angle * RADIANS), Math.sin(angle * RADIANS)], [-Math.sin(angle * RADIANS), Math.cos(angle * RADIANS)]];
  const probe = (delta, stretch, angle) => {
    const [along, across] = axes(angle);
    const [p, q] = [dot(delta, along) / stretch ** 2, dot(delta, across)];
    return [p * along[0] + q * across[0], p * along[1] + q * across[1]];
  };
  const remains = (delta, theta) => {
    const share = dot(theta, delta) / dot(theta, theta);
    return [delta[0] - share * theta[0], delta[1] - share * theta[1]];
  };
  // The standard normal distribution function (Abramowitz and Stegun, 7.1.26).
  const normal = (x) => {
    const y = Math.abs(x) / Math.SQRT2;
    const t = 1 / (1 + 0.3275911 * y);
    const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-y * y);
    return x < 0 ? tail / 2 : 1 - tail / 2;
  };
  // The best accuracy of a reader that sees the data along one direction only.
  const accuracy = (direction, delta, stretch, angle) => {
    const [along, across] = axes(angle);
    const spread = Math.hypot(stretch * dot(direction, along), dot(direction, across));
    return normal(Math.abs(dot(direction, delta)) / (2 * spread));
  };
  const both = (delta, stretch, angle) => {
    const theta = probe(delta, stretch, angle);
    return [accuracy(theta, delta, stretch, angle), accuracy([-theta[1], theta[0]], delta, stretch, angle)];
  };
  const apart = (delta, theta) => Math.acos(Math.min(1, dot(delta, theta) / (norm(delta) * norm(theta)))) / RADIANS;
  const ellipse = ([x, y], stretch, angle) => {
    const [along, across] = axes(angle);
    return range(0, 2 * Math.PI, 73).map((t) => [0, 1].map((k) =>
      [x, y][k] + stretch * Math.cos(t) * along[k] + Math.sin(t) * across[k]));
  };

  Moving.define("truth", {
    maths: { probe, remains, both, apart },
    controls: [
      { name: "stretch", label: "stretch of the noise", min: 1, max: 6, step: 0.1, value: 4, say: (s) => `${number(s, 1)} to 1` },
      { name: "angle", label: "direction of its long axis", min: 0, max: 180, step: 1, value: 0, say: (a) => `${a}°` },
    ],
    panels: [
      { title: "Shift, probe and noise", x: [-6, 10], y: [-7.5, 8.5], xLabel: "first coordinate", yLabel: "second coordinate", height: 320 },
      { title: "Accuracy of two probes", x: [0, 180], y: [0.5, 1], xLabel: "direction of the long axis, degrees", yLabel: "accuracy", height: 320 },
    ],
    legend: [
      ["line", "grey", "noise of false (left) and true statements, one σ"],
      ["line", "a", "shift δ"],
      ["line", "b dashed", "probe θ = Σ⁻¹δ, at the length of δ; first probe"],
      ["line", "c dotted", "what is left of δ without θ; second probe"],
    ],
    draw({ stretch, angle }, [plane, accuracies], { delta }) {
      const theta = probe(delta, stretch, angle);
      const left = remains(delta, theta);
      const scale = norm(delta) / norm(theta);

      plane.start();
      plane.line(ellipse([0, 0], stretch, angle), "grey");
      plane.line(ellipse(delta, stretch, angle), "grey");
      plane.arrow([0, 0], delta, "a");
      plane.arrow([0, 0], theta.map((v) => scale * v), "b dashed");
      if (norm(left) > 0.15) plane.arrow([0, 0], left, "c dotted");

      accuracies.start();
      const axis = (((Math.atan2(delta[1], delta[0]) / RADIANS) % 180) + 180) % 180; // of the shift: a narrow dip
      const grid = [...range(0, 180, 181), axis].sort((a, b) => a - b);
      const curves = grid.map((degrees) => both(delta, stretch, degrees));
      accuracies.line(grid.map((degrees, k) => [degrees, curves[k][0]]), "b dashed");
      accuracies.line(grid.map((degrees, k) => [degrees, curves[k][1]]), "c dotted");
      const here = both(delta, stretch, angle);
      accuracies.line([[angle, 0.5], [angle, 1]], "grey thin");
      accuracies.marks([[angle, here[0]]], "b", "square", 4.5);
      accuracies.marks([[angle, here[1]]], "c", "dot", 5);

      return `The probe is ${number(apart(delta, theta), 0)}° from the shift. First probe: ${percent(here[0])} right. ` +
        `Without its direction ${percent((norm(left) / norm(delta)) ** 2)} of |δ|² is left, and a second probe is ${percent(here[1])} right. ` +
        `Truth is one direction throughout.`;
    },
  });
})();
