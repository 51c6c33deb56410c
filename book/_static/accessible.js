// What the theme and docutils leave unsaid, or say wrongly, to screen readers.
document.addEventListener("DOMContentLoaded", () => {
  // The arrows in the contents unfold a list without saying which.
  for (const summary of document.querySelectorAll(".bd-sidebar li.has-children > details > summary")) {
    const page = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages under ${page.textContent.trim()}`);
  }
  // The book's name and the search box stand beside the contents, in no landmark.
  const side = document.getElementById("pst-primary-sidebar");
  side?.setAttribute("role", "complementary");
  side?.setAttribute("aria-label", "Book");
  // docutils calls the bibliography a list, and its entries something else than list items.
  for (const list of document.querySelectorAll(".citation-list[role=list]")) {
    list.removeAttribute("role");
  }
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.removeAttribute("role");  // a role that ARIA has withdrawn
  }
});
