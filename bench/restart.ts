/**
 * How long a server with many live leases takes to restart: from the start of its process until /readyz succeeds, after
 * a clean shutdown and after a kill -9.
 *
 *   npm run bench:restart [-- --leases 1000000 --rounds 3]
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { cpuMsOf, format, median, memoryOf, removeFolder, runScript, startLeasehold } from "./children.ts";

const { values } = parseArgs({
  options: { leases: { type: "string", default: "1000000" }, rounds: { type: "string", default: "3" } },
});
const leases = Number(values.leases);
const barMs = 5_000;
/** The leases expire after this; the whole benchmark must be over by then. */
const untilEndMs = 240_000;

const folder = mkdtempSync(join(tmpdir(), "leasehold-restart-"));
const filling = performance.now();
await runScript("fill.ts", folder, leases, Date.now() + untilEndMs);
console.log(`${format(leases)} live leases written in ${format((performance.now() - filling) / 1_000)} s`);

const times: number[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  const began = performance.now();
  const server = await startLeasehold(folder);
  const took = performance.now() - began;
  const cpuMs = cpuMsOf(server.child.pid);
  times.push(took);
  const alive = await countLive(server.port);
  const { rss, peak } = memoryOf(server.child.pid);
  const memory = `${format(rss / 2 ** 20)} MiB resident, ${format(peak / 2 ** 20)} at the most`;
  console.log(
    `  ready after ${format(took)} ms (${format(cpuMs)} ms of processor time), ${format(alive)} leases alive, ${memory}`,
  );
  if (alive !== leases) throw new Error(`${leases} leases were written, ${alive} are alive`);
  // A change, so that the next start finds a write-ahead log.
  await fetch(`http://127.0.0.1:${server.port}/v1/agents`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"agent_id":"round-${round}"}`,
  });
  await server.stop(round % 2 === 0 ? "SIGKILL" : "SIGTERM");
}
removeFolder(folder);
const result = median(times);
console.log(`median ${format(result)} ms (bar ${format(barMs)} ms)${result < barMs ? "" : ": MISSED"}`);
if (result >= barMs) process.exitCode = 1;

async function countLive(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^leasehold_leases (\d+)/m.exec(text)?.[1]);
}
