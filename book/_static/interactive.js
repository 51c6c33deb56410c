// Interactive figures: a page shows the still picture, and swaps in the live figure once its
// scripts, which come from this site, have loaded. Pages without one load nothing.
(() => {
  const script = document.currentScript.src;

  const load = (name) =>
    new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = new URL(name, script).href;
      element.onload = resolve;
      element.onerror = reject;
      document.head.append(element);
    });

  // Of plotly, to be turned.
  const turn = async (figure, { data, layout }) => {
    if (!window.Plotly) await load("plotly.min.js");
    const plot = document.createElement("div");
    plot.setAttribute("role", "group"); // not img: its buttons can be reached
    plot.setAttribute("aria-label", figure.querySelector("img").alt);
    figure.append(plot);
    await window.Plotly.newPlot(plot, data, layout, { responsive: true, displaylogo: false });
    figure.querySelector("img").remove();
  };

  // Of this book, with sliders; the still stays, for paper.
  const move = async (figure, content) => {
    if (!window.Moving) await load("moving/kit.js");
    await load(`moving/${content.moving}.js`);
    window.Moving.build(figure, content, figure.querySelector("img").alt);
  };

  document.addEventListener("DOMContentLoaded", async () => {
    for (const figure of document.querySelectorAll(".interactive-figure")) {
      const content = JSON.parse(figure.querySelector("script").textContent);
      await (content.moving ? move : turn)(figure, content);
    }
  });
})();
