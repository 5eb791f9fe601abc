// Incoming vectors of teachers and students in a plane; their tips can be dragged, or moved with the arrow keys.
//
// In more than two dimensions there are two projections: onto two chosen directions, or the star, which sends the j-th
// direction of the teachers to the angle 2πj/k. There a copy lies at a point of the star and an average between points.
//
// `hands` says what may be moved and is told what was: draggable(kind), dropped(kind, i, vector, plane),
// added(vector), removed(i).

import { HEIGHT, WIDTH, colour, dash, element, heading } from "./chart.js";
import { indexed } from "./mathematics.js";

const MIDDLE = [WIDTH / 2, HEIGHT / 2 + 12], RADIUS = HEIGHT / 2 - 34;
const FARTHEST = 6; // students longer than so many times the longest teacher leave the picture
const KEYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const KEY_STEP = 0.05;
const TIP = 6; // radius of a tip that can be moved

export class Vectors {
  constructor(figure, hands) {
    this.hands = hands;
    this.root = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Vectors" }, figure);
    heading(this.root, "Vectors", "vectors");
    this.ground = element("g", {}, this.root);
    this.arrows = element("g", {}, this.root);
    this.root.ondblclick = (event) => this.doubleClick(event);
    this.plane = [0, 1];
    this.scale = 1;
    this.teachers = [];
    this.students = null;
    this.buildChoice(figure);
  }

  // Which projection, and onto which two directions.
  buildChoice(figure) {
    this.choice = document.createElement("div");
    this.choice.className = "projection";
    this.kind = document.createElement("select");
    this.kind.ariaLabel = "projection";
    this.kind.append(new Option("star"), new Option("plane"));
    this.kind.onchange = () => { this.fit(this.frames); this.redraw(); };
    this.choice.append(this.kind, " ");
    this.selects = [0, 1].map((i) => {
      const select = document.createElement("select");
      select.ariaLabel = i ? "vertical direction" : "horizontal direction";
      select.onchange = () => { this.plane[i] = Number(select.value); this.kind.value = "plane"; this.redraw(); };
      this.choice.append(select, i ? "" : " × ");
      return select;
    });
    figure.append(this.choice);
  }

  begin(teachers, frames) {
    const dim = teachers[0].length;
    if (this.teachers[0]?.length !== dim) {
      this.plane = this.plane.map((p, i) => (p < dim ? p : i));
      this.selects.forEach((select, i) => {
        select.replaceChildren(...teachers[0].map((_, j) => new Option(indexed("x", j + 1), j)));
        select.value = this.plane[i];
      });
      this.choice.hidden = dim <= 2;
    }
    this.teachers = teachers;
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
    this.scale = Math.min(largest, FARTHEST * Math.max(...this.teachers.map((v) => Math.hypot(...v)), 1e-9));
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

  // The place of a vector in the picture, and the vector at the place of a pointer.
  at(vector) {
    const [x, y] = this.project(vector), unit = RADIUS / this.scale;
    return [MIDDLE[0] + unit * x, MIDDLE[1] - unit * y];
  }

  under(event, vector) {
    const box = this.root.getBoundingClientRect(), unit = RADIUS / this.scale, found = [...vector];
    found[this.plane[0]] = ((event.clientX - box.left) * WIDTH / box.width - MIDDLE[0]) / unit;
    found[this.plane[1]] = -((event.clientY - box.top) * HEIGHT / box.height - MIDDLE[1]) / unit;
    return found;
  }

  draw(students, first) {
    this.students = students;
    this.first = first;
    this.redraw();
  }

  redraw() {
    if (!this.students) return;
    const [x, y] = MIDDLE, held = document.activeElement?.dataset?.tip;
    const tick = { class: "tick" };
    this.ground.replaceChildren();
    element("circle", { cx: x, cy: y, r: RADIUS / this.scale, class: "frame" }, this.ground);
    element("line", { x1: x - RADIUS - 18, x2: x + RADIUS + 18, y1: y, y2: y, ...tick }, this.ground);
    element("line", { x1: x, x2: x, y1: y - RADIUS - 10, y2: y + RADIUS + 10, ...tick }, this.ground);
    this.arrows.replaceChildren();
    this.teachers.forEach((v, j) => this.arrow("teacher", j, v));
    this.students.forEach((w, i) => this.arrow("student", i, w));
    if (held) this.arrows.querySelector(`[data-tip="${held}"]`)?.focus();
  }

  arrow(kind, i, vector) {
    const [x0, y0] = MIDDLE, [x, y] = this.at(vector), teacher = kind === "teacher";
    const look = teacher ? { class: "teacher" } : { style: `stroke:${colour(i)};fill:${colour(i)}` };
    const stroke = teacher ? { "stroke-width": 3 } : { "stroke-width": 2, "stroke-dasharray": dash(i) };
    element("line", { x1: x0, y1: y0, x2: x, y2: y, ...stroke, ...look }, this.arrows);
    const held = !this.star && this.hands.draggable(kind) && (teacher || this.first);
    const tip = element("circle", { cx: x, cy: y, r: held ? TIP : 3, "data-tip": `${kind}-${i}`, ...look }, this.arrows);
    this.name(indexed(teacher ? "v" : "w", i + 1), x - x0, y - y0, teacher ? null : i);
    if (!held) return;
    tip.classList.add("handle");
    tip.setAttribute("tabindex", 0);
    tip.setAttribute("aria-label", `tip of ${kind} ${i + 1}: arrow keys move it, Enter runs from there`);
    tip.onpointerdown = (event) => this.drag(event, kind, i);
    tip.onkeydown = (event) => this.key(event, kind, i);
  }

  // Teachers are named beyond their tips, students beside their arrows, at different places, so that few names collide.
  name(text, dx, dy, student) {
    const length = Math.hypot(dx, dy);
    if (length < 16) return;
    const along = student === null ? length + 12 : length * (0.86 - 0.14 * (student % 4));
    const aside = student === null ? 0 : 9;
    const x = MIDDLE[0] + (dx * along - dy * aside) / length, y = MIDDLE[1] + (dy * along + dx * aside) / length;
    const look = student === null ? {} : { style: `fill:${colour(student)}` };
    element("text", { x, y: y + 4, "text-anchor": "middle", class: "math name", ...look }, this.arrows, text);
  }

  list(kind) {
    return kind === "teacher" ? this.teachers : this.students;
  }

  drag(event, kind, i) {
    event.preventDefault();
    const list = this.list(kind);
    let moved = false;
    const move = (e) => { moved = true; list[i] = this.under(e, list[i]); this.redraw(); };
    const up = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      if (moved) this.hands.dropped(kind, i, list[i], this.plane);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
  }

  key(event, kind, i) {
    const list = this.list(kind);
    if (event.key === "Enter") return this.hands.dropped(kind, i, list[i], this.plane);
    if (!KEYS[event.key]) return;
    event.preventDefault();
    list[i] = [...list[i]];
    KEYS[event.key].forEach((step, axis) => { list[i][this.plane[axis]] += step * KEY_STEP * this.scale; });
    this.redraw();
  }

  // Removes the teacher whose tip is there, or adds one. While frames are played tips are drawn anew all the time, so
  // the event may not name the tip.
  doubleClick(event) {
    if (this.star || !this.hands.draggable("teacher")) return;
    const place = this.under(event, this.teachers[0]), [x, y] = this.at(place);
    const hit = this.teachers.findIndex((v) => Math.hypot(this.at(v)[0] - x, this.at(v)[1] - y) < TIP + 2);
    if (hit >= 0) this.hands.removed(hit);
    else this.hands.added(place);
  }
}
