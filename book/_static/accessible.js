// What the theme and docutils leave unsaid, or say wrongly, to screen readers.
document.addEventListener("DOMContentLoaded", () => {
  // The arrows in the contents unfold a list without saying which.
  for (const summary of document.querySelectorAll(".bd-sidebar li.has-children > details > summary")) {
    const page = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages under ${page.textContent.trim()}`);
  }
  // docutils calls the bibliography a list, and its entries something else than list items.
  for (const list of document.querySelectorAll(".citation-list[role=list]")) {
    list.removeAttribute("role");
  }
});
