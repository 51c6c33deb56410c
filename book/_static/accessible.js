// The theme's arrows in the contents unfold a list without saying which: screen readers need a name.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll(".bd-sidebar li.has-children > details > summary")) {
    const page = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages under ${page.textContent.trim()}`);
  }
});
