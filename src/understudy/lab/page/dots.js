// Loss at the end of many seeds, one mark each; its shape says what the point is.

import { Chart, HEIGHT, WIDTH, colour, element, linearTicks, logTicks } from "./chart.js";
import { scientific } from "./mathematics.js";

const LEAST = -32; // below rounding squared: drawn for a loss of 0
const SHAPES = {
  minimum: { points: 12, radius: 5, tone: colour(0), name: "minimum" }, // as good as a circle
  saddle: { points: 4, radius: 6.5, tone: colour(1), name: "saddle" },
  other: { points: 3, radius: 6.5, tone: colour(7), name: "other" },
};

const shapeOf = (kind) => SHAPES[kind.includes("saddle") ? "saddle" : kind] ?? SHAPES.other;
const height = (loss) => (loss > 0 ? Math.max(LEAST, Math.log10(loss)) : LEAST);

function polygon({ points, radius }, x, y) {
  const corner = (i) => -Math.PI / 2 + (2 * Math.PI * i) / points;
  return Array.from({ length: points }, (_, i) =>
    `${(x + radius * Math.cos(corner(i))).toFixed(2)},${(y + radius * Math.sin(corner(i))).toFixed(2)}`).join(" ");
}

export class Dots {
  constructor(figure, chosen) {
    this.chosen = chosen;
    this.chart = new Chart(figure, "Seeds", "seeds", "seed", "L at the end");
    Object.values(SHAPES).forEach((shape, i) => {
      const x = 130 + 82 * i;
      element("polygon", { points: polygon(shape, x, 15), style: `fill:${shape.tone}` }, this.chart.root);
      element("text", { x: x + 10, y: 19 }, this.chart.root, shape.name);
    });
    const middle = { x: WIDTH / 2 + 8, y: HEIGHT / 2, "text-anchor": "middle", class: "name" };
    this.hint = element("text", middle, this.chart.root, "“Try seeds” fills this picture.");
    this.clear();
  }

  clear() {
    this.found = [];
    this.hint.removeAttribute("visibility");
    this.chart.marks.replaceChildren();
    this.chart.axes([-1, 20], [-6, 0], linearTicks(0, 20), logTicks(-6, 0));
  }

  add(dot, largest) {
    this.found.push(dot);
    this.hint.setAttribute("visibility", "hidden");
    const heights = this.found.filter((d) => d.loss !== null).map((d) => height(d.loss));
    const y = [Math.floor(Math.min(...heights, 0) - 0.3), Math.ceil(Math.max(...heights, -6) + 0.3)];
    this.chart.axes([-1, largest + 1], y, linearTicks(0, largest), logTicks(...y));
    this.chart.marks.replaceChildren();
    for (const d of this.found) this.mark(d, y[1]);
  }

  // A loss that is not finite is drawn at the top.
  mark(dot, top) {
    const shape = shapeOf(dot.kind), at = dot.loss === null ? top : height(dot.loss);
    const points = polygon(shape, this.chart.x(dot.seed), this.chart.y(at));
    const words = `seed ${dot.seed}: ${dot.kind}, ${dot.label || "no label"}, L = ${scientific(dot.loss, 5)}`;
    const look = { points, class: "dot", style: `fill:${shape.tone}`, "data-seed": dot.seed };
    const made = element("polygon", { ...look, tabindex: 0, role: "button", "aria-label": words }, this.chart.marks);
    element("title", {}, made, words);
    made.onclick = () => this.chosen(dot);
    made.onkeydown = (event) => { if (event.key === "Enter") this.chosen(dot); };
  }
}
