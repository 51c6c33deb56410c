// One atom, one or two environments: which functions of the valuation have the same log ratios?
// The data lie on two islands; beside the true valuation stands its fold at b₁, a V.
(() => {
  const { number, range } = Moving;
  const ISLANDS = [[-1.5, -0.5], [0.4, 1.4]];
  const GRID = range(-2, 2, 161);

  // The log ratio of the base to an environment, up to a constant (Lemma 3).
  const ratio = (z, b, noise) => (z - b) ** 2 / (2 * noise);
  const fold = (z, b) => b + Math.abs(z - b);
  // By how much the fold at the first valuation changes the log ratio of the second environment.
  const mismatch = (z, [first, second], noise) => Math.abs(ratio(fold(z, first), second, noise) - ratio(z, second, noise));
  // What the library's checker says of the design: identified on which supports?
  const verdict = (valuations) =>
    (valuations.length > 1 && Math.abs(valuations[0] - valuations[1]) > 1e-9 ? "always" : "full support");
  const data = ISLANDS.flatMap(([low, high]) => range(low, high, 25));

  Moving.define("folds", {
    maths: { ratio, fold, mismatch, verdict, data },
    controls: [
      { name: "environments", label: "environments that condition on the atom", options: { 1: "one", 2: "two" }, value: 1 },
      { name: "first", label: "valuation b₁ of environment 1", min: -1.5, max: 1.5, step: 0.05, value: -0.1, say: (b) => number(b) },
      { name: "second", label: "valuation b₂ of environment 2", min: -1.5, max: 1.5, step: 0.05, value: 0.3, say: (b) => number(b) },
    ],
    panels: [
      { title: "Log ratios", x: [-2, 2], y: [0, 25], xLabel: "true valuation", yLabel: "nats, up to a constant", width: 300, height: 262 },
      { title: "Line and fold", x: [-2, 2], y: [-2, 3.5], xLabel: "true valuation", yLabel: "learned valuation", width: 300, height: 262 },
      { title: "What the fold gets wrong", x: [-2, 2], y: [0, 25], xLabel: "true valuation", yLabel: "error in log ratio 2, nats", width: 300, height: 262 },
    ],
    legend: [
      ["square", "ink", "data: two islands"],
      ["line", "a", "environment 1, and the true line"],
      ["line", "c dashed", "environment 2"],
      ["line", "b dotted", "the fold at b₁"],
    ],
    draw({ environments, first, second }, [ratios, learned, errors], { variance }, controls) {
      const two = environments === "2";
      controls.second.enable(two);
      const valuations = two ? [first, second] : [first];
      const known = verdict(valuations) === "always";

      ratios.start();
      ratios.line(GRID.map((z) => [z, ratio(z, first, variance)]), "a");
      if (two) ratios.line(GRID.map((z) => [z, ratio(z, second, variance)]), "c dashed");
      ratios.marks(data.map((z) => [z, 0.6]), "ink", "square", 1.6);

      learned.start();
      learned.line([[-2, -2], [2, 2]], "a thin");
      learned.line(GRID.map((z) => [z, fold(z, first)]), known ? "b dotted thin faint" : "b dotted thin");
      learned.marks(data.map((z) => [z, z]), "a", "square", 2);
      learned.marks(data.map((z) => [z, fold(z, first)]), known ? "b faint" : "b", "dot", 2.4);

      errors.start();
      const wrong = (z) => (two ? mismatch(z, valuations, variance) : 0);
      errors.line(GRID.map((z) => [z, wrong(z)]), "b dotted");
      errors.marks(data.map((z) => [z, wrong(z)]), "b", "dot", 2.4);

      const reflected = data.filter((z) => z < first).length;
      if (reflected === 0 || reflected === data.length)
        return "All data are on one side of b₁. There the fold is a line, equal to the valuation up to sign and shift.";
      if (known)
        return `Two environments with b₁ ≠ b₂: the fold changes log ratio 2 by up to ` +
          `${number(Math.max(...data.map(wrong)), 1)} nats on the data, and is excluded. ` +
          `The line is left, whatever the support of the data.`;
      const same = two ? "Two environments with the same valuation" : "One environment";
      if (ISLANDS.some(([low, high]) => low < first && first < high))
        return `${same}: the log ratios of line and fold are equal, but b₁ lies inside an island, where the fold has ` +
          `a kink. A differentiable mixing excludes it.`;
      return `${same}: line and fold have the same log ratios. The island left of b₁ may be reflected, and the data do not show which model is true.`;
    },
  });
})();
