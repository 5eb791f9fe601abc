// Student-teacher correlations as a heat map: blue +1, white 0, orange -1, with the number in large cells.

import { element } from "./chart.js";

const WIDTH = 460, HEIGHT = 270, LEFT = 42, TOP = 44, BOTTOM = 12;

function shade(u) {
  const target = u >= 0 ? [0, 98, 168] : [205, 86, 0];
  const share = Math.min(1, Math.abs(u)) ** 0.8;
  return `rgb(${target.map((c) => Math.round(250 + share * (c - 250))).join(" ")})`;
}

export class Heat {
  constructor(figure) {
    this.root = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Correlations" }, figure);
    element("text", { x: 12, y: 19, class: "title" }, this.root, "Cosine of student and teacher");
    this.cells = element("g", {}, this.root);
    this.shape = "";
  }

  draw(cosines) {
    const n = cosines.length, k = cosines[0].length;
    if (this.shape !== `${n} ${k}`) this.build(n, k);
    cosines.forEach((row, i) => row.forEach((u, j) => {
      const { box, text } = this.grid[i][j];
      box.style.fill = shade(u);
      if (text) {
        text.textContent = u.toFixed(2);
        text.style.fill = Math.abs(u) > 0.55 ? "#fff" : "#222";
      }
    }));
  }

  build(n, k) {
    this.shape = `${n} ${k}`;
    this.cells.replaceChildren();
    const w = Math.min(56, (WIDTH - LEFT - 10) / k), h = Math.min(32, (HEIGHT - TOP - BOTTOM) / n);
    for (let j = 0; j < k; j++)
      if (w > 15 || j % 5 === 0)
        element("text", { x: LEFT + (j + 0.5) * w, y: TOP - 6, "text-anchor": "middle" }, this.cells, `v${j + 1}`);
    this.grid = [];
    for (let i = 0; i < n; i++) {
      if (h > 11) element("text", { x: LEFT - 6, y: TOP + (i + 0.5) * h + 4, "text-anchor": "end" }, this.cells, `w${i + 1}`);
      this.grid.push([]);
      for (let j = 0; j < k; j++) {
        const box = element("rect", { x: LEFT + j * w, y: TOP + i * h, width: w - 1, height: h - 1 }, this.cells);
        const room = w > 34 && h > 16;
        const at = { x: LEFT + (j + 0.5) * w, y: TOP + (i + 0.5) * h + 4, "text-anchor": "middle" };
        this.grid[i].push({ box, text: room ? element("text", at, this.cells, "") : null });
      }
    }
  }
}
