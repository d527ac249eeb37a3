/**
 * Load of tasks over the stream. Prints one line of JSON.
 *
 *   node bench/load-tasks.ts create PORT TASKS PER_CALL          creates them; tasks a second
 *   node bench/load-tasks.ts work PORT TASKS PER_CALL LANES      leases, accepts and completes all; tasks a second
 *   node bench/load-tasks.ts poll PORT SECONDS                   polls and gives back; polls a second
 *   node bench/load-tasks.ts lone PORT TASKS                     one at a time with an idle worker; latency in ms
 */
import { once } from "node:events";
import { WebSocket } from "ws";
import { percentile } from "./children.ts";

const workersCount = 16;
/** A server that has run for days is compiled; one that was just started is not. */
const warmUp = 500;
const [mode = "", ...rest] = process.argv.slice(2);
const [port = 0, amount = 0, perCall = 1, lanes = 1] = rest.map(Number);

interface Reply {
  readonly id: number;
  readonly status: number;
  readonly body: unknown;
}

/** One connection with many calls in flight, answered by number. */
class Stream {
  private readonly socket: WebSocket;
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private awaited: ((text: string) => void) | null = null;
  private outbox: string[] = [];
  private next = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const { awaited } = this;
      this.awaited = null;
      if (awaited !== null) return awaited(String(data));
      const frame = JSON.parse(String(data)) as Reply | Reply[];
      for (const reply of Array.isArray(frame) ? frame : [frame]) {
        const done = this.waiting.get(reply.id);
        this.waiting.delete(reply.id);
        if (reply.status >= 300) throw new Error(`Not a success: ${JSON.stringify(reply).slice(0, 500)}`);
        done?.(reply);
      }
    });
  }

  static async open(): Promise<Stream> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
    await once(socket, "open");
    return new Stream(socket);
  }

  /** The only call in flight on this connection, returned as text: the load must cost less than what it measures. */
  callAlone(op: string, input: string): Promise<string> {
    this.socket.send(`{"id":${this.next++},"op":"${op}","input":${input}}`);
    return new Promise((resolve) => {
      this.awaited = resolve;
    });
  }

  /** Calls made in one turn of the event loop leave in one frame. */
  call<T>(op: string, input: string): Promise<T> {
    const id = this.next++;
    if (this.outbox.length === 0) queueMicrotask(() => this.flush());
    this.outbox.push(`{"id":${id},"op":"${op}","input":${input}}`);
    return new Promise((resolve) => this.waiting.set(id, (reply) => resolve(reply.body as T)));
  }

  private flush(): void {
    const [first = ""] = this.outbox;
    this.socket.send(this.outbox.length === 1 ? first : `[${this.outbox.join(",")}]`);
    this.outbox = [];
  }
}

interface Offer {
  readonly lease_id: string;
  readonly task: { readonly task_id: string };
}
interface Results {
  readonly results: readonly { readonly status: number; readonly body: unknown }[];
}

const task = `{"task_type":"code.generate","principal_ai":"delegate.root","task_summary":"parse CSV","inputs":{"language":"python"},"max_offers":10000}`;

async function create(): Promise<object> {
  const streams = await Promise.all(Array.from({ length: 4 }, Stream.open));
  const calls = Math.ceil(amount / perCall);
  const began = performance.now();
  let sent = 0;
  await Promise.all(
    streams.map(async (stream) => {
      while (sent < calls) {
        const count = Math.min(perCall, amount - sent++ * perCall);
        const input = `{"tasks":[${new Array<string>(count).fill(task).join(",")}]}`;
        const { results } = await stream.call<Results>("create_tasks", input);
        if (results.some(({ status }) => status !== 201)) throw new Error("A task was not created.");
      }
    }),
  );
  return { rate: (amount / (performance.now() - began)) * 1_000 };
}

async function work(): Promise<object> {
  const streams = await Promise.all(Array.from({ length: workersCount }, Stream.open));
  const began = performance.now();
  let done = 0;
  const lane = async (stream: Stream, workerId: string): Promise<void> => {
    while (done < amount) {
      const count = perCall === 1 ? await one(stream, workerId) : await many(stream, workerId);
      if (count === 0) return;
      done += count;
    }
  };
  await Promise.all(
    streams.flatMap((stream, index) => Array.from({ length: lanes }, () => lane(stream, `worker.${index}`))),
  );
  if (done !== amount) throw new Error(`${done} of ${amount} tasks were done.`);
  return { rate: (amount / (performance.now() - began)) * 1_000 };
}

async function many(stream: Stream, workerId: string): Promise<number> {
  const polled = await stream.callAlone("poll_tasks", `{"worker_id":"${workerId}","max_tasks":${perCall}}`);
  const leaseIds = polled.match(/(?<="lease_id":")[^"]+/g) ?? [];
  if (leaseIds.length === 0 && !polled.includes(`"status":204`)) throw new Error(`No offers: ${polled.slice(0, 500)}`);
  if (leaseIds.length === 0) return 0;
  const send = async (fields: string): Promise<void> => {
    const receipts = leaseIds.map((id) => `{${fields},"lease_id":"${id}"}`).join(",");
    const answer = await stream.callAlone("submit_receipts", `{"receipts":[${receipts}]}`);
    const stored = answer.match(/"status":201/g)?.length ?? 0;
    if (stored !== leaseIds.length) throw new Error(`A receipt was not stored: ${answer.slice(0, 500)}`);
  };
  await send(`"phase":"accepted"`);
  await send(`"phase":"complete","status":"success"`);
  return leaseIds.length;
}

async function one(stream: Stream, workerId: string): Promise<number> {
  const offer = await stream.call<Offer | null>("poll_tasks", `{"worker_id":"${workerId}"}`);
  if (offer === null) return 0;
  await stream.call("submit_receipt", `{"phase":"accepted","lease_id":"${offer.lease_id}"}`);
  await stream.call("submit_receipt", `{"phase":"complete","status":"success","lease_id":"${offer.lease_id}"}`);
  return 1;
}

async function poll(): Promise<object> {
  const streams = await Promise.all(Array.from({ length: workersCount }, Stream.open));
  let count = 0;
  let isOver = false;
  const lane = async (stream: Stream, workerId: string): Promise<void> => {
    while (!isOver) {
      const offer = await stream.call<Offer>("poll_tasks", `{"worker_id":"${workerId}"}`);
      await stream.call("release_task", `{"lease_id":"${offer.lease_id}"}`);
      count++;
    }
  };
  const all = streams.flatMap((stream, index) => Array.from({ length: 8 }, () => lane(stream, `worker.${index}`)));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  count = 0;
  const began = performance.now();
  await new Promise((resolve) => setTimeout(resolve, amount * 1_000));
  const rate = (count / (performance.now() - began)) * 1_000;
  isOver = true;
  await Promise.all(all);
  return { rate };
}

async function lone(): Promise<object> {
  const [creator, worker] = [await Stream.open(), await Stream.open()];
  const latencies: number[] = [];
  for (let count = -warmUp; count < amount; count++) {
    const polled = worker.call<Offer>("poll_tasks", `{"worker_id":"worker.lone","hold_ms":50000}`);
    // Calls are handled in order: when this one is answered, the poll before it is held.
    await worker.call("list_workers", "{}");
    const began = performance.now();
    const created = creator.call("create_task", task);
    const { lease_id } = await polled;
    await worker.call("submit_receipt", `{"phase":"accepted","lease_id":"${lease_id}"}`);
    await worker.call("submit_receipt", `{"phase":"complete","status":"success","lease_id":"${lease_id}"}`);
    if (count >= 0) latencies.push(performance.now() - began);
    await created;
  }
  latencies.sort((a, b) => a - b);
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

const modes: Readonly<Record<string, () => Promise<object>>> = { create, work, poll, lone };
const run = modes[mode];
if (run === undefined) throw new Error(`No mode ${mode}.`);
console.log(JSON.stringify(await run()));
process.exit(0);
