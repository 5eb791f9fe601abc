// All pictures of one run: what is drawn when data arrive, and what moves with the playhead.

import { Chart, colour, dash, element, linearTicks, logTicks, signedLog } from "./chart.js";
import { Heat } from "./heat.js";
import { Vectors } from "./vectors.js";

const figure = (id) => document.getElementById(id);
const log = (x) => (x > 0 ? Math.log10(x) : NaN);

export function cosines(w, v) {
  const norms = v.map((x) => Math.hypot(...x));
  return w.map((x) => {
    const own = Math.hypot(...x);
    return v.map((y, j) => {
      let dot = 0;
      for (let i = 0; i < x.length; i++) dot += x[i] * y[i];
      return own > 0 && norms[j] > 0 ? dot / (own * norms[j]) : 0;
    });
  });
}

export class Pictures {
  constructor(dropped, draggable) {
    this.draggable = draggable;
    this.vectors = new Vectors(figure("vectors"), dropped);
    this.loss = new Chart(figure("loss"), "Loss and gradient", "flow time t", "L,  ‖∇L‖");
    this.overlaps = new Chart(figure("overlaps"), "Order parameters", "flow time t", "cosine with its teacher;  a;  c");
    this.heat = new Heat(figure("heat"));
    this.spectrum = new Chart(figure("spectrum"), "Lowest Hessian eigenvalues", "flow time t", "λ (signed log)");
    this.frames = [];
  }

  begin(teachers) {
    this.teachers = teachers;
    this.frames = [];
    this.vectors.begin(teachers, [], this.draggable);
  }

  add(frames) {
    this.frames.push(...frames);
    this.redraw();
  }

  get times() {
    return this.frames.map((f) => (f.t > 0 ? Math.log10(f.t) : NaN));
  }

  redraw() {
    const frames = this.frames;
    if (frames.length < 2) return;
    const last = frames.at(-1), xs = this.times;
    xs[0] = Number.isFinite(xs[0]) ? xs[0] : -3;
    const x = [-3, Math.max(-2, Math.ceil(2 * xs.at(-1)) / 2)];
    const ticks = logTicks(...x);
    this.drawLoss(xs, x, ticks);
    this.drawOverlaps(xs, x, ticks, last);
    this.drawSpectrum(xs, x, ticks);
    this.vectors.begin(this.teachers, frames, this.draggable);
  }

  drawLoss(xs, x, ticks) {
    const losses = this.frames.map((f) => log(f.loss)), slopes = this.frames.map((f) => log(f.slope));
    const all = [...losses, ...slopes].filter(Number.isFinite);
    const y = [Math.max(-18, Math.floor(Math.min(...all, 0) - 0.2)), Math.ceil(Math.max(...all, -3) + 0.2)];
    this.loss.axes(x, y, ticks, logTicks(...y));
    this.loss.draw([
      { xs, ys: losses, stroke: colour(0), width: 2.2, label: "L" },
      { xs, ys: slopes, stroke: colour(1), pattern: "6 3", label: "‖∇L‖" },
    ]);
  }

  drawOverlaps(xs, x, ticks, last) {
    const ends = cosines(last.w, this.teachers);
    const best = ends.map((row) => row.reduce((b, u, j) => (Math.abs(u) > Math.abs(row[b]) ? j : b), 0));
    const all = this.frames.map((f) => cosines(f.w, this.teachers));
    const flat = (a) => (Array.isArray(a) ? Math.hypot(...a) : a);
    const biased = Boolean(last.c);
    const weights = this.frames.flatMap((f) => [...f.a.map(flat), ...(f.c ?? [])]);
    const high = Math.min(6, Math.max(1.05, ...weights)), low = Math.max(-6, Math.min(0, ...weights, ...all.flatMap((u) => u.map((row, i) => row[best[i]]))));
    const y = [low < 0 ? low - 0.08 : -0.05, high + 0.05];
    this.overlaps.axes(x, y, ticks, linearTicks(...y));
    this.overlaps.draw(best.flatMap((j, i) => [
      { xs, ys: all.map((u) => u[i][j]), stroke: colour(i), pattern: dash(i), width: 2.2 },
      { xs, ys: this.frames.map((f) => flat(f.a[i])), stroke: colour(i), pattern: dash(i), width: 0.9 },
      ...(biased ? [{ xs, ys: this.frames.map((f) => f.c[i]), stroke: colour(i), pattern: "1 3", width: 1.4 }] : []),
    ]));
  }

  drawSpectrum(xs, x, ticks) {
    const seen = this.frames.filter((f) => f.lowest);
    this.spectrum.root.style.opacity = seen.length ? 1 : 0.4;
    if (!seen.length) return;
    const unit = 1e-4, scale = signedLog(unit);
    const count = seen[0].lowest.length;
    const all = seen.flatMap((f) => f.lowest).map(scale);
    const y = [Math.min(-0.5, ...all) - 0.2, Math.max(0.5, ...all) + 0.2];
    const marks = [[0, "0"]];
    for (let e = -4; e <= 4; e++) for (const s of [1, -1]) {
      const at = scale(s * 10 ** e);
      if (at > y[0] && at < y[1] && e % 2 === 0 && e > -4) marks.push([at, `${s < 0 ? "-" : ""}1e${e}`]);
    }
    this.spectrum.axes(x, y, ticks, marks);
    this.spectrum.draw(Array.from({ length: count }, (_, i) => ({
      xs, ys: this.frames.map((f) => (f.lowest ? scale(f.lowest[i]) : NaN)), stroke: colour(i === 0 ? 1 : 0), width: i === 0 ? 2 : 1,
    })));
  }

  show(index) {
    const frame = this.frames[index];
    if (!frame) return;
    const t = frame.t > 0 ? Math.log10(frame.t) : -3;
    for (const chart of [this.loss, this.overlaps, this.spectrum]) chart.moveTo(t);
    this.vectors.draw({ w: frame.w.map((row) => [...row]) }, index === 0);
    this.heat.draw(cosines(frame.w, this.teachers));
  }
}

// Loss at the end of many seeds, one dot each.
export class Dots {
  constructor(chosen) {
    this.chosen = chosen;
    this.chart = new Chart(figure("seeds"), "Seeds", "seed", "L at the end");
    this.clear();
  }

  clear() {
    this.found = [];
    this.chart.marks.replaceChildren();
    this.chart.axes([-1, 20], [-6, 0], linearTicks(0, 20), logTicks(-6, 0));
  }

  add(dot, total) {
    this.found.push(dot);
    const losses = this.found.map((d) => Math.max(-32, log(d.loss)) || -32);
    const y = [Math.floor(Math.min(...losses) - 0.3), Math.ceil(Math.max(...losses) + 0.3)];
    this.chart.axes([-1, total], y, linearTicks(0, total - 1), logTicks(...y));
    this.chart.marks.replaceChildren();
    this.found.forEach((d, i) => {
      const shape = { cx: this.chart.x(d.seed), cy: this.chart.y(losses[i]), r: 5, class: "dot", tabindex: 0 };
      const tone = d.kind === "minimum" ? colour(2) : d.kind.includes("saddle") ? colour(1) : colour(7);
      const circle = element("circle", { ...shape, style: `fill:${tone}`, "data-seed": d.seed }, this.chart.marks);
      element("title", {}, circle, `seed ${d.seed}: ${d.kind}, ${d.label || "no label"}, L = ${d.loss.toPrecision(6)}`);
      circle.onclick = () => this.chosen(d.seed);
      circle.onkeydown = (e) => { if (e.key === "Enter") this.chosen(d.seed); };
    });
  }
}
