/**
 * Readers of old events beside an honest load (S8): how long they block the server's loop, and what they cost the others. The load
 * alone and beside the readers alternate, so that other work on the machine affects both alike.
 *
 *   npm run bench:readers [-- --readers 20 --events 240000 --rounds 5]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { format, median, removeFolder, runLoad, startLeasehold } from "./children.ts";
import { watchLoop } from "./loop-delay.ts";

const { values } = parseArgs({
  options: {
    readers: { type: "string", default: "20" },
    events: { type: "string", default: "240000" },
    rounds: { type: "string", default: "5" },
  },
});
const [readers, events, rounds] = [Number(values.readers), Number(values.events), Number(values.rounds)];
const bars = { blockedMs: 50, slower: 1.5 };
const windowSeconds = 5;
/** Far below what the server can do, so that its latency is compared and not its rate. */
const connections = 2;

const { port, dataFolder, stop } = await startLeasehold();
await fill();
const alone: number[] = [];
const beside: number[] = [];
let [blockedMs, eventsRead] = [0, 0];
for (let round = 0; round < rounds; round++) {
  alone.push(await honestP99());
  const running = startReaders();
  const blocked = await watchLoop(port);
  beside.push(await honestP99());
  blockedMs = Math.max(blockedMs, await blocked());
  eventsRead += await running.stop();
}
await stop();
removeFolder(dataFolder);

const ratio = median(beside) / median(alone);
const isGood = blockedMs <= bars.blockedMs && ratio <= bars.slower && eventsRead > 0;
console.log(
  `${readers} readers read ${format(eventsRead)} old events\n` +
    `loop blocked ${blockedMs.toFixed(1)} ms at most (bar ${bars.blockedMs} ms)\n` +
    `p99 of others: ${show(alone)} ms alone, ${show(beside)} ms beside them, ${ratio.toFixed(2)} of it (bar ${bars.slower})` +
    `${isGood ? "" : ": MISSED"}`,
);
if (!isGood) process.exitCode = 1;

/** Four events a cycle. */
async function fill(): Promise<void> {
  for (let made = 0; made < events; made = await lastEvent()) {
    await runLoad("load-cycles.ts", port, 256, 3, "turn");
    console.log(`${format(await lastEvent())} events`);
  }
}

async function lastEvent(): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/overview`);
  return ((await response.json()) as { readonly sequence: number }).sequence;
}

async function honestP99(): Promise<number> {
  return (await runLoad<{ p99: number }>("load-http.ts", port, connections, windowSeconds, "mix")).p99;
}

/** `stop` returns how many events they have read. */
function startReaders(): { stop(): Promise<number> } {
  const args = ["bench/history-readers.ts", String(port), String(readers)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let read = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    read = Number(line);
  });
  return {
    async stop() {
      child.kill();
      await once(child, "exit");
      return read;
    },
  };
}

function show(all: readonly number[]): string {
  return `${median(all).toFixed(1)} (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`;
}
