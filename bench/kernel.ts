/**
 * The speed of the kernel alone: acquire + release over varied resources, agents and depths, with many live leases; the
 * memory of a live lease; the time of 100,000 ends at one instant.
 *
 * Run with `npm run bench:kernel`. Each figure is the median of several rounds in one process.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Acquire, Command, ReleaseLease } from "../src/kernel/contract/commands.ts";
import { apply, createState, type State, settle } from "../src/kernel/kernel.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const operator = { role: "operator", agentId: null, epoch: null } as const;
const tenant = "bench";
const agentsCount = 1_000;
const start = 1_800_000_000_000;

const random = generator(1);

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function command<C extends Pick<Command, "type">>(body: C) {
  return { tenant, actor: operator, entropy: [random(), random()] as const, ...body };
}

function acquireCommand(resource: string, agent: number, predicate: string): Acquire {
  return {
    type: "acquire",
    tenant,
    actor: operator,
    entropy: [random(), random()],
    agentId: `agent-${agent}`,
    intents: [{ predicate, resource }],
    ttlMs: 60_000,
    waitTimeoutMs: 0,
    standbyMs: 0,
    idleTimeoutMs: null,
    purpose: "bench",
    tokens: false,
    dryRun: false,
    requestKey: null,
  };
}

function releaseCommand(leaseId: string): ReleaseLease {
  return { type: "release_lease", tenant, actor: operator, entropy: [0, 0], leaseId, version: null };
}

/**
 * Paths of three to six segments, as in a large code base. The measured resources are in a folder of their own, or
 * among the held ones: then every step touches folders that are no longer in the CPU cache.
 */
type Where = "apart" | "among";

function resourceName(index: number, of: "held" | "work", where: Where): string {
  const deeper = ["", `m${index % 53}/`, `m${index % 53}/k${index % 7}/`, `m${index % 53}/k${index % 7}/t/`][index % 4];
  const top = where === "among" ? "repository" : of;
  return `FILE:/${top}/d${index % 997}/${deeper}${of}-${index}.ts`;
}

function createWorld(live: number, where: Where): State {
  const state = createState();
  apply(state, command({ type: "create_tenant", tenantId: tenant }), start);
  for (let agent = 0; agent < agentsCount; agent++) {
    apply(state, command({ type: "register_agent", agentId: `agent-${agent}`, labels: null }), start);
  }
  for (let index = 0; index < live; index++) {
    const { reply } = apply(
      state,
      acquireCommand(resourceName(index, "held", where), index % agentsCount, "MUTATES"),
      start,
    );
    if (reply.type !== "granted") throw new Error(`Not granted: ${reply.type}`);
  }
  return state;
}

/** Commands are made outside the measured time, through JSON, so that their strings are as fresh as from the wire. */
function freshCommands(count: number, where: Where): Acquire[] {
  const predicates = ["MUTATES", "CONSUMES", "PROVIDES", "DELETES"];
  const commands: Acquire[] = [];
  for (let index = 0; index < count; index++) {
    const predicate = predicates[index % 4] ?? "MUTATES";
    commands.push(acquireCommand(resourceName(random() % 1_000_000, "work", where), random() % agentsCount, predicate));
  }
  return JSON.parse(JSON.stringify(commands)) as Acquire[];
}

const chunk = 1_000;

function cyclesPerSecond(state: State, cycles: number, where: Where): number {
  let nanoseconds = 0n;
  for (let done = 0; done < cycles; done += chunk) {
    const now = start + Math.floor(done / 300);
    const commands = freshCommands(chunk, where);
    const began = process.hrtime.bigint();
    for (const command of commands) {
      const { reply } = apply(state, command, now);
      if (reply.type !== "granted") throw new Error(`Not granted: ${reply.type}`);
      apply(state, releaseCommand(reply.leases[0]?.id ?? ""), now);
    }
    nanoseconds += process.hrtime.bigint() - began;
  }
  return cycles / (Number(nanoseconds) / 1e9);
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

const format = (value: number): string => Math.round(value).toLocaleString("en");

function measureSpeed(live: number, where: Where): number {
  const state = createWorld(live, where);
  cyclesPerSecond(state, 100_000, where);
  const rate = median(Array.from({ length: 5 }, () => cyclesPerSecond(state, 200_000, where)));
  console.log(`  ${format(live)} live leases: ${format(rate)} cycles/s (${format(rate * 2)} commands/s)`);
  return rate;
}

function measureMemory(live: number): void {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const state = createWorld(live, "among");
  collectGarbage();
  const bytes = process.memoryUsage().heapUsed - before;
  console.log(`${format(live)} live leases: ${format(bytes / 2 ** 20)} MiB, ${format(bytes / live)} bytes each`);
  if (state.tenants.size !== 1) throw new Error("The state was collected too early.");
}

function measureEnds(count: number): void {
  const state = createWorld(count, "among");
  let slices = 0;
  let longest = 0;
  let ended = 0;
  const began = performance.now();
  for (let more = true; more; slices++) {
    const sliceBegan = performance.now();
    const settled = settle(state, start + 60_000, 500);
    longest = Math.max(longest, performance.now() - sliceBegan);
    ended += settled.events.filter((event) => event.type === "lease.expired").length;
    more = settled.more;
  }
  const took = performance.now() - began;
  console.log(
    `${format(ended)} leases that end at one instant: ${format(took)} ms in ${slices} slices, longest ${longest.toFixed(1)} ms`,
  );
}

for (const where of ["apart", "among"] as const) {
  console.log(`acquire + release, ${where === "apart" ? "apart from" : "among"} what is held`);
  const few = measureSpeed(1_000, where);
  const many = measureSpeed(1_000_000, where);
  console.log(`  ratio at 1,000,000 to 1,000: ${(many / few).toFixed(2)} (bars: 300,000 cycles/s, and 150,000)`);
}
measureMemory(1_000_000);
measureEnds(100_000);
