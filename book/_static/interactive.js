// Interactive figures: a page shows the static picture, and swaps in the plotly figure
// once plotly.js, which comes from this site, has loaded. Pages without one load nothing.
(() => {
  const script = document.currentScript.src;

  const loadPlotly = () =>
    new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = new URL("plotly.min.js", script).href;
      element.onload = () => resolve(window.Plotly);
      element.onerror = reject;
      document.head.append(element);
    });

  document.addEventListener("DOMContentLoaded", async () => {
    const figures = document.querySelectorAll(".interactive-figure");
    if (figures.length === 0) return;
    const plotly = await loadPlotly();
    for (const figure of figures) {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      const plot = document.createElement("div");
      plot.setAttribute("role", "group"); // not img: its buttons can be reached
      plot.setAttribute("aria-label", figure.querySelector("img").alt);
      figure.append(plot);
      await plotly.newPlot(plot, data, layout, { responsive: true, displaylogo: false });
      figure.querySelector("img").remove();
    }
  });
})();
