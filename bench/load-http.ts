/**
 * Load over HTTP from plain sockets, one request in flight on each. `mix`: acquire, heartbeat, release in equal parts,
 * on distinct resources. `echo`: the acquire body, answered by a bare server. Prints requests a second and latencies.
 *
 *   node bench/load-http.ts PORT CONNECTIONS SECONDS mix|echo
 */
import { connect, type Socket } from "node:net";
import { percentile } from "./children.ts";

const [port = 0, connections = 64, seconds = 5] = process.argv.slice(2, 5).map(Number);
const mode = process.argv[5] ?? "mix";
const latencies: number[] = [];
let count = 0;
let isWarm = false;
let isOver = false;

function requestText(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

class Client {
  private readonly socket: Socket;
  private readonly agentId: string;
  private readonly index: number;
  private received = "";
  private step = 0;
  private cycle = 0;
  private leaseId = "";
  private sentAt = 0;

  constructor(index: number) {
    this.index = index;
    this.agentId = `load-${process.pid}-${index}`;
    this.socket = connect(port, "127.0.0.1").setNoDelay(true).setEncoding("latin1");
    this.socket.on("data", (text: string) => this.receive(text));
    this.socket.on("error", (error) => {
      if (!isOver) throw error;
    });
    this.socket.on("connect", () => {
      if (mode === "mix") this.send("/v1/agents", `{"agent_id":"${this.agentId}"}`);
      else this.next();
    });
  }

  private send(path: string, body: string): void {
    this.sentAt = performance.now();
    this.socket.write(requestText(path, body));
  }

  /** Answers are small and come one at a time; a whole one ends where its length says. */
  private receive(text: string): void {
    this.received = this.received === "" ? text : this.received + text;
    const headEnd = this.received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const lengthAt = this.received.toLowerCase().indexOf("content-length: ");
    const length = Number.parseInt(this.received.slice(lengthAt + 16, lengthAt + 26), 10);
    if (this.received.length < headEnd + 4 + length) return;
    const answer = this.received;
    this.received = "";
    if (isWarm && !isOver) {
      count++;
      latencies.push(performance.now() - this.sentAt);
    }
    if (isOver) return;
    if (answer.charCodeAt(9) !== 0x32) throw new Error(`Not a success: ${answer}`);
    if (this.step === 1 && mode === "mix") {
      const at = answer.indexOf('"id":"') + 6;
      this.leaseId = answer.slice(at, answer.indexOf('"', at));
    }
    this.next();
  }

  private next(): void {
    this.step = (this.step % 3) + 1;
    if (mode === "echo" || this.step === 1) {
      const resource = `FILE:/load-${process.pid}/${this.index}/d${this.cycle % 50}/file-${this.cycle++}.ts`;
      this.send(
        "/v1/acquire",
        `{"agent_id":"${this.agentId}","intents":[{"predicate":"MUTATES","resource":"${resource}"}],"ttl_ms":60000}`,
      );
    } else if (this.step === 2) this.send(`/v1/leases/${this.leaseId}/heartbeat`, "{}");
    else this.send(`/v1/leases/${this.leaseId}/release`, "{}");
  }
}

for (let index = 0; index < connections; index++) new Client(index);
await new Promise((resolve) => setTimeout(resolve, 1_500));
isWarm = true;
const began = performance.now();
await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
isOver = true;
const took = (performance.now() - began) / 1000;
latencies.sort((a, b) => a - b);
console.log(JSON.stringify({ rate: count / took, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }));
process.exit(0);
