/**
 * Fills a data folder with live leases that all end at the same instant, as if a server had granted them one after the
 * other up to now: granted by the kernel, encoded by the engine, written by the store. A server can be started on it.
 *
 *   node bench/fill.ts FOLDER LEASES EXPIRES_AT_MS [AGENTS] [ELDEST]
 */

import { drawEntropy } from "../src/engine/clock.ts";
import { recordText } from "../src/engine/codec/record-text.ts";
import type { Acquire, Command } from "../src/kernel/contract/commands.ts";
import { apply, createState, liveHandles, type State } from "../src/kernel/kernel.ts";
import { createSqliteStore } from "../src/store/sqlite.ts";
import type { LiveRow } from "../src/store/store.ts";

const tenant = "default";
const ttlMsMax = 300_000;
const rowsPerCommit = 20_000;
const asked = { tenant, actor: { role: "operator", agentId: null, epoch: null } } as const;

const [folder = "", count = "0", expiresAt = "0", agents = "1000", eldest = ""] = process.argv.slice(2);
const agentsCount = Number(agents);
const endsAt = Number(expiresAt);
const firstAt = endsAt - ttlMsMax;
/** No grant lies in the future: the server's clock would start there (L7). */
const lastAt = Math.max(firstAt, Date.now() - 1_000);
await write(folder, grantAll(Number(count)));

function grantAll(leases: number): State {
  const state = createState();
  const decide = (command: Command, now: number): void => {
    const { reply } = apply(state, command, now);
    if (reply.type === "refused") throw new Error(`${command.type} was refused: ${reply.detail}`);
  };
  decide({ ...asked, type: "create_tenant", tenantId: tenant, entropy: drawEntropy() }, firstAt);
  const ids = Array.from({ length: agentsCount }, (_, agent) => `fill-${agent}`);
  for (const agentId of eldest === "" ? ids : [eldest, ...ids]) {
    decide({ ...asked, type: "register_agent", agentId, labels: null, entropy: drawEntropy() }, firstAt);
  }
  for (let index = 0; index < leases; index++) {
    const now = firstAt + Math.floor(((lastAt - firstAt) * index) / leases);
    decide(acquireCommand(index, endsAt - now), now);
  }
  return state;
}

/** Paths as in a large code base. */
function acquireCommand(index: number, ttlMs: number): Acquire {
  const resource = `FILE:/fill/d${index % 997}/m${index % 53}/file-${index}.ts`;
  return {
    ...asked,
    type: "acquire",
    entropy: drawEntropy(),
    agentId: `fill-${index % agentsCount}`,
    intents: [{ predicate: "MUTATES", resource }],
    ttlMs,
    waitTimeoutMs: 0,
    standbyMs: 0,
    idleTimeoutMs: null,
    purpose: null,
    tokens: false,
    dryRun: false,
    requestKey: null,
  };
}

async function write(folder: string, state: State): Promise<void> {
  const store = createSqliteStore(folder);
  await store.open();
  let n = 0;
  let puts: LiveRow[] = [];
  const commit = async (): Promise<void> => {
    await store.commit({
      now: lastAt,
      puts,
      removes: [],
      events: null,
      ended: [],
      endedTasks: [],
      payloads: [],
      payloadRemoves: [],
      endedRequests: [],
      receipts: [],
      heads: [],
      audits: [],
    });
    puts = [];
  };
  for (const { kind, record } of liveHandles(state)) {
    puts.push({ n: ++n, kind, body: recordText(kind, record) });
    if (puts.length === rowsPerCommit) await commit();
  }
  await commit();
  await store.close();
}
