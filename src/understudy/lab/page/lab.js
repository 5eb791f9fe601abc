// The page: asks the server, shows what comes back, keeps the question in the address.

import { clearAnswer, showAnswer } from "./answer.js";
import { enableExport } from "./export.js";
import { Dots, Pictures } from "./pictures.js";
import { Player } from "./player.js";
import { Socket } from "./socket.js";
import { DEFAULT, fillForm, fromFragment, readForm, reveal, toFragment } from "./state.js";
import { WORDS } from "./words.js";

const by = (id) => document.getElementById(id);
const say = (text) => { by("status").textContent = text; };
const complain = (text) => { by("complaint").hidden = !text; by("complaint").textContent = text ?? ""; };

const state = { question: fromFragment(location.hash) ?? DEFAULT, end: null, running: null, trying: null, begin: null };
window.lab = state; // for tests, and for the curious

const pictures = new Pictures(dropped, draggable);
const player = new Player((index) => pictures.show(index));
const dots = new Dots((seed) => ask({ ...state.question, start: { kind: randomKind(), std: state.question.start.std ?? 0.1, seed }, then: [] }));
const socket = new Socket(hear, say);
const randomKind = () => (state.question.start.kind === "glorot" ? "glorot" : "gaussian");
state.player = player;
state.pictures = pictures;

function ask(question) {
  if (state.running !== null) socket.cancel(state.running);
  complain(null);
  state.question = question;
  state.end = null;
  history.replaceState(null, "", toFragment(question));
  fillForm(question);
  clearAnswer("Running…");
  player.ended = false;
  by("stop").disabled = false;
  state.asked = performance.now();
  state.running = socket.ask({ do: "run", question });
  say("Compiling…");
}

const hears = {
  queued(message) {
    if (message.busy >= message.workers) say("Waiting for a free process…");
  },
  begin(message) {
    state.begin = message;
    pictures.begin(message.teachers);
    player.begin();
    say(message.parts > 1 ? `Compiling… (part ${message.part + 1} of ${message.parts})` : "Compiling…");
  },
  frames(message) {
    state.firstFrame ??= performance.now() - state.asked;
    pictures.add(message.frames);
    player.extend(pictures.frames.map((f) => f.t));
    say(`Following the flow, t = ${message.frames.at(-1).t.toPrecision(2)}`);
  },
  end(message) {
    state.end = message;
    player.ended = true;
    const act = (step) => ask({ ...state.question, then: [...state.question.then, step] });
    showAnswer(message, act);
    if (message.loss === null) complain("The run left the range of double precision: its numbers are not finite. Try a smaller start.");
  },
  done() {
    finish("Done.");
  },
  error(message) {
    finish("Stopped.");
    complain(message.message);
    if (!state.end) clearAnswer("No answer.");
  },
  cancelled() {
    finish("Stopped.");
  },
};

function finish(text) {
  say(text);
  state.running = null;
  socket.settled();
  by("stop").disabled = true;
}

function hear(message) {
  if (message.id === state.trying && message.type !== "queued") {
    if (message.type === "seed") dots.add(message, state.tried);
    else {
      if (message.type === "error") complain(message.message);
      state.trying = null;
      say(message.type === "done" ? "All seeds have ended." : "Stopped.");
    }
  } else if (message.id === state.running || message.id === null) hears[message.type]?.(message);
}

function draggable(kind) {
  if (kind === "teacher") return state.question.teacher.kind === "angles";
  return state.question.then.length === 0 && state.begin?.incoming[0].length <= 50;
}

// A tip was dropped: the new start, or the new angles, make a new question.
function dropped(kind, i, vector, plane) {
  const question = structuredClone(state.question);
  if (kind === "teacher") {
    question.teacher.angles[i] = Math.atan2(vector[1], vector[0]);
    return ask({ ...question, then: [] });
  }
  const { incoming, outgoing, bias, offset, axes } = state.begin;
  const rows = incoming.map((row) => [...row]), before = pictures.frames[0].w[i];
  for (const p of plane) {
    const moved = vector[p] - before[p];
    (axes[p] ?? []).forEach((x, j) => { rows[i][j] += moved * x; });
  }
  const shift = bias === null ? {} : { bias, offset };
  ask({ ...question, start: { kind: "vectors", incoming: rows, outgoing, ...shift }, then: [] });
}

by("question").onsubmit = (event) => {
  event.preventDefault();
  ask(readForm(state.question));
};
by("question").onchange = (event) => {
  reveal();
  if (event.target.name === "count" && by("question").elements.teacher.value === "orthonormal")
    by("question").elements.dim.value = Number(event.target.value) + 1;
  if (event.target.name === "file") upload(event.target.files[0]);
};
by("stop").onclick = () => state.running !== null && socket.cancel(state.running);
by("try-seeds").onclick = () => {
  dots.clear();
  state.tried = Number(by("question").elements.many.value);
  const question = { ...readForm(state.question), then: [] };
  state.trying = socket.ask({ do: "seeds", question, count: state.tried });
  say(`Trying ${state.tried} seeds…`);
};

async function upload(file) {
  if (!file) return;
  const answer = await fetch(`teacher?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  const content = await answer.json();
  if (!answer.ok) return complain(content.message);
  ask({ ...readForm(state.question), teacher: content, then: [] });
}

by("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
function setTheme(name) {
  document.documentElement.dataset.theme = name;
}
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

const tip = by("tip");
for (const kind of ["pointerover", "focusin"])
  document.addEventListener(kind, (event) => {
    const owner = event.target.closest?.("[data-word]");
    tip.hidden = !owner;
    if (!owner) return;
    tip.textContent = WORDS[owner.dataset.word] ?? "";
    const box = owner.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - 340))}px`;
    tip.style.top = box.bottom + 90 < innerHeight ? `${box.bottom + 6}px` : `${Math.max(8, box.top - 80)}px`;
  });

fetch("gallery.json").then((answer) => answer.json()).then(({ gallery, opened }) => {
  for (const { name, text, fragment } of [...opened, ...gallery]) {
    const item = document.createElement("li"), button = document.createElement("button"), small = document.createElement("small");
    button.type = "button";
    small.textContent = text;
    button.append(name, small);
    button.onclick = () => { by("gallery").open = false; ask(fromFragment("#" + fragment)); };
    button.disabled = !fragment;
    item.append(button);
    by("gallery-list").append(item);
  }
});

addEventListener("hashchange", () => {
  const question = fromFragment(location.hash);
  if (question) ask(question);
  else complain("The link is damaged: its last part cannot be read.");
});
const damaged = location.hash && !fromFragment(location.hash);
enableExport(state, say);
ask(state.question);
if (damaged) complain("The link is damaged: its last part cannot be read. This is the default question.");
