// One socket to the server. It reconnects by itself; every request has a number, and old answers are dropped.

export class Socket {
  constructor(hear, say) {
    this.hear = hear;
    this.say = say;
    this.next = 1;
    this.wait = 300;
    this.pending = null;
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(new URL("socket", location.href.split("#")[0]).href.replace(/^http/, "ws"));
    this.socket.onopen = () => {
      this.wait = 300;
      this.say("Ready.");
      if (this.pending) this.socket.send(JSON.stringify(this.pending));
    };
    this.socket.onmessage = (event) => {
      for (const message of JSON.parse(event.data)) this.hear(message);
    };
    this.socket.onclose = () => {
      this.say("The connection to the server is lost. Trying again…");
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(5000, 2 * this.wait);
    };
  }

  ask(request) {
    const message = { id: this.next++, ...request };
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    this.pending = request.do === "run" ? message : this.pending;
    return message.id;
  }

  settled() {
    this.pending = null;
  }

  cancel(id) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ id, do: "cancel" }));
  }
}
