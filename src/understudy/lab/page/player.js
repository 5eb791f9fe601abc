// Play, pause, step and scrub through the frames of a run.

const by = (id) => document.getElementById(id);

export class Player {
  constructor(show) {
    this.show = show;
    this.count = 0;
    this.at = 0;
    this.playing = false;
    this.drawn = 0;
    by("play").onclick = () => this.toggle();
    by("back").onclick = () => this.step(-1);
    by("forward").onclick = () => this.step(1);
    by("scrub").oninput = () => { this.pause(); this.go(Number(by("scrub").value)); };
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const own = event.key === " " ? "input, select, textarea, summary, button, pre" : "input, select, textarea, pre";
    if (event.target.closest(own)) return; // the element uses this key itself
    const does = { " ": () => this.toggle(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), Home: () => this.go(0), End: () => this.go(this.count - 1) }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  begin() {
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
    this.at = Math.max(0, Math.min(this.count - 1, index));
    by("scrub").value = this.at;
    const t = this.times?.[Math.floor(this.at)];
    by("now").textContent = t === undefined ? "t = 0" : `t = ${t === 0 ? 0 : t < 1e4 && t >= 0.01 ? t.toPrecision(3) : t.toExponential(1)}`;
    if (this.count) this.show(Math.floor(this.at));
  }

  step(by_) {
    this.pause();
    this.go(Math.floor(this.at) + by_);
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
      const next = this.at + ((now - last) / 1000) * 60 * speed;
      last = now;
      if (this.count && Math.floor(next) !== Math.floor(this.at)) this.drawn += 1;
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
