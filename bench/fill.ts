/**
 * Fills a data folder with live leases that all end at the same instant, as if a server had granted them one by one:
 * by the kernel, in the engine's own words, through the store. A server started on it finds them as its own.
 *
 *   node bench/fill.ts FOLDER LEASES EXPIRES_AT_MS
 */
import { drawEntropy } from "../src/engine/entropy.ts";
import { recordText } from "../src/engine/record-text.ts";
import type { Acquire, Command } from "../src/kernel/commands.ts";
import { apply, createState, liveHandles, type State } from "../src/kernel/kernel.ts";
import { createSqliteStore } from "../src/store/sqlite.ts";
import type { LiveRow } from "../src/store/store.ts";

const tenant = "default";
const agentsCount = 1_000;
const ttlMs = 300_000;
const rowsPerCommit = 20_000;
const asked = { tenant, actor: { role: "operator", agentId: null, epoch: null } } as const;

const [folder = "", count = "0", expiresAt = "0"] = process.argv.slice(2);
const now = Number(expiresAt) - ttlMs;
await write(folder, grantAll(Number(count)));

function grantAll(leases: number): State {
  const state = createState();
  decide(state, { ...asked, type: "create_tenant", tenantId: tenant, entropy: drawEntropy() });
  for (let agent = 0; agent < agentsCount; agent++) {
    decide(state, { ...asked, type: "register_agent", agentId: `fill-${agent}`, labels: null, entropy: drawEntropy() });
  }
  for (let index = 0; index < leases; index++) decide(state, acquireCommand(index));
  return state;
}

function decide(state: State, command: Command): void {
  const { reply } = apply(state, command, now);
  if (reply.type === "refused") throw new Error(`${command.type} was refused: ${reply.detail}`);
}

/** Paths as in a large code base. */
function acquireCommand(index: number): Acquire {
  const resource = `FILE:/fill/d${index % 997}/m${index % 53}/file-${index}.ts`;
  return {
    ...asked,
    type: "acquire",
    entropy: drawEntropy(),
    agentId: `fill-${index % agentsCount}`,
    intents: [{ predicate: "MUTATES", resource }],
    ttlMs,
    waitTimeoutMs: 0,
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
    await store.commit({ now, puts, removes: [], events: null, ended: [] });
    puts = [];
  };
  for (const { kind, record } of liveHandles(state)) {
    puts.push({ n: ++n, kind, body: recordText(kind, record) });
    if (puts.length === rowsPerCommit) await commit();
  }
  await commit();
  await store.close();
}
