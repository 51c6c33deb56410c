// Tables that fit: as they are, else tight, else with numbers over two lines as well (dense), else
// a row as a card of its headings and values (stacked). tools/book/tables.py gives each cell its
// heading; custom.css has the look of each.
document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("article.bd-article table:has(td[data-label])")];
  const phone = window.matchMedia("(max-width: 600px)");
  const widths = new WeakMap();
  const STEPS = ["", "tight", "dense"];

  const room = (table) => {
    const style = getComputedStyle(table.parentElement);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    return table.parentElement.clientWidth - padding;
  };

  // Cards are blocks to a browser; a screen reader is told that they are still a table.
  const name = (table, stacked) => {
    const roles = { thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };
    const set = (tag, role) => (stacked ? tag.setAttribute("role", role) : tag.removeAttribute("role"));
    set(table, "table");
    for (const [part, role] of Object.entries(roles))
      for (const tag of table.querySelectorAll(part)) set(tag, role);
    for (const tag of table.querySelectorAll("th"))
      set(tag, tag.closest("thead") ? "columnheader" : "rowheader");
  };

  const lay = (table) => {
    const width = room(table);
    if (width <= 0) return; // folded away: the observer calls again when it is unfolded
    widths.set(table, width);
    table.classList.remove("tight", "dense", "stacked");
    const words = phone.matches && table.classList.contains("wordy-table");
    const fits = !words && STEPS.some((step) => {
      if (step) table.classList.add(step);
      return table.offsetWidth <= width + 1;
    });
    if (!fits) {
      table.classList.remove("tight", "dense");
      table.classList.add("stacked");
    }
    name(table, !fits);
  };

  // Called again where the page has another width, and where a table has outgrown its place.
  const outgrown = (table) =>
    !table.classList.contains("stacked") && table.offsetWidth > room(table) + 1;
  const observer = new ResizeObserver((entries) => {
    const changed = new Set(entries.map((entry) => entry.target));
    for (const table of tables)
      if (changed.has(table) ? outgrown(table) : changed.has(table.parentElement))
        if (outgrown(table) || widths.get(table) !== room(table)) lay(table);
  });
  for (const table of tables) observer.observe(table);
  for (const parent of new Set(tables.map((table) => table.parentElement))) observer.observe(parent);

  // Formulas in cells have their width once they are typeset.
  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    tables.forEach(lay);
  });
});
