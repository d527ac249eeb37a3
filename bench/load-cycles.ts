/**
 * Lock cycles over one bare stream connection: N callers, each takes a lock on a new name and releases it. A caller
 * sends its next command as soon as its answer is there, in a frame of its own ("own") or with the others of the same
 * turn in one frame ("turn"), as clients do. Prints cycles a second and the processor time of this process a cycle.
 *
 *   node bench/load-cycles.ts PORT CALLERS SECONDS own|turn
 */
import { WebSocket } from "ws";

const [port = 0, callers = 1, seconds = 3] = process.argv.slice(2, 5).map(Number);
const isTurn = process.argv[5] === "turn";
/** A reply's number and status and, for an acquire, the id of its lease. */
const replies = /\{"id":(-?\d+),"status":(\d+)(?:,"body":\{"verdict":"GRANTED",[^[]*\[\{"id":"([^"]+)")?/g;

const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
const held: (string | null)[] = Array.from({ length: callers }, () => null);
let outbox: string[] = [];
let cycles = 0;
let names = 0;
let isCounting = false;
let registered = 0;

socket.on("open", () => {
  for (let caller = 0; caller < callers; caller++)
    send(`{"id":${caller - callers},"op":"register_agent","input":{"agent_id":"caller-${process.pid}-${caller}"}}`);
});
socket.on("message", (data) => {
  for (const [, id, status, leaseId] of String(data).matchAll(replies)) {
    if (Number(status) >= 300) throw new Error(`not a success: ${String(data).slice(0, 500)}`);
    const caller = Number(id);
    if (caller < 0) {
      if (++registered === callers) for (let each = 0; each < callers; each++) acquire(each);
    } else if (leaseId !== undefined) {
      held[caller] = leaseId;
      send(`{"id":${caller},"op":"release_lease","input":{"lease_id":"${leaseId}"}}`);
    } else {
      if (isCounting) cycles++;
      acquire(caller);
    }
  }
});

function acquire(caller: number): void {
  held[caller] = null;
  const resource = `LOCK:/${process.pid}/${caller}/${names++}`;
  send(
    `{"id":${caller},"op":"acquire","input":{"agent_id":"caller-${process.pid}-${caller}","intents":[{"predicate":"MUTATES","resource":"${resource}"}],"ttl_ms":60000,"request_id":"req-${process.pid}-${names}"}}`,
  );
}

function send(text: string): void {
  if (!isTurn) return socket.send(text);
  if (outbox.push(text) === 1)
    setImmediate(() => {
      socket.send(outbox.length === 1 ? (outbox[0] ?? "") : `[${outbox.join()}]`);
      outbox = [];
    });
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
await wait(1_000);
isCounting = true;
const cpuBefore = process.cpuUsage();
const began = performance.now();
await wait(seconds * 1_000);
isCounting = false;
const { user, system } = process.cpuUsage(cpuBefore);
console.log(
  JSON.stringify({
    rate: (cycles * 1_000) / (performance.now() - began),
    cpuUs: (user + system) / Math.max(1, cycles),
  }),
);
process.exit(0);
