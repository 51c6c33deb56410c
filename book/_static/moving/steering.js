// MC1 and KL of SmolLM2 under each technique, at the strengths that were run: stored results, with
// nothing computed between them.
(() => {
  const { number, percent } = Moving;
  const points = ({ techniques }, name, key) => techniques[name].alpha.map((alpha, k) => [alpha, techniques[name][key][k]]);

  Moving.define("steering", {
    maths: { points },
    controls: ({ techniques }) => [
      { name: "technique", label: "technique", value: Object.keys(techniques).at(-1),
        options: Object.fromEntries(Object.keys(techniques).map((name) => [name, name])) },
      { name: "strength", label: "strength α", min: 0, max: 3, step: 1, value: 2, say: String },
    ],
    panels: ({ techniques }) => {
      const top = (key) => Math.max(...Object.values(techniques).flatMap((curve) => curve[key]));
      const mc1 = [0.2, Math.ceil(20 * top("high")) / 20];
      const kl = [0, 1.1 * top("kl")];
      const alpha = [0, 1.05 * top("alpha")];
      return [
        { title: "Accuracy (MC1)", x: alpha, y: mc1, xLabel: "strength α", yLabel: "MC1", width: 300, height: 262 },
        { title: "Disturbance (KL)", x: alpha, y: kl, xLabel: "strength α", yLabel: "KL, nats per token", width: 300, height: 262 },
        { title: "Accuracy against disturbance", x: kl, y: mc1, xLabel: "KL, nats per token", yLabel: "MC1", width: 300, height: 262 },
      ];
    },
    legend: [
      ["dot", "a", "chosen technique, with the 95 % interval of its gain"],
      ["line", "grey", "the other techniques"],
      ["line", "ink dashed", "unsteered model"],
      ["line", "b dotted", "budget of disturbance"],
    ],
    draw({ technique, strength }, panels, data, controls) {
      const { techniques, budget, questions } = data;
      const { alpha, mc1, kl, low, high } = techniques[technique];
      controls.strength.list(alpha.map((value) => number(value, 0)));
      const k = Math.min(strength, alpha.length - 1);
      const [accuracy, disturbance, frontier] = panels.map((panel) => panel.start());
      const pairs = (name) => techniques[name].kl.map((value, i) => [value, techniques[name].mc1[i]]);
      for (const other of Object.keys(techniques).filter((name) => name !== technique)) {
        accuracy.line(points(data, other, "mc1"), "grey thin");
        disturbance.line(points(data, other, "kl"), "grey thin");
        frontier.line(pairs(other), "grey thin");
      }
      accuracy.line([[0, mc1[0]], [99, mc1[0]]], "ink dashed thin");
      frontier.line([[0, mc1[0]], [99, mc1[0]]], "ink dashed thin");
      disturbance.line([[0, budget], [99, budget]], "b dotted");
      frontier.line([[budget, 0], [budget, 1]], "b dotted");
      accuracy.line(points(data, technique, "mc1"), "a");
      disturbance.line(points(data, technique, "kl"), "a");
      frontier.line(pairs(technique), "a");
      const bar = (panel, at) => panel.line([[at, low[k]], [at, high[k]]], "a");
      if (k > 0) { bar(accuracy, alpha[k]); bar(frontier, kl[k]); }
      accuracy.marks([[alpha[k], mc1[k]]], "a", "dot", 5);
      disturbance.marks([[alpha[k], kl[k]]], "a", "dot", 5);
      frontier.marks([[kl[k], mc1[k]]], "a", "dot", 5);

      const right = Math.round(mc1[k] * questions);
      const start = `${technique}, α = ${number(alpha[k], 0)}: MC1 ${number(100 * mc1[k], 1)} %, ${right} of ${questions} questions`;
      if (k === 0) return `${start}. This is the unsteered model.`;
      const gain = (value) => `${value > mc1[0] ? "+" : ""}${number(100 * (value - mc1[0]), 1)}`;
      const includes = low[k] <= mc1[0] && mc1[0] <= high[k];
      return `${start}, ${gain(mc1[k])} percentage points (95 % interval ${gain(low[k])} to ${gain(high[k])}, ` +
        `which ${includes ? "includes" : "excludes"} 0). KL ${number(kl[k], 3)} nats per token, ` +
        `${kl[k] > budget ? "above" : "within"} the budget of ${number(budget, 1)}.`;
    },
  });
})();
