// The verdict in words: what was shown, what each neuron became, and what can be done next.

import { colour } from "./chart.js";
import { decimal, indexed, scientific } from "./mathematics.js";

const by = (id) => document.getElementById(id);

function tag(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function button(text, attributes, action) {
  const made = tag("button", text, { type: "button", ...attributes });
  made.onclick = action;
  return made;
}

const full = (x) => (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e5 ? decimal(x, 9) : scientific(x, 2));

export function clearAnswer(text) {
  by("verdict").className = "empty";
  by("verdict").textContent = text;
  for (const id of ["numbers", "neurons", "actions", "evidence"]) by(id).replaceChildren();
}

// `act(step)` goes on from this end; `splittable`: whether a split would keep the function.
export function showAnswer(end, splittable, act) {
  const verdict = by("verdict");
  verdict.className = "";
  const below = end.label ? end.kind : "no structure is known for this point";
  verdict.replaceChildren(end.label || end.kind, tag("small", below));
  Object.assign(verdict.dataset, { word: "verdict", loss: end.loss ?? "", kind: end.kind, label: end.label });
  const rows = [["loss L", full(end.loss), "loss"]];
  if (end.theory !== null) rows.push(["L − theory’s", scientific(end.loss - end.theory), "theory"]);
  rows.push(["‖∇L‖", scientific(end.slope), "slope"], ["least λ", scientific(end.least), "least"]);
  if (end.flat) rows.push(["flat directions", String(end.flat), "flat"]);
  rows.push(["flow time", scientific(end.time), "time"], ["steps", String(end.steps), "time"]);
  by("numbers").replaceChildren(...rows.flatMap(([name, value, word]) =>
    [tag("dt", name, { "data-word": word, tabindex: 0 }), tag("dd", value)]));
  by("neurons").replaceChildren(table(end, splittable, act));
  by("actions").replaceChildren(...pushes(end, act));
  by("evidence").replaceChildren(...end.evidence.map((line) => tag("li", line)));
}

function table(end, splittable, act) {
  const made = tag("table"), head = tag("tr");
  const columns = [["neuron", "n"], ["became", "became"], ["a", "outgoing"], ...(end.bias ? [["c", "bias"]] : [])];
  head.append(...columns.map(([name, word]) => tag("th", name, { "data-word": word })), tag("th"));
  made.append(head);
  end.outgoing.forEach((a, i) => {
    const row = tag("tr"), name = tag("td"), dot = tag("span", "", { class: "swatch" }), last = tag("td");
    dot.style.background = colour(i);
    name.append(dot, tag("var", indexed("w", i + 1)));
    row.append(name, tag("td", words(end.neurons[i])), tag("td", decimal(a, 3)));
    if (end.bias) row.append(tag("td", decimal(end.bias[i], 3), { "data-bias": i }));
    const attributes = { "data-split": i, "data-word": "split" };
    if (splittable) last.append(button("split", attributes, () => act({ split: i, share: 0.5 })));
    row.append(last);
    made.append(row);
  });
  return made;
}

function words(neuron) {
  if (!neuron) return "–";
  const list = neuron.teachers.map((j) => indexed("v", j + 1)).join(", ");
  const signed = neuron.sign < 0 ? `−${list}` : list;
  if (neuron.role === "copy") return `copies ${signed}`;
  if (neuron.role === "average") return `averages ${list}`;
  if (neuron.role === "perturbed copy") return `nearly copies ${signed}`;
  if (neuron.role === "near average") return `nearly averages ${list}`;
  return neuron.role;
}

function pushes(end, act) {
  const one = (text, i, sign) =>
    button(text, { "data-push": i, "data-sign": sign, "data-word": "push" }, () => act({ push: i, sign }));
  if (!end.descending.length) return [one("push along the softest direction", 0, 1)];
  return end.descending.slice(0, 3).flatMap((value, i) =>
    [1, -1].map((sign) => one(`push ${sign > 0 ? "+" : "−"} along λ = ${scientific(value)}`, i, sign)));
}
