// Cuts a chapter's sections into slides that fit the window, and turns them with the keyboard
// and two buttons; N shows the text behind them. What scrolls can be reached with the Tab key.
(async () => {
  if (document.readyState !== "complete") {
    await new Promise((done) => { addEventListener("load", done); });
  }
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;

  // Where a block would pass a slide's lower edge, it and what follows go on to another slide.
  const cut = (slide) => {
    const blocks = [...slide.children].slice(1).filter((block) => block.offsetHeight > 0);
    const padding = Number.parseFloat(getComputedStyle(slide).paddingBottom);
    const edge = slide.getBoundingClientRect().bottom - padding + 1;
    const over = blocks.slice(1).find((block) => block.getBoundingClientRect().bottom > edge);
    if (!over) return;
    const rest = document.createElement("section");
    rest.className = "slide bd-article slide-h2";
    const heading = document.createElement("h2");
    heading.innerHTML = slide.firstElementChild.innerHTML;
    if (!heading.querySelector("small")) heading.insertAdjacentHTML("beforeend", " <small>(continued)</small>");
    rest.append(heading);
    slide.after(rest);
    for (let block = over; block;) {
      const next = block.nextElementSibling;
      rest.append(block);
      block = next;
    }
    cut(rest);
  };
  document.querySelectorAll(".slide").forEach(cut);

  const frame = document.querySelector(".slides");
  const slides = [...document.querySelectorAll(".slide")];
  const place = document.querySelector(".slides-place");
  const notes = document.querySelector("[data-notes]");
  let current = 0;

  // MathJax looks after the inside of its formulas itself.
  const reach = () => {
    for (const box of frame.querySelectorAll("*:not(mjx-container *)")) {
      const { overflowX, overflowY } = getComputedStyle(box);
      const scrolls = (overflow, more) => more > 0 && /auto|scroll/.test(overflow);
      if (scrolls(overflowX, box.scrollWidth - box.clientWidth)
        || scrolls(overflowY, box.scrollHeight - box.clientHeight)) box.tabIndex = 0;
    }
  };

  const say = () => {
    place.textContent = `${current + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${current + 1}`);
  };
  const go = (number) => {
    current = Math.max(0, Math.min(slides.length - 1, number));
    slides[current].scrollIntoView();
    say();
  };
  const toggleNotes = () => {
    const shown = document.body.classList.toggle("show-notes");
    notes.setAttribute("aria-pressed", String(shown));
    reach();
    go(current);
  };

  const keys = {
    ArrowRight: () => go(current + 1), PageDown: () => go(current + 1), " ": () => go(current + 1),
    ArrowLeft: () => go(current - 1), PageUp: () => go(current - 1),
    Home: () => go(0), End: () => go(slides.length - 1), n: toggleNotes, N: toggleNotes,
  };
  document.addEventListener("keydown", (event) => {
    const onButton = event.key === " " && event.target.closest("button, a, summary");
    if (!keys[event.key] || onButton || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.querySelectorAll("[data-step]").forEach((button) => {
    button.addEventListener("click", () => go(current + Number(button.dataset.step)));
  });
  notes.addEventListener("click", toggleNotes);
  // Scrolling and swiping turn pages, too.
  const watcher = new IntersectionObserver((seen) => {
    const entered = seen.find((entry) => entry.isIntersecting);
    if (entered) { current = slides.indexOf(entered.target); say(); }
  }, { root: frame, threshold: 0.6 });
  slides.forEach((slide) => watcher.observe(slide));
  addEventListener("resize", reach);
  reach();
  go((Number.parseInt(location.hash.slice(1), 10) || 1) - 1);
})();
