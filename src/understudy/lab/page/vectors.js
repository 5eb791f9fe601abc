// Incoming vectors of teachers and students in a plane; their tips can be dragged.
//
// In more than two dimensions there are two projections: onto two chosen directions, or the star, which sends the j-th
// direction of the teachers to the angle 2πj/k. There a copy lies at a point of the star and an average between points.

import { element, colour, dash } from "./chart.js";

const SIZE = 300;

export class Vectors {
  constructor(figure, dropped) {
    this.dropped = dropped;
    const box = document.createElement("div");
    box.className = "axes-choice";
    this.kind = document.createElement("select");
    this.kind.ariaLabel = "projection";
    this.kind.append(new Option("star"), new Option("plane"));
    this.kind.onchange = () => { this.fit(this.frames); this.redraw(); };
    box.append(this.kind, " ");
    this.selects = [0, 1].map((i) => {
      const select = document.createElement("select");
      select.ariaLabel = i ? "vertical direction" : "horizontal direction";
      select.onchange = () => { this.plane[i] = Number(select.value); this.kind.value = "plane"; this.redraw(); };
      box.append(select, i ? "" : " × ");
      return select;
    });
    this.box = box;
    this.root = element("svg", { viewBox: `0 0 460 ${SIZE}`, role: "img", "aria-label": "Vectors" }, figure);
    figure.append(box);
    element("text", { x: 12, y: 19, class: "title" }, this.root, "Vectors");
    this.ground = element("g", {}, this.root);
    this.arrows = element("g", {}, this.root);
    this.plane = [0, 1];
    this.scale = 1;
    this.teachers = [];
    this.frame = null;
  }

  begin(teachers, frames, draggable) {
    this.teachers = teachers;
    this.draggable = draggable;
    const axes = Math.max(2, Math.min(teachers[0].length, 64));
    this.plane = this.plane.map((p, i) => (p < Math.min(axes, teachers[0].length) ? p : i));
    this.selects.forEach((select, i) => {
      select.replaceChildren();
      for (let j = 0; j < Math.min(axes, teachers[0].length); j++) select.add(new Option(`x${j + 1}`, j));
      select.value = this.plane[i];
    });
    this.box.hidden = teachers[0].length <= 2;
    this.fit(frames);
  }

  fit(frames) {
    this.frames = frames;
    let largest = 1e-9;
    const reach = (v) => Math.hypot(...this.project(v));
    for (const v of this.teachers) largest = Math.max(largest, reach(v));
    const step = Math.max(1, Math.floor(frames.length / 40));
    for (let i = 0; i < frames.length; i += step)
      for (const w of frames[i].w) largest = Math.max(largest, reach(w));
    this.scale = Math.min(largest, 6 * Math.max(...this.teachers.map((v) => Math.hypot(...v)), 1e-9));
  }

  get star() {
    return this.teachers[0].length > 2 && this.kind.value === "star";
  }

  project(vector) {
    if (!this.star) return this.plane.map((p) => vector[p] ?? 0);
    const points = Math.min(this.teachers.length, vector.length);
    let x = 0, y = 0;
    for (let j = 0; j < points; j++) {
      const angle = Math.PI / 2 - (2 * Math.PI * j) / points;
      x += vector[j] * Math.cos(angle);
      y += vector[j] * Math.sin(angle);
    }
    return [x, y];
  }

  at(vector) {
    const unit = (SIZE / 2 - 24) / this.scale;
    const [x, y] = this.project(vector);
    return [230 + unit * x, SIZE / 2 + 6 - unit * y];
  }

  draw(frame, first) {
    this.frame = frame;
    this.first = first;
    this.redraw();
  }

  redraw() {
    if (!this.frame) return;
    const [x0, y0] = this.at([]);
    this.ground.replaceChildren();
    const unit = (SIZE / 2 - 24) / this.scale;
    element("circle", { cx: x0, cy: y0, r: unit, class: "frame" }, this.ground);
    element("line", { x1: 40, x2: 420, y1: y0, y2: y0, class: "tick" }, this.ground);
    element("line", { x1: x0, x2: x0, y1: 26, y2: SIZE - 4, class: "tick" }, this.ground);
    this.arrows.replaceChildren();
    this.teachers.forEach((v, j) => this.arrow(v, "teacher", 2.5, `v${j + 1}`, ["teacher", j]));
    this.frame.w.forEach((w, i) => this.arrow(w, "", 2.2, `w${i + 1}`, ["student", i], colour(i), dash(i)));
  }

  arrow(vector, name, width, label, what, stroke = null, pattern = "") {
    const [x0, y0] = this.at([]), [x, y] = this.at(vector);
    const look = stroke ? { style: `stroke:${stroke};fill:${stroke}` } : { class: name };
    element("line", { x1: x0, y1: y0, x2: x, y2: y, "stroke-width": width, "stroke-dasharray": pattern, ...look }, this.arrows);
    const held = !this.star && this.draggable(what[0]) && (what[0] === "teacher" || this.first);
    const tip = element("circle", { cx: x, cy: y, r: held ? 6 : 3.2, ...look }, this.arrows);
    const away = Math.hypot(x - x0, y - y0) > 14;
    if (away) element("text", { x: x + (x >= x0 ? 7 : -7), y: what[0] === "teacher" ? y - 5 : y + 15, "text-anchor": x >= x0 ? "start" : "end" }, this.arrows, label);
    if (!held) return;
    tip.classList.add("handle");
    tip.onpointerdown = (event) => this.drag(event, what);
  }

  drag(event, [kind, i]) {
    event.preventDefault();
    const list = kind === "teacher" ? this.teachers : this.frame.w;
    const box = this.root.getBoundingClientRect(), [x0, y0] = this.at([]);
    const unit = (SIZE / 2 - 24) / this.scale;
    const move = (e) => {
      const vector = [...list[i]];
      vector[this.plane[0]] = ((e.clientX - box.left) * 460 / box.width - x0) / unit;
      vector[this.plane[1]] = -((e.clientY - box.top) * SIZE / box.height - y0) / unit;
      list[i] = vector;
      this.redraw();
    };
    const up = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      this.dropped(kind, i, list[i], this.plane);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
  }
}
