// The verdict in words: what was shown, what each neuron became, and what can be done next.

import { colour } from "./chart.js";

const by = (id) => document.getElementById(id);

function tag(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const number = (x) => (x === null || x === undefined ? "not finite" : Math.abs(x) >= 1e-4 && Math.abs(x) < 1e5 ? x.toFixed(9) : x.toExponential(2));
const brief = (x) => (x === null || x === undefined ? "–" : x.toExponential(1));

export function clearAnswer(text) {
  by("verdict").className = "empty";
  by("verdict").textContent = text;
  for (const id of ["numbers", "neurons", "actions", "evidence"]) by(id).replaceChildren();
}

export function showAnswer(end, act) {
  const verdict = by("verdict");
  verdict.className = "";
  verdict.dataset.word = "verdict";
  verdict.replaceChildren(end.label || end.kind, tag("small", end.label ? end.kind : "no structure is known for this point"));
  verdict.dataset.loss = end.loss === null ? "" : String(end.loss);
  verdict.dataset.kind = end.kind;
  verdict.dataset.label = end.label;
  const rows = [["loss", number(end.loss), "loss"]];
  if (end.theory !== null && end.theory !== undefined) rows.push(["loss - theory", brief(end.loss - end.theory), "gap"]);
  rows.push(["‖∇L‖", brief(end.slope), "slope"], ["least λ", brief(end.least), "least"]);
  if (end.flat) rows.push(["flat directions", String(end.flat), "flat"]);
  rows.push(["time", brief(end.time), "time"], ["steps", String(end.steps), "time"]);
  by("numbers").replaceChildren(...rows.flatMap(([name, value, word]) => [tag("dt", name, { "data-word": word }), tag("dd", value)]));
  by("neurons").replaceChildren(table(end, act));
  by("actions").replaceChildren(...pushes(end, act));
  by("evidence").replaceChildren(...end.evidence.map((line) => tag("li", line)));
}

function table(end, act) {
  const made = tag("table");
  const head = tag("tr");
  for (const name of ["neuron", "became", "a", ...(end.bias ? ["c"] : []), ""]) head.append(tag("th", name));
  made.append(head);
  end.outgoing.forEach((a, i) => {
    const row = tag("tr"), name = tag("td"), dot = tag("span", "", { class: "swatch" });
    dot.style.background = colour(i);
    name.append(dot, `w${i + 1}`);
    row.append(name, tag("td", words(end.neurons[i])), tag("td", Array.isArray(a) ? "…" : a.toFixed(3)));
    if (end.bias) row.append(tag("td", end.bias[i].toFixed(3), { "data-bias": i }));
    const button = tag("button", "split", { type: "button", "data-split": i, title: "Replace this neuron by two halves and go on" });
    button.onclick = () => act({ split: i, share: 0.5 });
    const cell = tag("td");
    cell.append(button);
    row.append(cell);
    made.append(row);
  });
  return made;
}

function words(neuron) {
  if (!neuron) return "–";
  const list = neuron.teachers.map((j) => `v${j + 1}`).join(", ");
  const sign = neuron.sign < 0 ? "-" : "";
  if (neuron.role === "copy") return `copies ${sign}${list}`;
  if (neuron.role === "average") return `averages ${list}`;
  if (neuron.role === "perturbed copy") return `nearly copies ${sign}${list}`;
  if (neuron.role === "near average") return `nearly averages ${list}`;
  return neuron.role;
}

function pushes(end, act) {
  if (!end.descending.length) {
    const button = tag("button", "push off along the softest direction", { type: "button", "data-push": 0 });
    button.onclick = () => act({ push: 0, sign: 1 });
    return [button];
  }
  return end.descending.slice(0, 3).flatMap((value, i) => [1, -1].map((sign) => {
    const label = `push ${sign > 0 ? "+" : "-"} along λ = ${value.toExponential(1)}`;
    const button = tag("button", label, { type: "button", "data-push": i, "data-sign": sign });
    button.onclick = () => act({ push: i, sign });
    return button;
  }));
}
