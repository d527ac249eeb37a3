/**
 * Load over the stream: each connection keeps several frames in flight, each with many commands; acquire, heartbeat and
 * release in equal parts, on distinct resources. Prints commands a second and the time of a frame from sent to
 * answered.
 *
 *   node bench/load-stream.ts PORT CONNECTIONS SECONDS COMMANDS_A_FRAME FRAMES_IN_FLIGHT [CA_FILE]
 */
import { readFileSync } from "node:fs";
import { WebSocket } from "ws";
import { percentile } from "./children.ts";

const [port = 0, connections = 16, seconds = 5, perFrame = 64, inFlight = 2] = process.argv.slice(2).map(Number);
const [, , , , , , , caFile] = process.argv;
const ca = caFile === undefined ? null : readFileSync(caFile);
const latencies: number[] = [];
let count = 0;
let isWarm = false;
let isOver = false;

/** A reply's number and status and, for an acquire, the id of its first lease. */
const replies = /\{"id":(-?\d+),"status":(\d+)(?:,"body":\{"verdict":"GRANTED",[^[]*\[\{"id":"([^"]+)")?/g;

interface Lane {
  step: 0 | 1 | 2;
  readonly leaseIds: string[];
  awaited: number;
  sentAt: number;
}

/** Ids are lane * perFrame + place, so that a reply finds its lane without a map. */
class Client {
  private readonly socket: WebSocket;
  private readonly index: number;
  private readonly agentId: string;
  private readonly lanes: Lane[] = Array.from({ length: inFlight }, () => ({
    step: 0,
    leaseIds: [],
    awaited: 0,
    sentAt: 0,
  }));
  private cycle = 0;

  constructor(index: number) {
    this.index = index;
    this.agentId = `stream-${process.pid}-${index}`;
    const address = `${ca === null ? "ws" : "wss"}://127.0.0.1:${port}/v1/stream`;
    this.socket = new WebSocket(address, { perMessageDeflate: false, ...(ca !== null && { ca }) });
    this.socket.on("open", () =>
      this.socket.send(`{"id":-1,"op":"register_agent","input":{"agent_id":"${this.agentId}"}}`),
    );
    this.socket.on("message", (data) => this.receive(String(data)));
  }

  /** A regular expression instead of a parser: the load must cost less than what it measures. */
  private receive(text: string): void {
    for (const [, id, status, leaseId] of text.matchAll(replies)) {
      if (Number(status) >= 300) throw new Error(`Not a success: ${text.slice(0, 500)}`);
      if (id === "-1") {
        for (const lane of this.lanes.keys()) this.send(lane);
        continue;
      }
      const laneIndex = Math.floor(Number(id) / perFrame);
      const lane = this.lanes[laneIndex];
      if (lane === undefined) continue;
      if (lane.step === 0) lane.leaseIds[Number(id) % perFrame] = leaseId ?? "";
      if (--lane.awaited > 0) continue;
      if (isWarm && !isOver) {
        count += perFrame;
        latencies.push(performance.now() - lane.sentAt);
      }
      lane.step = ((lane.step + 1) % 3) as Lane["step"];
      if (!isOver) this.send(laneIndex);
    }
  }

  private send(laneIndex: number): void {
    const lane = this.lanes[laneIndex];
    if (lane === undefined) return;
    const commands: string[] = [];
    for (let place = 0; place < perFrame; place++) {
      const id = laneIndex * perFrame + place;
      if (lane.step === 0) {
        const resource = `FILE:/stream-${process.pid}/${this.index}/d${this.cycle % 50}/file-${this.cycle++}.ts`;
        commands.push(
          `{"id":${id},"op":"acquire","input":{"agent_id":"${this.agentId}","intents":[{"predicate":"MUTATES","resource":"${resource}"}],"ttl_ms":60000}}`,
        );
      } else {
        const op = lane.step === 1 ? "heartbeat" : "release_lease";
        commands.push(`{"id":${id},"op":"${op}","input":{"lease_id":"${lane.leaseIds[place]}"}}`);
      }
    }
    lane.awaited = perFrame;
    lane.sentAt = performance.now();
    this.socket.send(`[${commands.join(",")}]`);
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
