/**
 * The overhead of `withLease`: an empty body against the bare acquire and release calls, over the same client,
 * alternating, so that both see the same machine. Prints medians and their ratio, which may be 1.5 at most.
 *
 *   node bench/sdk.ts [ROUNDS]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Transport } from "../src/sdk/client.ts";
import { startServer } from "../src/server/start.ts";
import { percentile } from "./children.ts";

const ratioMax = 1.5;
const [rounds = 2_000] = process.argv.slice(2).map(Number);
const data = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
const server = await startServer({ port: 0, store: "sqlite", data });
let worst = 0;
for (const transport of ["http", "stream"] as const) {
  const { bare, wrapped } = await compare(transport);
  const ratio = wrapped / bare;
  worst = Math.max(worst, ratio);
  console.log(JSON.stringify({ transport, bare_ms: round(bare), with_lease_ms: round(wrapped), ratio: round(ratio) }));
}
await server.close();
rmSync(data, { recursive: true });
process.exitCode = worst <= ratioMax ? 0 : 1;

async function compare(transport: Transport): Promise<{ readonly bare: number; readonly wrapped: number }> {
  const client = createClient({ url: server.address.url, transport });
  const agentId = `bench-${transport}`;
  await client.call("register_agent", { agent_id: agentId });
  const bareTimes: number[] = [];
  const wrappedTimes: number[] = [];
  for (let index = 0; index < rounds; index++) {
    const intents = [{ predicate: "MUTATES" as const, resource: `FILE:/bench/${transport}/${index % 100}` }];
    const begun = performance.now();
    const granted = await client.call("acquire", { agent_id: agentId, intents });
    const leases = granted.verdict === "GRANTED" ? granted.leases : [];
    await client.call("release_all", { agent_id: agentId, lease_ids: leases.map(({ id }) => id) });
    const between = performance.now();
    await client.withLease(intents, () => undefined);
    bareTimes.push(between - begun);
    wrappedTimes.push(performance.now() - between);
  }
  await client.close();
  return { bare: median(bareTimes), wrapped: median(wrappedTimes) };
}

function median(times: number[]): number {
  return percentile(
    times.slice(times.length / 10).sort((a, b) => a - b),
    0.5,
  );
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
