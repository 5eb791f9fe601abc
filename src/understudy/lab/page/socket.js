// One socket to the server. It reconnects by itself and asks again what was not answered; every request has a number.

const LOST = "The connection to the server is lost; trying again. After a restart, use the address that it prints.";
const SHORTEST_WAIT = 300, LONGEST_WAIT = 5000; // milliseconds

export class Socket {
  constructor(hear, say) {
    this.hear = hear;
    this.say = say;
    this.next = 1;
    this.wait = SHORTEST_WAIT;
    this.pending = new Map(); // requests without a last answer, by their numbers
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(new URL("socket", location.href.split("#")[0]).href.replace(/^http/, "ws"));
    this.socket.onopen = () => {
      this.wait = SHORTEST_WAIT;
      this.say("Ready.");
      for (const message of this.pending.values()) this.send(message);
    };
    this.socket.onmessage = (event) => {
      for (const message of JSON.parse(event.data)) {
        if (["done", "error", "cancelled"].includes(message.type)) this.pending.delete(message.id);
        this.hear(message);
      }
    };
    this.socket.onclose = () => {
      this.say(LOST);
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(LONGEST_WAIT, 2 * this.wait);
    };
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  ask(request) {
    const message = { id: this.next++, ...request };
    this.pending.set(message.id, message);
    this.send(message);
    return message.id;
  }

  cancel(id) {
    this.pending.delete(id);
    this.send({ id, do: "cancel" });
  }
}
