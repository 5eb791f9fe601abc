// Play, pause, step and scrub through the frames of a run.

import { scientific } from "./mathematics.js";

const PER_SECOND = 60; // frames at speed 1

const by = (id) => document.getElementById(id);

export class Player {
  constructor(show) {
    this.show = show;
    this.count = 0;
    this.at = 0;
    this.playing = false;
    this.ended = false; // whether the last frame has come
    this.drawn = 0; // how often another frame was shown, for tests
    by("play").onclick = () => this.toggle();
    by("back").onclick = () => this.step(-1);
    by("forward").onclick = () => this.step(1);
    by("scrub").oninput = () => this.jump(Number(by("scrub").value));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const own = event.key === " " ? "input, select, summary, button, a, pre" : "input, select, pre, .handle";
    if (event.target.closest(own)) return; // the element uses this key itself
    const does = {
      " ": () => this.toggle(),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      Home: () => this.jump(0),
      End: () => this.jump(this.count - 1),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  begin() {
    this.ended = false;
    this.count = 0;
    this.go(0);
    this.play();
  }

  extend(times) {
    this.times = times;
    this.count = times.length;
    by("scrub").max = Math.max(0, this.count - 1);
    if (this.at >= this.count) this.go(this.count - 1);
  }

  go(index) {
    const before = Math.floor(this.at);
    this.at = Math.max(0, Math.min(this.count - 1, index));
    if (Math.floor(this.at) !== before) this.drawn += 1;
    by("scrub").value = this.at;
    const t = this.times?.[Math.floor(this.at)];
    by("now").textContent = `t = ${scientific(t ?? 0, 2)}`;
    if (this.count) this.show(Math.floor(this.at));
  }

  jump(index) {
    this.pause();
    this.go(index);
  }

  step(frames) {
    this.jump(Math.floor(this.at) + frames);
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.at >= this.count - 1) this.go(0);
    this.play();
  }

  play() {
    by("play").textContent = "❚❚";
    if (this.playing) return;
    this.playing = true;
    let last = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      const speed = Number(by("speed").value);
      const next = this.at + ((now - last) / 1000) * PER_SECOND * speed;
      last = now;
      if (next < this.count - 1 || !this.ended) this.go(Math.min(next, this.count - 1));
      else { this.go(this.count - 1); this.pause(); return; }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    by("play").textContent = "▶";
  }
}
