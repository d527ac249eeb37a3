/**
 * One connection that sends the mix, one command per call of `send`: acquire, heartbeat and release in equal parts, on
 * distinct resources. In mode `echo` every command is the acquire, for a bare server.
 */
import { connect, type Socket } from "node:net";

export type Mode = "mix" | "echo";

export class MixClient {
  /** Ready for the next command; false until it is connected. */
  isFree = false;
  private readonly socket: Socket;
  private readonly agentId: string;
  private readonly port: number;
  private readonly index: number;
  private readonly mode: Mode;
  private readonly answered: () => void;
  private received = "";
  private step = 0;
  private cycle = 0;
  private leaseId = "";
  private isOver = false;

  /** `answered` is called after every command, and once when the connection and its agent are ready. */
  constructor(port: number, index: number, mode: Mode, answered: () => void) {
    this.port = port;
    this.index = index;
    this.mode = mode;
    this.answered = answered;
    this.agentId = `load-${process.pid}-${index}`;
    this.socket = connect(port, "127.0.0.1").setNoDelay(true).setEncoding("latin1");
    this.socket.on("data", (text: string) => this.receive(text));
    this.socket.on("error", (error) => {
      if (!this.isOver) throw error;
    });
    this.socket.on("connect", () => {
      if (mode === "mix") this.send("/v1/agents", `{"agent_id":"${this.agentId}"}`);
      else this.beFree();
    });
  }

  sendNext(): void {
    this.isFree = false;
    this.step = (this.step % 3) + 1;
    if (this.mode === "echo" || this.step === 1) {
      const resource = `FILE:/load-${process.pid}/${this.index}/d${this.cycle % 50}/file-${this.cycle++}.ts`;
      this.send(
        "/v1/acquire",
        `{"agent_id":"${this.agentId}","intents":[{"predicate":"MUTATES","resource":"${resource}"}],"ttl_ms":60000}`,
      );
    } else if (this.step === 2) this.send(`/v1/leases/${this.leaseId}/heartbeat`, "{}");
    else this.send(`/v1/leases/${this.leaseId}/release`, "{}");
  }

  stop(): void {
    this.isOver = true;
    this.socket.destroy();
  }

  private send(path: string, body: string): void {
    this.socket.write(
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  /** Responses are small and come one at a time; each ends where its content length says. */
  private receive(text: string): void {
    this.received = this.received === "" ? text : this.received + text;
    const headEnd = this.received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const lengthAt = this.received.toLowerCase().indexOf("content-length: ");
    const length = Number.parseInt(this.received.slice(lengthAt + 16, lengthAt + 26), 10);
    if (this.received.length < headEnd + 4 + length) return;
    const answer = this.received;
    this.received = "";
    if (answer.charCodeAt(9) !== 0x32) throw new Error(`Not a success: ${answer}`);
    if (this.step === 1 && this.mode === "mix") {
      const at = answer.indexOf('"id":"') + 6;
      this.leaseId = answer.slice(at, answer.indexOf('"', at));
    }
    this.beFree();
  }

  private beFree(): void {
    this.isFree = true;
    if (!this.isOver) this.answered();
  }
}
