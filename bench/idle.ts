/**
 * The cost of idle clients: ten thousand held long-polls, or event streams without events. How much they add to the
 * server's memory and to the p99 of other requests. Two servers with the same content run side by side, one with the
 * idle clients and one without, and a load alternates between them (see load-turns.ts); half-way the two swap, so that
 * a difference between the processes is not taken for the effect. Medians over all windows are compared. A third
 * process holds the connections.
 *
 *   npm run bench:idle [-- --kind polls|streams --count 10000 --pairs 60 --seconds 0.5 --rate 1000]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { resetSocket } from "../src/cell/reset-socket.ts";
import { cpuMsOf, format, median, memoryOf, type Running, removeFolder, runLoad, startLeasehold } from "./children.ts";

const { values } = parseArgs({
  options: {
    kind: { type: "string" },
    count: { type: "string", default: "10000" },
    /** Windows with and without the idle clients. */
    pairs: { type: "string", default: "60" },
    seconds: { type: "string", default: "0.5" },
    rate: { type: "string", default: "1000" },
    /** Set in the process that holds the connections. */
    hold: { type: "string" },
  },
});
const [count, pairs, seconds] = [Number(values.count), Number(values.pairs), Number(values.seconds)];
const bars = { growthMiB: 300, p99Share: 0.2 };
/** The longest hold. Half of a default run is shorter, so no poll is sent again during the measurement. */
const holdMs = 55_000;

if (values.hold !== undefined) await hold(Number(values.hold), values.kind ?? "polls");
else {
  const kinds = values.kind === undefined ? ["polls", "streams"] : [values.kind];
  for (const kind of kinds) if (!(await measure(kind))) process.exitCode = 1;
}

interface Window {
  readonly p50: number;
  readonly p99: number;
}

async function measure(kind: string): Promise<boolean> {
  const servers = [await startLeasehold(), await startLeasehold()] as const;
  const [one, other] = servers;
  console.log(`${format(count)} idle ${kind === "polls" ? "long-polls" : "event streams"}`);
  if (kind === "polls") for (const { port } of servers) await makeWaiters(port);
  const growths: number[] = [];
  const [within, without]: [Window[], Window[]] = [[], []];
  let [cpuWith, cpuWithout] = [0, 0];
  for (const [crowded, empty] of [
    [one, other],
    [other, one],
  ] as const) {
    const { windows, growth, cpuMs } = await takeTurns(kind, crowded, empty);
    growths.push(growth);
    cpuWith += cpuMs[0];
    cpuWithout += cpuMs[1];
    within.push(...windows[0]);
    without.push(...windows[1]);
    console.log(`  p99 with them ${list(windows[0])} · without ${list(windows[1])} ms; memory + ${format(growth)} MiB`);
  }
  for (const server of servers) {
    await server.stop();
    removeFolder(server.dataFolder);
  }
  const growth = Math.max(...growths);
  const [p99With, p99Without] = [median(within.map(({ p99 }) => p99)), median(without.map(({ p99 }) => p99))];
  const [p50With, p50Without] = [median(within.map(({ p50 }) => p50)), median(without.map(({ p50 }) => p50))];
  const effect = p99With / p99Without - 1;
  const isGood = growth < bars.growthMiB && effect <= bars.p99Share;
  console.log(
    `  medians of ${within.length} windows each at ${values.rate}/s: p50 ${p50With.toFixed(2)} with, ${p50Without.toFixed(2)} ms without; p99 ${p99With.toFixed(2)} with, ${p99Without.toFixed(2)} ms without`,
  );
  // CPU time hardly depends on other work on the machine; keep-alives and other costs of the idle are in it.
  console.log(`  processor time for the same commands: ${format(cpuWith)} ms with, ${format(cpuWithout)} ms without`);
  console.log(
    `  memory + ${format(growth)} MiB (bar ${bars.growthMiB}) · p99 of others ${effect < 0 ? "" : "+"}${format(effect * 100)} % (bar + ${format(bars.p99Share * 100)} %)${isGood ? "" : ": MISSED"}`,
  );
  return isGood;
}

/** First of the server with the idle clients, then of the other. */
interface Turns {
  readonly windows: readonly [Window[], Window[]];
  readonly cpuMs: readonly [number, number];
  readonly growth: number;
}

async function takeTurns(kind: string, crowded: Running, empty: Running): Promise<Turns> {
  const load = (someSeconds: number, somePairs: number): Promise<[Window[], Window[]]> =>
    runLoad("load-turns.ts", crowded.port, empty.port, Number(values.rate), someSeconds, somePairs);
  // Before memory is read, so that the server's warm-up is not counted as theirs.
  await load(seconds, 1);
  const before = memoryOf(crowded.child.pid).rss;
  const holders = await startHolders(crowded.port, kind);
  const growth = (memoryOf(crowded.child.pid).rss - before) / 2 ** 20;
  const cpuBefore = [cpuMsOf(crowded.child.pid), cpuMsOf(empty.child.pid)] as const;
  const windows = await load(seconds, Math.ceil(pairs / 2));
  const cpuMs = [cpuMsOf(crowded.child.pid) - cpuBefore[0], cpuMsOf(empty.child.pid) - cpuBefore[1]] as const;
  await holders.stop();
  return { windows, growth, cpuMs };
}

function list(windows: readonly Window[]): string {
  return windows.map(({ p99 }) => p99.toFixed(1)).join(" ");
}

/** An older agent waits for what a younger one holds: as many requests as there will be polls (W2). */
async function makeWaiters(port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
  await once(socket, "open");
  for (const agent of ["waiter", "holder"]) await send(socket, [["register_agent", { agent_id: agent }]]);
  for (const agent of ["holder", "waiter"]) for (const frame of acquireFrames(agent)) await send(socket, frame);
  socket.close();
}

type Command = readonly [op: string, input: object];

/** Sent a second time they return the same requests, because their keys are the same (W10). */
function acquireFrames(agent: string): Command[][] {
  const perFrame = 500;
  return Array.from({ length: Math.ceil(count / perFrame) }, (_, frame) =>
    Array.from({ length: Math.min(perFrame, count - frame * perFrame) }, (_command, place): Command => {
      const index = frame * perFrame + place;
      const intents = [{ predicate: "MUTATES", resource: `FILE:/idle/${index}` }];
      const terms = { ttl_ms: 300_000, wait_timeout_ms: 600_000, request_id: `idle-${index}` };
      return ["acquire", { agent_id: agent, intents, ...terms }];
    }),
  );
}

/** One frame; resolves when all of it is answered. */
async function send(socket: WebSocket, commands: readonly Command[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  const done = new Promise<void>((resolve) => {
    const take = (data: unknown): void => {
      const frame = JSON.parse(String(data)) as Reply | Reply[];
      replies.push(...(Array.isArray(frame) ? frame : [frame]));
      if (replies.length < commands.length) return;
      socket.off("message", take);
      resolve();
    };
    socket.on("message", take);
  });
  socket.send(JSON.stringify(commands.map(([op, input], id) => ({ id, op, input }))));
  await done;
  const failed = replies.find(({ status }) => status >= 300);
  if (failed !== undefined) throw new Error(`Not a success: ${JSON.stringify(failed)}`);
  return replies.sort((a, b) => a.id - b.id);
}

interface Reply {
  readonly id: number;
  readonly status: number;
  readonly body: { readonly request_id?: string };
}

async function startHolders(port: number, kind: string): Promise<{ stop(): Promise<void> }> {
  const args = [import.meta.filename, "--hold", String(port), "--kind", kind, "--count", String(count)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) if (line === "held") break;
  return {
    async stop() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

/** In its own process: opens the connections, prints a line, and keeps them until its input ends. */
async function hold(port: number, kind: string): Promise<void> {
  const paths = kind === "polls" ? await pollPaths(port) : streamPaths();
  const sockets: Socket[] = [];
  for (const path of paths) {
    sockets.push(await open(port, path));
    // Not faster than the server's backlog allows.
    if (sockets.length % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  console.log("held");
  process.stdin.resume();
  await once(process.stdin, "end");
  // Reset rather than closed, so that no port stays in TIME_WAIT.
  for (const socket of sockets) resetSocket(socket);
  process.exit(0);
}

/** The ids of the requests, found by repeating them with their keys. */
async function pollPaths(port: number): Promise<string[]> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
  await once(socket, "open");
  const paths: string[] = [];
  for (const frame of acquireFrames("waiter")) {
    for (const { body } of await send(socket, frame)) paths.push(`/v1/requests/${body.request_id}?hold_ms=${holdMs}`);
  }
  socket.close();
  return paths;
}

/** Each follows an agent that never does anything. */
function streamPaths(): string[] {
  return Array.from({ length: count }, (_, index) => `/v1/events?agent_id=nobody-${index}`);
}

/** A poll that is answered is sent again. */
async function open(port: number, path: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const ask = (): void => void socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  socket.on("data", (data) => {
    if (data.includes("WAIT")) ask();
  });
  socket.on("error", (error) => {
    throw error;
  });
  await once(socket, "connect");
  ask();
  return socket;
}
