// All pictures of one run: what is drawn when data arrive, and what moves with the playhead.

import { Chart, colour, dash, linearTicks, logTicks } from "./chart.js";
import { Heat } from "./heat.js";
import { indexed, power } from "./mathematics.js";
import { Vectors } from "./vectors.js";

const FIRST = -3; // exponent of the first time that is drawn; earlier ones, and 0, are drawn there
const LARGEST_WEIGHT = 6; // beyond it, outgoing weights and biases leave the picture

const figure = (id) => document.getElementById(id);
const log = (x) => (x > 0 ? Math.log10(x) : NaN);
const flat = (a) => (Array.isArray(a) ? Math.hypot(...a) : a);

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

// Signed logarithm: linear below `unit`, logarithmic above; for eigenvalues of both signs.
const signedLog = (unit) => (x) => Math.sign(x) * Math.log10(1 + Math.abs(x) / unit);

export class Pictures {
  constructor(hands) {
    this.vectors = new Vectors(figure("vectors"), hands);
    this.loss = new Chart(figure("loss"), "Loss and gradient", "loss", "flow time t", "L,  ‖∇L‖");
    this.overlaps = new Chart(figure("overlaps"), "Order parameters", "overlaps", "flow time t", "");
    this.heat = new Heat(figure("heat"));
    this.spectrum = new Chart(figure("spectrum"), "Lowest Hessian eigenvalues", "spectrum", "flow time t", "λ");
    this.frames = [];
  }

  begin(teachers) {
    this.teachers = teachers;
    this.frames = [];
    this.vectors.begin(teachers, []);
  }

  add(frames) {
    this.frames.push(...frames);
    this.redraw();
  }

  redraw() {
    const frames = this.frames;
    if (frames.length < 2) return;
    const xs = frames.map((f) => (f.t > 0 ? Math.max(FIRST, Math.log10(f.t)) : FIRST));
    const x = [FIRST, Math.max(FIRST + 1, Math.ceil(2 * xs.at(-1)) / 2)];
    const ticks = logTicks(...x);
    this.drawLoss(xs, x, ticks);
    this.drawOverlaps(xs, x, ticks);
    this.drawSpectrum(xs, x, ticks);
    this.vectors.begin(this.teachers, frames);
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

  drawOverlaps(xs, x, ticks) {
    const last = this.frames.at(-1), biased = Boolean(last.c);
    const nearest = (row) => row.reduce((best, u, j) => (Math.abs(u) > Math.abs(row[best]) ? j : best), 0);
    const best = cosines(last.w, this.teachers).map(nearest);
    const overlaps = this.frames.map((f) => cosines(f.w, this.teachers).map((row, i) => row[best[i]]));
    const weights = this.frames.flatMap((f) => [...f.a.map(flat), ...(f.c ?? [])]);
    const high = Math.min(LARGEST_WEIGHT, Math.max(1.05, ...weights));
    const low = Math.max(-LARGEST_WEIGHT, Math.min(0, ...weights, ...overlaps.flat()));
    const y = [low - 0.08, high + 0.08];
    this.overlaps.yLabel.textContent = `cos(wᵢ, vⱼ) thick;  aᵢ thin${biased ? ";  cᵢ dotted" : ""}`;
    this.overlaps.axes(x, y, ticks, linearTicks(...y));
    this.overlaps.draw(best.flatMap((_, i) => [
      { ys: overlaps.map((u) => u[i]), pattern: dash(i), width: 2.4, label: indexed("w", i + 1) },
      { ys: this.frames.map((f) => flat(f.a[i])), pattern: dash(i), width: 0.9 },
      ...(biased ? [{ ys: this.frames.map((f) => f.c[i]), pattern: "1 3", width: 1.4 }] : []),
    ].map((curve) => ({ xs, stroke: colour(i), ...curve }))));
  }

  drawSpectrum(xs, x, ticks) {
    const seen = this.frames.filter((f) => f.lowest);
    this.spectrum.root.style.opacity = seen.length ? 1 : 0.4;
    if (!seen.length) return;
    const all = seen.flatMap((f) => f.lowest);
    const top = Math.ceil(log(Math.max(1e-12, ...all.map(Math.abs))) - 1e-9);
    const scale = signedLog(10 ** (top - 5)), heights = all.map(scale);
    const y = [Math.min(-0.5, ...heights) - 0.2, Math.max(0.5, ...heights) + 0.2];
    const marks = [[0, "0"]];
    for (const e of [top, top - 2, top - 4])
      marks.push([scale(10 ** e), power(e)], [scale(-(10 ** e)), `−${power(e)}`]);
    this.spectrum.axes(x, y, ticks, marks.filter(([at]) => at > y[0] && at < y[1]));
    const curve = (i) => this.frames.map((f) => (f.lowest ? scale(f.lowest[i]) : NaN));
    const look = (i) => ({ stroke: colour(i ? 0 : 1), width: i ? 1 : 2 });
    const curves = seen[0].lowest.map((_, i) => ({ xs, ys: curve(i), ...look(i) }));
    this.spectrum.draw(curves.reverse()); // the least one on top
  }

  show(index) {
    const frame = this.frames[index];
    if (!frame) return;
    const t = frame.t > 0 ? Math.max(FIRST, Math.log10(frame.t)) : FIRST;
    for (const chart of [this.loss, this.overlaps, this.spectrum]) chart.moveTo(t);
    this.vectors.draw(frame.w.map((row) => [...row]), index === 0);
    this.heat.draw(cosines(frame.w, this.teachers));
  }
}
