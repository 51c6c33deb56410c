// Link previews: sphinx-tippy writes what each link of a page points to; this shows it.
// It stands in for the tippy.js library, with the one function that is called here.
const tippy = (link, { content, onShow, maxWidth }) => {
  let box = null;
  let timer = null;

  const place = () => {
    const anchor = link.getBoundingClientRect();
    const own = box.getBoundingClientRect();
    const left = Math.min(anchor.left, document.documentElement.clientWidth - own.width - 12);
    const above = anchor.bottom + own.height + 12 > window.innerHeight && anchor.top > own.height;
    const top = above ? anchor.top - own.height - 8 : anchor.bottom + 8;
    box.style.left = `${Math.max(left, 8) + window.scrollX}px`;
    box.style.top = `${top + window.scrollY}px`;
  };

  const show = () => {
    if (box) return;
    box = document.createElement("div");
    box.className = "link-preview";
    box.setAttribute("role", "tooltip");
    box.id = "link-preview";
    if (maxWidth) box.style.maxWidth = `min(${maxWidth}px, calc(100vw - 24px))`;
    box.innerHTML = content;
    for (const named of box.querySelectorAll("[id]")) named.removeAttribute("id");
    box.addEventListener("mouseenter", () => clearTimeout(timer));
    box.addEventListener("mouseleave", hideSoon);
    document.body.append(box);
    link.setAttribute("aria-describedby", box.id);
    place();
    if (onShow) onShow({ popper: box });
  };

  const hide = () => {
    clearTimeout(timer);
    box?.remove();
    box = null;
    link.removeAttribute("aria-describedby");
  };

  const hideSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 200);
  };

  link.addEventListener("mouseenter", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
  link.addEventListener("mouseleave", hideSoon);
  link.addEventListener("focus", show);
  link.addEventListener("blur", hide);
  link.addEventListener("click", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
};
