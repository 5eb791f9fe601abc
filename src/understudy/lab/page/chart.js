// Line charts in SVG: axes with ticks, curves drawn once, a playhead that moves cheaply.
//
// Written by hand because it is small: plotly.js is 4.5 MB, and loading it alone would take most of the second in which
// the first picture should be there.

import { power } from "./mathematics.js";

const SVG = "http://www.w3.org/2000/svg";
export const WIDTH = 380, HEIGHT = 250;
const LEFT = 63, RIGHT = 39, TOP = 30, BOTTOM = 38;
const LINE = 12; // least distance between two labels at the ends of curves

export function element(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value; // as an attribute the content security policy would refuse it
    else made.setAttribute(key, value);
  }
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// The title of a picture; `word` is its section on the page of explanations.
export function heading(root, text, word) {
  element("text", { x: 10, y: 19, class: "title", "data-word": word, tabindex: 0 }, root, text);
}

export const colour = (i) => `var(--s${i % 8})`;
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
export const dash = (i) => DASHES[Math.floor(i / 8) % DASHES.length];

export function logTicks(low, high) {
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 6));
  const ticks = [];
  for (let e = first; e <= last; e += step) ticks.push([e, power(e)]);
  return ticks;
}

export function linearTicks(low, high) {
  const span = Math.max(high - low, 1e-300);
  const raw = span / 5, base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * base).find((s) => s >= raw);
  const ticks = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * span; x += step)
    ticks.push([x, Math.abs(x) < step / 1e6 ? "0" : String(+x.toPrecision(3)).replace("-", "−")]);
  return ticks;
}

export class Chart {
  constructor(figure, title, word, xLabel, yLabel) {
    this.root = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, figure);
    heading(this.root, title, word);
    element("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, this.root, xLabel);
    const y = (TOP + HEIGHT - BOTTOM) / 2;
    const upright = { x: 12, y, "text-anchor": "middle", transform: `rotate(-90 12 ${y})` };
    this.yLabel = element("text", upright, this.root, yLabel);
    this.grid = element("g", {}, this.root);
    const size = { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
    element("rect", { ...size, class: "frame" }, this.root);
    this.clip = element("rect", { ...size, width: 0 }, element("clipPath", { id: `past-${word}` }, this.root));
    element("rect", size, element("clipPath", { id: `whole-${word}` }, this.root));
    this.ghosts = element("g", { class: "ghost", "clip-path": `url(#whole-${word})` }, this.root);
    this.curves = element("g", { "clip-path": `url(#past-${word})` }, this.root);
    this.marks = element("g", {}, this.root);
    this.head = element("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "playhead", visibility: "hidden" }, this.root);
    this.range = { x: [0, 1], y: [0, 1] };
  }

  x(value) {
    const [low, high] = this.range.x;
    return LEFT + ((value - low) / Math.max(high - low, 1e-300)) * (WIDTH - LEFT - RIGHT);
  }

  y(value) {
    const [low, high] = this.range.y;
    return HEIGHT - BOTTOM - ((value - low) / Math.max(high - low, 1e-300)) * (HEIGHT - TOP - BOTTOM);
  }

  axes(x, y, xTicks, yTicks) {
    this.range = { x, y };
    this.grid.replaceChildren();
    for (const [value, label] of xTicks) {
      const at = this.x(value);
      element("line", { x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM, class: "tick" }, this.grid);
      element("text", { x: at, y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" }, this.grid, label);
    }
    for (const [value, label] of yTicks) {
      const at = this.y(value);
      element("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at, class: "tick" }, this.grid);
      element("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, this.grid, label);
    }
  }

  // curves: [{ xs, ys, stroke, pattern, width, label }]; a label stands at the end of its curve.
  draw(curves) {
    this.ghosts.replaceChildren();
    this.curves.replaceChildren();
    this.marks.replaceChildren();
    for (const { xs, ys, stroke, pattern = "", width = 1.8 } of curves) {
      let d = "", pen = false;
      for (let i = 0; i < xs.length; i++) {
        if (!Number.isFinite(xs[i]) || !Number.isFinite(ys[i])) { pen = false; continue; }
        d += `${pen ? "L" : "M"}${this.x(xs[i]).toFixed(2)} ${this.y(ys[i]).toFixed(2)}`;
        pen = true;
      }
      const look = { d, class: "curve", style: `stroke:${stroke};stroke-width:${width}`, "stroke-dasharray": pattern };
      element("path", look, this.ghosts);
      element("path", look, this.curves);
    }
    this.name(curves.filter((curve) => curve.label));
  }

  // Labels at the ends of curves, pushed apart where they would overlap, as far as there is room.
  name(curves) {
    const last = (ys) => ys.findLast(Number.isFinite) ?? NaN;
    const bottom = HEIGHT - BOTTOM + 4;
    const placed = curves
      .map(({ ys, ...curve }) => ({ ...curve, at: Math.min(bottom, Math.max(TOP + 4, this.y(last(ys)) + 4)) }))
      .filter(({ at }) => Number.isFinite(at))
      .sort((one, two) => one.at - two.at);
    const gap = Math.min(LINE, (bottom - TOP - 4) / Math.max(1, placed.length - 1));
    for (let i = 1; i < placed.length; i++) placed[i].at = Math.max(placed[i].at, placed[i - 1].at + gap);
    for (let i = placed.length - 1, limit = bottom; i >= 0; i--, limit -= gap)
      placed[i].at = Math.min(placed[i].at, limit);
    for (const { at, stroke, label } of placed)
      element("text", { x: WIDTH - RIGHT + 4, y: at, class: "math", style: `fill:${stroke}` }, this.marks, label);
  }

  moveTo(value) {
    const at = this.x(value);
    this.clip.setAttribute("width", Math.max(0, at - LEFT + 1));
    this.head.setAttribute("visibility", "visible");
    this.head.setAttribute("x1", at);
    this.head.setAttribute("x2", at);
  }
}
