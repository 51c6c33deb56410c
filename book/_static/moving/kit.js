// Figures that move: sliders, panels with axes, marks and a spoken summary, for the files beside
// this one. Each of them calls Moving.define(name, figure) with
//   maths     what is computed, and compared with the Python library by a test,
//   controls  what a reader sets: a slider {name, label, min, max, step, value, say},
//             or a choice {name, label, options: {value: label}, value},
//   panels    the pictures side by side,
//   legend    marks and what they mean,
//   draw      (state, panels, data, controls) => the summary, in words.
// Colours are classes, which custom.css sets for light and for dark pages. Nothing moves by itself.
(() => {
  const MARGIN = { left: 46, right: 12, top: 26, bottom: 40 };
  const figures = {};
  let count = 0;

  const html = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const svg = (name, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // Numbers as readers write them: a true minus sign, no "-0.00".
  const number = (value, digits = 2) => {
    const text = Math.abs(value).toFixed(digits);
    return (value < 0 && Number(text) !== 0 ? "\u2212" : "") + text;
  };
  const percent = (share) => {
    if (share > 0 && share < 0.0005) return "under 0.1 %";
    return `${number(100 * share, share < 0.1 ? 1 : 0)} %`;
  };

  const ticks = ([low, high], about) => {
    const rough = (high - low) / about;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return Array.from({ length: last - first + 1 }, (_, k) => {
      const value = (first + k) * step;
      return { value, text: number(value, digits) };
    });
  };

  const MARKS = {
    dot: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`,
    triangle: (x, y, r) => `M${x},${y - 1.2 * r}l${1.2 * r},${2 * r}h${-2.4 * r}z`,
    square: (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    tick: (x, y, r) => `M${x - 0.5},${y - r}h1v${2 * r}h-1z`,
  };

  class Panel {
    constructor({ title, x, y, xLabel, yLabel, width = 340, height = 300 }) {
      Object.assign(this, { title, x, y, xLabel, yLabel, width, height });
      this.id = `moving-panel-${(count += 1)}`;
      this.element = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    }

    // Clear the panel and draw its axes; each range may be other than before.
    start({ x = this.x, y = this.y } = {}) {
      const [left, right] = [MARGIN.left, this.width - MARGIN.right];
      const [top, bottom] = [MARGIN.top, this.height - MARGIN.bottom];
      this.atX = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (right - left);
      this.atY = (value) => bottom - ((value - y[0]) / (y[1] - y[0])) * (bottom - top);
      const clip = svg("clipPath", { id: this.id },
        svg("rect", { x: left, y: top, width: right - left, height: bottom - top }));
      const axes = svg("g", { class: "axes" });
      for (const { value, text } of ticks(x, this.width / 60)) {
        axes.append(svg("path", { d: `M${this.atX(value)},${top}V${bottom}` }),
          svg("text", { x: this.atX(value), y: bottom + 15, "text-anchor": "middle" }, text));
      }
      for (const { value, text } of ticks(y, this.height / 55)) {
        axes.append(svg("path", { d: `M${left},${this.atY(value)}H${right}` }),
          svg("text", { x: left - 5, y: this.atY(value) + 4, "text-anchor": "end" }, text));
      }
      const middle = (top + bottom) / 2;
      axes.append(
        svg("text", { class: "title", x: left, y: 15 }, this.title),
        svg("text", { x: (left + right) / 2, y: this.height - 6, "text-anchor": "middle" }, this.xLabel),
        svg("text", { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, this.yLabel),
      );
      this.inside = svg("g", { "clip-path": `url(#${this.id})` });
      this.element.replaceChildren(clip, axes, this.inside);
      return this;
    }

    path(points) {
      return points.map(([x, y], k) => `${k ? "L" : "M"}${this.atX(x).toFixed(1)},${this.atY(y).toFixed(1)}`).join("");
    }

    line(points, look) {
      this.inside.append(svg("path", { class: `line ${look}`, d: this.path(points) }));
    }

    area(points, look) {
      this.inside.append(svg("path", { class: `area ${look}`, d: `${this.path(points)}Z` }));
    }

    marks(points, look, shape = "dot", size = 2) {
      const d = points.map(([x, y]) => MARKS[shape](this.atX(x), this.atY(y), size)).join("");
      this.inside.append(svg("path", { class: `glyph ${look}`, d }));
    }

    arrow([x0, y0], [x1, y1], look) {
      const [ax, ay, bx, by] = [this.atX(x0), this.atY(y0), this.atX(x1), this.atY(y1)];
      const turn = (Math.atan2(by - ay, bx - ax) * 180) / Math.PI;
      this.line([[x0, y0], [x1, y1]], look);
      this.inside.append(svg("path", {
        class: `glyph ${look}`, d: "M0,0l-10,-4.5v9z", transform: `translate(${bx} ${by}) rotate(${turn})`,
      }));
    }

    write([x, y], text, look = "", anchor = "start") {
      this.inside.append(svg("text", { class: look, x: this.atX(x), y: this.atY(y), "text-anchor": anchor }, text));
    }
  }

  const slider = ({ name, label, min, max, step, value, say }, id, changed) => {
    const input = html("input", { type: "range", id, name, min, max, step, value });
    const shown = html("span", { class: "moving-value", "aria-hidden": "true" });
    const field = html("div", { class: "moving-control" }, html("label", { for: id }, label), input, shown);
    const tell = () => {
      shown.textContent = say(Number(input.value));
      input.setAttribute("aria-valuetext", say(Number(input.value)));
    };
    // For a slider over a list, which another control replaces.
    const list = (values) => {
      input.max = values.length - 1;
      say = (place) => values[Math.min(place, values.length - 1)];
      tell();
    };
    input.addEventListener("input", () => { tell(); changed(); });
    tell();
    const enable = (on) => { input.disabled = !on; };
    return { field, ids: [id], read: () => Number(input.value), list, enable };
  };

  const choice = ({ name, label, options, value }, id, changed) => {
    const field = html("fieldset", { class: "moving-choice" }, html("legend", {}, label));
    const inputs = Object.entries(options).map(([key, text], k) => {
      const input = html("input", { type: "radio", id: `${id}-${k}`, name: id, value: key });
      input.checked = key === String(value);
      input.addEventListener("change", changed);
      field.append(html("span", {}, input, html("label", { for: `${id}-${k}` }, text)));
      return input;
    });
    return { field, ids: inputs.map((input) => input.id), read: () => inputs.find((input) => input.checked).value };
  };

  const legend = (entries) => html("ul", { class: "moving-legend" }, ...entries.map(([kind, look, text]) => {
    const sample = svg("svg", { viewBox: "0 0 26 12", width: 26, height: 12, "aria-hidden": "true" });
    if (kind === "line") sample.append(svg("path", { class: `line ${look}`, d: "M1,6H25" }));
    else if (kind === "area") sample.append(svg("path", { class: `area ${look}`, d: "M1,1H25V11H1Z" }));
    else sample.append(svg("path", { class: `glyph ${look}`, d: MARKS[kind](13, 6, 4) }));
    return html("li", {}, sample, text);
  }));

  // Put the figure of some name and data into a container, behind its still picture.
  const build = (container, { moving, ...data }, alt) => {
    const figure = figures[moving];
    const given = (part) => (typeof part === "function" ? part(data) : part);
    const id = `moving-${(count += 1)}`;
    const panels = given(figure.panels).map((panel) => new Panel(panel));
    const controls = {};
    const update = () => {
      const state = Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.read()]));
      said.textContent = figure.draw(state, panels, data, controls);
    };
    for (const control of given(figure.controls)) {
      const make = control.options ? choice : slider;
      controls[control.name] = make(control, `${id}-${control.name}`, update);
    }
    const made = Object.values(controls);
    const said = html("output", { class: "moving-said", "aria-live": "polite", for: made.flatMap((control) => control.ids).join(" ") });
    container.append(html("div", { class: `moving moving-${moving}`, role: "group", "aria-label": alt },
      html("div", { class: "moving-controls" }, ...made.map((control) => control.field)),
      html("div", { class: "moving-panels" }, ...panels.map((panel) => panel.element)),
      legend(given(figure.legend)),
      said));
    update();
    container.classList.add("is-live");
  };

  // The same random numbers on each visit.
  const random = (seed) => () => { // mulberry32
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const gauss = (uniform) => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  // Draws of a mixture of Gaussians in two dimensions.
  const mixture = ({ weights, means, covariances }, size, uniform) =>
    Array.from({ length: size }, () => {
      let [k, left] = [0, uniform()];
      while (k < weights.length - 1 && left >= weights[k]) { left -= weights[k]; k += 1; }
      const [[a, b], [, c]] = covariances[k];
      const [first, second] = [gauss(uniform), gauss(uniform)];
      const root = Math.sqrt(a);
      return [means[k][0] + root * first, means[k][1] + (b / root) * first + Math.sqrt(c - (b * b) / a) * second];
    });
  const range = (low, high, size) => Array.from({ length: size }, (_, k) => low + ((high - low) * k) / (size - 1));

  window.Moving = {
    build, gauss, mixture, number, percent, random, range,
    define: (name, figure) => { figures[name] = figure; },
    maths: (name) => figures[name].maths,
  };
})();
