// The question: from the form, into the form, and in the address.

export const DEFAULT = {
  activation: "erf", teacher: { kind: "orthonormal", count: 8, dim: 9 }, students: 4, outgoing: "trained",
  sphere: false, bias: "none", start: { kind: "gaussian", std: 0.1, seed: 0 }, tolerance: 1e-6, then: [],
};

export function toFragment(question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return "#q=" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromFragment(fragment) {
  if (!fragment.startsWith("#q=")) return null;
  try {
    const text = atob(fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
    const question = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
    return { ...DEFAULT, ...question };
  } catch {
    return null;
  }
}

// The question from the random start of another seed.
export function withSeed(question, seed) {
  const { kind, std = 0.1 } = question.start;
  return { ...question, start: { kind: kind === "glorot" ? kind : "gaussian", std, seed }, then: [] };
}

const form = () => document.getElementById("question").elements;

function show(name, visible) {
  for (const element of document.querySelectorAll(`#question .${name}`)) element.hidden = !visible;
}

export function reveal() {
  const kind = form().teacher.value;
  show("count", kind === "orthonormal" || kind === "random");
  show("dim", kind === "orthonormal" || kind === "random");
  show("teacher-seed", kind === "random");
  show("angles", kind === "angles");
  show("file", kind === "vectors");
  const start = form().start.value;
  show("std", start === "gaussian" && !form().sphere.checked);
  show("free", !form().sphere.checked);
  show("seed", start !== "vectors");
}

export function fillForm(question) {
  const f = form();
  if (![...f.activation.options].some((o) => o.value === question.activation))
    f.activation.add(new Option(question.activation));
  f.activation.value = question.activation;
  const { teacher, start } = question;
  f.teacher.value = teacher.kind;
  f.count.value = teacher.count ?? teacher.angles?.length ?? teacher.incoming?.length ?? 8;
  f.dim.value = teacher.dim ?? 2;
  f["teacher-seed"].value = teacher.seed ?? 0;
  f.angles.value = (teacher.angles ?? [0, Math.PI / 2]).map((x) => +(x / Math.PI).toFixed(6)).join(", ");
  f.students.value = question.students;
  f.outgoing.value = question.outgoing;
  f.bias.value = question.bias;
  f.sphere.checked = question.sphere;
  f.start.value = start.kind;
  f.std.value = start.std ?? 0.1;
  f.seed.value = start.seed ?? 0;
  f.tolerance.value = question.tolerance;
  reveal();
}

// What the form says. `last` holds what a form cannot: drawn vectors and uploaded teachers.
export function readForm(last) {
  const f = form();
  const whole = (input) => Math.round(Number(input.value));
  const kind = f.teacher.value;
  let teacher = { kind, count: whole(f.count), dim: whole(f.dim) };
  if (kind === "random") teacher.seed = whole(f["teacher-seed"]);
  if (kind === "angles") {
    const typed = f.angles.value.split(",").map((x) => Number(x) * Math.PI);
    const same = last.teacher.angles?.length === typed.length
      && typed.every((x, i) => Math.abs(x - last.teacher.angles[i]) < 1e-5);
    teacher = { kind, angles: same ? last.teacher.angles : typed };
  }
  if (kind === "vectors") teacher = last.teacher.kind === "vectors" ? last.teacher : { kind };
  const start = f.start.value === "vectors" && last.start.kind === "vectors"
    ? last.start
    : { kind: f.start.value === "vectors" ? "gaussian" : f.start.value, std: Number(f.std.value), seed: whole(f.seed) };
  return {
    activation: f.activation.value, teacher, students: whole(f.students), outgoing: f.outgoing.value,
    sphere: f.sphere.checked, bias: f.bias.value, start, tolerance: Number(f.tolerance.value), then: [],
  };
}
