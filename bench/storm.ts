/**
 * Expiry. 100,000 leases end in the same millisecond under a light load: when the last end is durable and announced,
 * and for how long the server's event loop was blocked. And how late leases end one by one: from `expires_at` to the
 * arrival of the event.
 *
 *   npm run bench:storm [-- --leases 100000]
 */
import { mkdtempSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { format, percentile, type Running, removeFolder, runLoad, runScript, startLeasehold } from "./children.ts";
import { watchLoop } from "./loop-delay.ts";

const { values } = parseArgs({ options: { leases: { type: "string", default: "100000" } } });
const leases = Number(values.leases);
const bars = { allEndedMs: 3_000, blockedMs: 50, latenessMs: 10 };
/** Enough to write the leases, start the server and let the load warm up before they end. */
const leadMs = 20_000 + leases / 8;
const loadConnections = 2;
const pingEveryMs = 5;

const instant = Date.now() + leadMs;
const folder = mkdtempSync(join(tmpdir(), "leasehold-storm-"));
await runScript("fill.ts", folder, leases, instant);
let server = await startLeasehold(folder);
if (Date.now() > instant - 4_000) {
  await server.stop();
  throw new Error("The machine was too busy to be ready in time; try again when it is idle.");
}
const isGood = [await storm(server)];
await server.stop("SIGKILL");
server = await startLeasehold(folder);
isGood.push(await endedForGood(server));
isGood.push(await lateness(server));
await server.stop();
removeFolder(folder);
if (isGood.includes(false)) process.exitCode = 1;

async function storm({ port }: Running): Promise<boolean> {
  const ends = countEnds(port);
  const ping = startPing(port);
  const loadSeconds = Math.ceil((instant - Date.now()) / 1_000) + 4;
  const load = runLoad<{ rate: number; p99: number }>("load-http.ts", port, loadConnections, loadSeconds, "mix");
  await sleep(instant - Date.now() - 200);
  const blocked = await watchLoop(port);
  ping.begin();
  while (ends.count < leases && Date.now() < instant + 30_000) await sleep(5);
  const allEndedMs = ends.lastAt - instant;
  await sleep(200);
  const blockedMs = await blocked();
  const slowestPingMs = ping.end();
  ends.stop();
  const { rate, p99 } = await load;
  console.log(`${format(leases)} leases that end in the same millisecond, ${format(rate)} other commands/s meanwhile`);
  report(`all ends durable and announced after`, allEndedMs, bars.allEndedMs);
  report(`longest block of the server's loop, by its own measure`, blockedMs, bars.blockedMs);
  console.log(
    `  slowest of the pings, one every ${pingEveryMs} ms: ${slowestPingMs.toFixed(1)} ms · load p99 ${p99.toFixed(1)} ms`,
  );
  if (ends.count !== leases) console.log(`  only ${ends.count} ends were announced: MISSED`);
  return ends.count === leases && allEndedMs < bars.allEndedMs && blockedMs <= bars.blockedMs;
}

/** Follows the ends as text: parsing all of them would dominate the measurement. */
function countEnds(port: number) {
  const mark = '"type":"lease.expired"';
  const counted = { count: 0, lastAt: 0, stop: (): void => undefined };
  let rest = "";
  const request = get(`http://127.0.0.1:${port}/v1/events?types=lease.expired`, (response) => {
    response.setEncoding("latin1").on("data", (text: string) => {
      const all = rest + text;
      const before = counted.count;
      let from = 0;
      for (let at = all.indexOf(mark); at >= 0; at = all.indexOf(mark, from)) {
        counted.count++;
        from = at + mark.length;
      }
      rest = all.slice(Math.max(from, all.length - mark.length));
      if (counted.count > before) counted.lastAt = Date.now();
    });
    response.on("close", () => counted.stop());
  });
  request.on("error", () => undefined);
  counted.stop = () => request.destroy();
  return counted;
}

function startPing(port: number) {
  const times: number[] = [];
  let timer: NodeJS.Timeout | null = null;
  const ping = async (): Promise<void> => {
    const began = performance.now();
    await (await fetch(`http://127.0.0.1:${port}/healthz`)).arrayBuffer();
    times.push(performance.now() - began);
  };
  return {
    begin: () => {
      timer = setInterval(ping, pingEveryMs);
    },
    end: () => {
      if (timer !== null) clearInterval(timer);
      return Math.max(...times);
    },
  };
}

/** After a kill -9: everything that was announced is durable. */
async function endedForGood({ port }: Running): Promise<boolean> {
  const read = async <T>(path: string): Promise<T> =>
    (await (await fetch(`http://127.0.0.1:${port}${path}`)).json()) as T;
  const alive = await read<{ leases: unknown[] }>("/v1/leases?resource=FILE:/fill/**&limit=1");
  let cursor: string | null = null;
  let ended = 0;
  do {
    const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: { leases: { resource: string }[]; next_cursor: string | null } = await read(
      `/v1/leases?state=EXPIRED&limit=1000${query}`,
    );
    ended += page.leases.filter(({ resource }) => resource.startsWith("FILE:/fill/")).length;
    cursor = page.next_cursor;
  } while (cursor !== null);
  const isSo = alive.leases.length === 0 && ended === leases;
  console.log(`  after a kill -9: ${format(ended)} in history, ${alive.leases.length} alive${isSo ? "" : ": MISSED"}`);
  return isSo;
}

/** Leases that end at any moment within a few seconds, followed over the stream, with the same light load. */
async function lateness({ port }: Running): Promise<boolean> {
  const count = 2_000;
  const spreadMs = 5_000;
  const late: number[] = [];
  const decidedLate: number[] = [];
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, { perMessageDeflate: false });
  await new Promise((resolve) => socket.once("open", resolve));
  const commands: object[] = [
    { id: 1, op: "events", input: { types: ["lease.expired"] } },
    { id: 2, op: "register_agent", input: { agent_id: "late" } },
  ];
  for (let index = 0; index < count; index++) {
    const intents = [{ predicate: "MUTATES", resource: `FILE:/late/${index}` }];
    const ttl = 3_000 + Math.floor(Math.random() * spreadMs);
    commands.push({ id: 3 + index, op: "acquire", input: { agent_id: "late", intents, ttl_ms: ttl } });
  }
  socket.on("message", (data) => {
    const now = performance.timeOrigin + performance.now();
    const frame = JSON.parse(String(data)) as Frame | Frame[];
    for (const { event } of Array.isArray(frame) ? frame : [frame]) {
      if (event?.lease.agent_id !== "late") continue;
      late.push(now - Date.parse(event.lease.expires_at));
      decidedLate.push(Date.parse(event.at) - Date.parse(event.lease.expires_at));
    }
  });
  const load = runLoad("load-http.ts", port, loadConnections, 9, "mix");
  await sleep(1_500);
  for (let start = 0; start < commands.length; start += 500)
    socket.send(JSON.stringify(commands.slice(start, start + 500)));
  await load;
  socket.close();
  for (const list of [late, decidedLate]) list.sort((a, b) => a - b);
  console.log(`${format(late.length)} leases that end one by one`);
  console.log(
    `  announced late by p50 ${percentile(late, 0.5).toFixed(1)} ms, at most ${percentile(late, 1).toFixed(1)} ms`,
  );
  console.log(`  decided late, by the server's clock: p99 ${format(percentile(decidedLate, 0.99))} ms`);
  report("durable and announced late: p99", percentile(late, 0.99), bars.latenessMs);
  return late.length === count && percentile(late, 0.99) < bars.latenessMs;
}

interface Frame {
  readonly event?: { readonly at: string; readonly lease: { readonly agent_id: string; readonly expires_at: string } };
}

function report(what: string, ms: number, bar: number): void {
  console.log(`  ${what} ${ms.toFixed(1)} ms (bar ${format(bar)} ms)${ms < bar ? "" : ": MISSED"}`);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(ms, 0)));
}
