// Measurements, drawn from the rows of benchmarks/results: choose what is shown, point at a line to learn its run.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 340;
const ROOM = { left: 58, top: 26, bottom: 44 };

function element(parent, name, given = {}, text = "") {
  const made = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

/** Three digits, and no exponent where a person would write none. */
function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return new Intl.NumberFormat("en-GB", { maximumSignificantDigits: size >= 1000 ? 6 : 3 }).format(value);
}

/** Values to places between two ends; what is not positive lies at the lower end of a logarithmic axis. */
function scale(values, log, from, to) {
  const bend = log ? Math.log : (value) => value;
  const usable = values.filter((value) => !log || value > 0);
  let [low, high] = usable.length ? [Math.min(...usable), Math.max(...usable)] : [log ? 1 : 0, 10];
  if (!log) low = Math.min(0, low);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low, high + 1];
  const place = (value) => from + ((bend(Math.max(value, low)) - bend(low)) / (bend(high) - bend(low))) * (to - from);
  if (usable.length < values.length) low /= 2; // so that nothing shares its place with zero
  const ticks = log ? powers(low, high) : rounds(low, high);
  return { place, ticks: usable.length < values.length ? [0, ...ticks.filter((value) => value > 1.9 * low)] : ticks };
}

/** Powers of ten, with halves between them where there are few. */
function powers(low, high) {
  const found = [];
  const steps = high / low > 300 ? [1] : high / low > 30 ? [1, 3] : [1, 2, 5];
  const thin = Math.ceil(Math.log10(high / low) / 6);
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    if (power % thin === 0) found.push(...steps.map((step) => step * 10 ** power));
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

function rounds(low, high) {
  const rough = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((one) => one * unit >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high * 1.0001; value += step) found.push(value);
  return found;
}

/** Labels at the ends of lines, pushed apart so that none covers another. */
function apart(labels, least, bottom) {
  const ordered = [...labels].sort((a, b) => a.y - b.y);
  for (let at = 1; at < ordered.length; at++) ordered[at].y = Math.max(ordered[at].y, ordered[at - 1].y + least);
  let most = bottom;
  for (let at = ordered.length - 1; at >= 0; at--) {
    ordered[at].y = Math.min(ordered[at].y, most);
    most = ordered[at].y - least;
  }
  return ordered;
}

const isOurs = (name) => name.startsWith("Allot") || name.startsWith("fused") || name.startsWith("log,");

class Plot {
  constructor(figure, name, told) {
    Object.assign(this, { figure, name, told, hidden: new Set(), chosen: null });
    figure.replaceChildren();
    figure.classList.add("live");
    element(figure, "figcaption", {}, told.title);
    const line = element(figure, "div", { class: "plot-line" });
    this.picker = told.views.length > 1 ? this.choice(line) : null;
    this.log = element(element(line, "label", {}, "log scale "), "input", { type: "checkbox", class: "switch" });
    this.log.setAttribute("role", "switch");
    this.log.addEventListener("change", () => this.draw());
    this.picture = element(figure, "div");
    this.legend = element(figure, "div", { class: "plot-legend", role: "group", "aria-label": "Lines that are shown" });
    this.said = element(figure, "p", { class: "plot-said", role: "status", id: `plot-${name}` });
    const rows = element(figure, "details");
    element(rows, "summary", {}, "The numbers");
    this.rows = element(rows, "div", { class: "scrolls", tabindex: 0, role: "group", "aria-label": "The numbers" });
    rows.addEventListener("toggle", () => rows.open && this.table());
    this.open = rows;
    this.take();
    new ResizeObserver(() => this.width !== this.picture.clientWidth && this.draw()).observe(this.picture);
  }

  choice(line) {
    const label = element(line, "label", {}, "Show ");
    const picker = element(label, "select");
    this.told.views.forEach((view, at) => element(picker, "option", { value: at }, view.name));
    picker.addEventListener("change", () => this.take());
    return picker;
  }

  /** Show the view that is chosen, from its beginning. */
  take() {
    this.view = this.told.views[this.picker ? Number(this.picker.value) : 0];
    this.log.checked = this.view.logY;
    this.hidden.clear();
    this.chosen = null;
    this.legend.replaceChildren();
    for (const { name } of this.view.series) {
      const button = element(this.legend, "button", { type: "button", "aria-pressed": "true" }, name);
      if (isOurs(name)) button.className = "ours";
      button.addEventListener("click", () => {
        if (!this.hidden.delete(name)) this.hidden.add(name);
        button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
        this.chosen = null;
        this.draw();
      });
    }
    this.legend.hidden = this.view.series.length < 2;
    this.draw();
    if (this.open.open) this.table();
  }

  draw() {
    this.width = this.picture.clientWidth || 640;
    const shown = this.view.series.filter((series) => !this.hidden.has(series.name));
    const longest = Math.max(0, ...shown.map((series) => series.name.length));
    const right = this.width < 480 ? 12 : Math.min(250, 16 + longest * 7.2);
    const every = shown.flatMap((series) => series.points);
    const log = this.log.checked;
    this.x = scale(every.map((point) => point[0]), this.view.logX, ROOM.left, this.width - right);
    this.y = scale(every.map((point) => point[1]), log, HEIGHT - ROOM.bottom, ROOM.top);
    const svg = document.createElementNS(SVG, "svg");
    const words = `${this.told.title}, ${this.view.name}: ${this.view.y} against ${this.view.x}. The arrow keys go from point to point.`;
    const given = { viewBox: `0 0 ${this.width} ${HEIGHT}`, width: this.width, height: HEIGHT, tabindex: 0, role: "img" };
    for (const [key, value] of Object.entries({ ...given, "aria-label": words, "aria-describedby": `plot-${this.name}` }))
      svg.setAttribute(key, value);
    this.axes(svg, right);
    const labels = [];
    shown.forEach((series, nth) => this.line(svg, series, nth, labels));
    if (this.width >= 480)
      for (const label of apart(labels, 15, HEIGHT - ROOM.bottom))
        element(svg, "svg:text", { class: label.ours ? "name ours" : "name", x: label.x + 8, y: label.y + 4 }, label.name);
    this.mark = element(svg, "svg:circle", { class: "mark", r: 5, cx: -20, cy: -20 });
    svg.addEventListener("pointermove", (event) => this.near(event, svg));
    svg.addEventListener("keydown", (event) => this.step(event));
    this.shown = shown;
    this.picture.replaceChildren(svg);
    this.say();
  }

  axes(svg, right) {
    const bottom = HEIGHT - ROOM.bottom;
    for (const value of this.y.ticks) {
      const y = Math.round(this.y.place(value)) + 0.5;
      element(svg, "svg:path", { class: "grid", d: `M${ROOM.left} ${y}H${this.width - right}` });
      element(svg, "svg:text", { class: "tick end", x: ROOM.left - 8, y: y + 3.5 }, short(value));
    }
    let last = -Infinity;
    for (const value of this.x.ticks) {
      const x = this.x.place(value);
      if (x - last < 44) continue;
      last = x;
      element(svg, "svg:text", { class: "tick middle", x, y: bottom + 18 }, short(value));
    }
    element(svg, "svg:path", { class: "axis", d: `M${ROOM.left} ${bottom + 0.5}H${this.width - right}` });
    element(svg, "svg:text", { class: "tick middle", x: (ROOM.left + this.width - right) / 2, y: HEIGHT - 6 }, this.view.x);
    element(svg, "svg:text", { class: "tick", x: 0, y: 12 }, this.view.y);
  }

  line(svg, series, nth, labels) {
    const ours = isOurs(series.name);
    const places = series.points.map(([x, y]) => [this.x.place(x), this.y.place(y)].map((value) => Math.round(value * 10) / 10));
    if (!places.length) return;
    const path = places
      .map(([x, y], at) => (at === 0 ? `M${x} ${y}` : this.view.step ? `H${x}V${y}` : `L${x} ${y}`))
      .join("");
    element(svg, "svg:path", { class: `line ${ours ? "ours" : `other d${nth % 4}`}`, d: path });
    if (places.length <= 40)
      for (const [cx, cy] of places) element(svg, "svg:circle", { class: ours ? "dot ours" : "dot", r: ours ? 3 : 2.5, cx, cy });
    const [x, y] = places.at(-1);
    labels.push({ name: series.name, x, y, ours });
  }

  near(event, svg) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let least = Infinity;
    this.shown.forEach((series, line) =>
      series.points.forEach((point, at) => {
        const far = Math.hypot(this.x.place(point[0]) - x, this.y.place(point[1]) - y);
        if (far < least) [least, this.chosen] = [far, [line, at]];
      }),
    );
    this.say();
  }

  step(event) {
    const way = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!way || !this.shown.length) return;
    event.preventDefault();
    const [line, at] = this.chosen ?? [0, -way[1]];
    const next = (line + way[0] + this.shown.length) % this.shown.length;
    const last = this.shown[next].points.length - 1;
    this.chosen = [next, Math.min(last, Math.max(0, at + way[1]))];
    this.say();
  }

  say() {
    const series = this.chosen && this.shown[this.chosen[0]];
    const point = series?.points[this.chosen[1]];
    if (!point) {
      this.said.textContent = "Point at a line, or walk along it with the arrow keys: each point names its run.";
      return;
    }
    const [x, y, run] = point;
    this.mark.setAttribute("cx", this.x.place(x));
    this.mark.setAttribute("cy", this.y.place(y));
    const value = this.view.y.startsWith("%") ? `${short(y)}${this.view.y}` : `${short(y)} ${this.view.y}`;
    this.said.replaceChildren();
    element(this.said, "b", {}, `${series.name}, ${this.view.x} ${short(x)}: ${value}`);
    element(this.said, "span", {}, this.told.runs[run]);
  }

  table() {
    const table = document.createElement("table");
    const head = element(element(table, "thead"), "tr");
    for (const name of ["line", this.view.x, this.view.y, "run"]) element(head, "th", { scope: "col" }, name);
    const body = element(table, "tbody");
    for (const { name, points } of this.view.series)
      for (const [x, y, run] of points) {
        const row = element(body, "tr");
        element(row, "th", { scope: "row" }, name);
        for (const text of [short(x), short(y), this.told.runs[run]]) element(row, "td", {}, text);
      }
    this.rows.replaceChildren(table);
  }
}

void fetch("/docs/plots.json")
  .then((answer) => answer.json())
  .then((told) => {
    for (const figure of document.querySelectorAll("figure[data-plot]"))
      if (told[figure.dataset.plot]) new Plot(figure, figure.dataset.plot, told[figure.dataset.plot]);
  });
