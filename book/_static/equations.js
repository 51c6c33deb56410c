// Displayed formulas that fit: as they are, else with their number on a line of its own, else
// smaller, down to SMALLEST of their size. A formula that is wider still scrolls inside its box.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const SMALLEST = 0.7;
  const formulas = document.querySelectorAll('article.bd-article mjx-container[display="true"]');
  const size = new Map([...formulas].map((formula) => [formula, formula.style.fontSize]));
  const widths = new WeakMap();
  const overflows = (formula) => formula.scrollWidth > formula.clientWidth + 1;

  const fit = (formula) => {
    const box = formula.closest("div.math");
    box?.classList.remove("apart");
    formula.style.fontSize = size.get(formula);
    if (!formula.clientWidth || !overflows(formula)) return;
    box?.classList.add("apart");
    const usual = parseFloat(size.get(formula)) || 100;
    for (let share = 1; overflows(formula) && share >= SMALLEST; share -= 0.05)
      formula.style.fontSize = `${usual * share}%`;
  };

  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (widths.get(target) === target.clientWidth) continue;
      widths.set(target, target.clientWidth);
      target.querySelectorAll('mjx-container[display="true"]').forEach(fit);
    }
  });
  for (const box of new Set([...formulas].map((formula) => formula.parentElement)))
    observer.observe(box);
});
