// Student-teacher correlations as a heat map: blue +1, orange -1, with the number in large cells.

import { HEIGHT, WIDTH, element, heading } from "./chart.js";
import { decimal, indexed } from "./mathematics.js";

const LEFT = 36, TOP = 50, RIGHT = 10, BOTTOM = 10;
const SHADES = {
  light: { zero: [250, 250, 250], plus: [0, 98, 168], minus: [190, 76, 0], faint: "#222", strong: "#fff" },
  dark: { zero: [30, 37, 47], plus: [110, 190, 255], minus: [255, 150, 70], faint: "#e8ecf2", strong: "#10141a" },
};

function shade(u, { zero, plus, minus }) {
  const target = u >= 0 ? plus : minus, share = Math.min(1, Math.abs(u)) ** 0.8;
  return `rgb(${target.map((c, i) => Math.round(zero[i] + share * (c - zero[i]))).join(" ")})`;
}

export class Heat {
  constructor(figure) {
    const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Correlations" };
    this.root = element("svg", size, figure);
    heading(this.root, "Cosine of student and teacher", "heat");
    this.cells = element("g", {}, this.root);
    this.shape = "";
  }

  draw(cosines) {
    const n = cosines.length, k = cosines[0].length;
    if (this.shape !== `${n} ${k}`) this.build(n, k);
    const shades = SHADES[document.documentElement.dataset.theme];
    cosines.forEach((row, i) => row.forEach((u, j) => {
      const { box, text } = this.grid[i][j];
      box.style.fill = shade(u, shades);
      if (text) {
        text.textContent = decimal(Math.abs(u) < 0.005 ? 0 : u, 2);
        text.style.fill = Math.abs(u) > 0.5 ? shades.strong : shades.faint;
      }
    }));
  }

  build(n, k) {
    this.shape = `${n} ${k}`;
    this.cells.replaceChildren();
    const w = Math.min(80, (WIDTH - LEFT - RIGHT) / k), h = Math.min(48, (HEIGHT - TOP - BOTTOM) / n);
    const room = w > 30 && h > 14, middle = { "text-anchor": "middle" };
    for (let j = 0; j < k; j++) {
      const above = { x: LEFT + (j + 0.5) * w, y: TOP - 6, ...middle, class: "math" };
      if (w > 17 || j % 5 === 0) element("text", above, this.cells, indexed("v", j + 1));
    }
    this.grid = Array.from({ length: n }, (_, i) => {
      const y = TOP + i * h, line = y + h / 2 + 4;
      const left = { x: LEFT - 6, y: line, "text-anchor": "end", class: "math" };
      if (h > 11 || i % 5 === 0) element("text", left, this.cells, indexed("w", i + 1));
      return Array.from({ length: k }, (_, j) => {
        const box = element("rect", { x: LEFT + j * w, y, width: w - 1, height: h - 1 }, this.cells);
        const at = { x: LEFT + (j + 0.5) * w, y: line, ...middle, style: `font-size:${Math.min(12, w / 3.6)}px` };
        return { box, text: room ? element("text", at, this.cells, "") : null };
      });
    });
  }
}
