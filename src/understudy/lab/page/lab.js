// The page: asks the server, shows what comes back, keeps the question in the address.

import { clearAnswer, showAnswer } from "./answer.js";
import { Dots } from "./dots.js";
import { enableExport } from "./export.js";
import { fillGallery } from "./listing.js";
import { scientific } from "./mathematics.js";
import { Pictures } from "./pictures.js";
import { Player } from "./player.js";
import { Socket } from "./socket.js";
import { DEFAULT, fillForm, fromFragment, readForm, reveal, toFragment, withSeed } from "./state.js";
import { switchTheme } from "./theme.js";
import { enableTips } from "./tips.js";

const LARGEST_DRAGGED = 50; // dimensions; in more, the vectors would make the address too long
const DAMAGED = "The link is damaged: its last part cannot be read.";
const TROUBLES = {
  "not finite": "The run left the range of double precision: its numbers are not finite. Try a smaller start.",
  "step limit": "The run used up its steps before it came to rest. Try a smaller start, or a larger tolerance.",
};

const by = (id) => document.getElementById(id);
const say = (text) => { by("status").textContent = text; };
const complain = (text) => { by("complaint").hidden = !text; by("complaint").textContent = text ?? ""; };

const state = { question: fromFragment(location.hash) ?? DEFAULT, end: null, running: null, trying: null, begin: null };
window.lab = state; // for tests, and for the curious

const pictures = new Pictures({ draggable, dropped, added, removed });
const player = new Player((index) => pictures.show(index));
const dots = new Dots(by("seeds"), (dot) => dot.question && ask(dot.question));
const socket = new Socket(hear, say);
Object.assign(state, { player, pictures });

function ask(question) {
  if (state.running !== null) socket.cancel(state.running);
  complain(null);
  state.question = question;
  state.end = null;
  history.replaceState(null, "", toFragment(question));
  fillForm(question);
  clearAnswer("Running…");
  by("stop").disabled = false;
  state.running = socket.ask({ do: "run", question });
}

// What is done with the messages of a run.
const hears = {
  queued({ busy, workers, ready }) {
    if (!ready) say("Loading the engine…");
    else if (busy >= workers) say("Waiting for a free process…");
  },
  compiling() {
    say("Compiling…");
  },
  begin(message) {
    state.begin = message;
    pictures.begin(message.teachers);
    player.begin();
    if (message.parts > 1) say(`Part ${message.part + 1} of ${message.parts}`);
  },
  frames({ frames }) {
    if (!frames.length) return;
    state.firstStep ??= performance.now(); // since the page was opened
    pictures.add(frames);
    player.extend(pictures.frames.map((f) => f.t));
    say(`Following the flow, t = ${scientific(frames.at(-1).t)}`);
  },
  end(message) {
    state.end = message;
    player.ended = true;
    const { outgoing, sphere, then } = state.question;
    showAnswer(message, outgoing === "trained" && !sphere, (step) => ask({ ...state.question, then: [...then, step] }));
    complain(message.loss === null ? TROUBLES["not finite"] : TROUBLES[message.ending]);
  },
  done() {
    finish("Done.");
  },
  error({ message }) {
    finish("Stopped.");
    complain(message);
    if (!state.end) clearAnswer("No answer.");
  },
  cancelled() {
    finish("Stopped.");
  },
};

// What is done with the messages of many seeds.
const counts = {
  seed(message) {
    dots.add({ ...message, question: withSeed(state.tried, message.seed) }, state.many - 1);
    say(`${dots.found.length} of ${state.many} seeds have ended.`);
  },
  compiling: hears.compiling,
  done() {
    finish("All seeds have ended.", "trying");
  },
  error({ message }) {
    finish("Stopped.", "trying");
    complain(message);
  },
  cancelled() {
    finish("Stopped.", "trying");
  },
};

function finish(text, what = "running") {
  say(text);
  state[what] = null;
  by("stop").disabled = state.running === null && state.trying === null;
}

function hear(message) {
  if (message.id === state.trying) counts[message.type]?.(message);
  else if (message.id === state.running || message.id === null) hears[message.type]?.(message);
}

function draggable(kind) {
  if (kind === "teacher") return state.question.teacher.kind === "angles";
  return state.question.then.length === 0 && state.begin?.incoming[0].length <= LARGEST_DRAGGED;
}

const askAngles = (angles) => ask({ ...state.question, teacher: { kind: "angles", angles }, then: [] });
const angleOf = (vector) => Math.atan2(vector[1], vector[0]);

// A tip was dropped: the new start, or the new angles, make a new question.
function dropped(kind, i, vector, plane) {
  const { question, begin } = state;
  if (kind === "teacher") return askAngles(question.teacher.angles.with(i, angleOf(vector)));
  const rows = begin.incoming.map((row) => [...row]), before = pictures.frames[0].w[i];
  for (const p of plane)
    (begin.axes[p] ?? []).forEach((x, j) => { rows[i][j] += (vector[p] - before[p]) * x; });
  const shift = begin.bias === null ? {} : { bias: begin.bias, offset: begin.offset };
  ask({ ...question, start: { kind: "vectors", incoming: rows, outgoing: begin.outgoing, ...shift }, then: [] });
}

function added(vector) {
  askAngles([...state.question.teacher.angles, angleOf(vector)]);
}

function removed(i) {
  const { angles } = state.question.teacher;
  if (angles.length > 1) askAngles(angles.toSpliced(i, 1));
}

async function upload(file) {
  if (!file) return;
  const answer = await fetch(`teacher?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  const content = await answer.json();
  if (!answer.ok) return complain(content.message);
  const { teacher, activation } = content, asked = readForm(state.question);
  ask({ ...asked, teacher, activation: activation ?? asked.activation, then: [] });
}

const form = by("question");
form.onsubmit = (event) => {
  event.preventDefault();
  ask(readForm(state.question));
};
form.onchange = ({ target }) => {
  reveal();
  if (target.name === "count" && form.elements.teacher.value === "orthonormal")
    form.elements.dim.value = Number(target.value) + 1;
  if (target.name === "file") upload(target.files[0]);
};
by("stop").onclick = () => {
  for (const what of ["running", "trying"])
    if (state[what] !== null) { socket.cancel(state[what]); finish("Stopped.", what); }
};
by("try-seeds").onclick = () => {
  if (state.trying !== null) socket.cancel(state.trying);
  complain(null);
  dots.clear();
  state.many = Number(form.elements.many.value);
  state.tried = { ...readForm(state.question), then: [] };
  state.trying = socket.ask({ do: "seeds", question: state.tried, count: state.many });
  by("stop").disabled = false;
  say(`Trying ${state.many} seeds…`);
};
by("theme").onclick = () => {
  switchTheme();
  player.go(player.at); // the heat map computes its colours itself
};
addEventListener("hashchange", () => {
  const question = fromFragment(location.hash);
  if (question) ask(question);
  else complain(DAMAGED);
});

const damaged = location.hash && !fromFragment(location.hash);
enableExport(state, say);
enableTips();
fillGallery(ask, dots);
ask(state.question);
if (damaged) complain(`${DAMAGED} This is the default question.`);
