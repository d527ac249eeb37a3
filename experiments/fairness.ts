/**
 * How long agents wait for a few hot resources, under each strategy: with a hint after DIE (W5), standing by (W14), and
 * under Wound-Wait (W7). Plays the kernel in virtual time: no sockets, no disk, the same figures for the same seed.
 *
 *   npm run experiment:fairness [-- --agents 30 --resources 3 --seconds 180 --seed 7]
 *
 * Ends with 1 where the p99 of Wait-Die is over twice that of Wound-Wait.
 */
import { parseArgs } from "node:util";
import type { Actor, Command } from "../src/kernel/contract/commands.ts";
import type { Strategy } from "../src/kernel/contract/records.ts";
import type { Reply } from "../src/kernel/contract/replies.ts";
import { apply, createState, nextDeadline, type State, settle } from "../src/kernel/kernel.ts";
import { type Random, randomFrom } from "./fleet/random.ts";

const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "30" },
    resources: { type: "string", default: "3" },
    seconds: { type: "string", default: "180" },
    seed: { type: "string", default: "7" },
  },
});
const [agentCount = 30, resourceCount = 3, seconds = 180, seed = 7] = [
  values.agents,
  values.resources,
  values.seconds,
  values.seed,
].map(Number);
/** One way between an agent and the server, and how long the work takes. */
const wayMs = 2;
const workMs: readonly [number, number] = [2, 20];
const standbyMs = 20_000;
const tailBar = 2;

interface Way {
  readonly name: string;
  readonly strategy: Strategy;
  readonly standbyMs: number;
}

interface Figures {
  readonly done: number;
  readonly deaths: number;
  readonly perAgent: readonly number[];
  readonly waits: readonly number[];
}

const operator: Actor = { role: "operator", agentId: null, epoch: null };
const tenant = "t";

/** The agents as a queue of events in virtual time, in front of one kernel. */
class Run {
  private readonly way: Way;
  private readonly random: Random;
  private readonly state: State = createState();
  private now = 1_700_000_000_000;
  private readonly endAt: number;
  private readonly queue: { readonly at: number; readonly order: number; readonly act: () => void }[] = [];
  private ordered = 0;
  private readonly waiting = new Map<string, (reply: Reply) => void>();
  private deaths = 0;
  private readonly perAgent = new Map<string, number>();
  private readonly waits: number[] = [];

  constructor(way: Way) {
    this.way = way;
    this.random = randomFrom(seed);
    this.endAt = this.now + seconds * 1_000;
  }

  play(): Figures {
    const asked = { tenant, actor: operator };
    this.tell({ ...asked, type: "create_tenant", tenantId: tenant });
    this.tell({ ...asked, type: "set_tenant_settings", tenantId: tenant, settings: { strategy: this.way.strategy } });
    for (let nth = 0; nth < agentCount; nth++) {
      const agentId = `agent-${nth}`;
      this.tell({ ...asked, type: "register_agent", agentId, labels: null });
      this.perAgent.set(agentId, 0);
      this.later(this.between(0, 20), () => this.begin(agentId));
    }
    while (this.now < this.endAt) this.step();
    return { done: this.waits.length, deaths: this.deaths, perAgent: [...this.perAgent.values()], waits: this.waits };
  }

  /** The next of what agents do and what is due in the kernel. */
  private step(): void {
    this.queue.sort((a, b) => a.at - b.at || a.order - b.order);
    const [next] = this.queue;
    const due = nextDeadline(this.state) ?? Number.POSITIVE_INFINITY;
    if (next === undefined && due === Number.POSITIVE_INFINITY) throw new Error("nobody does anything any more");
    if (next !== undefined && next.at <= due) {
      this.queue.shift();
      this.now = Math.max(this.now, next.at);
      return next.act();
    }
    this.now = Math.max(this.now, due);
    this.note(settle(this.state, this.now, Number.POSITIVE_INFINITY).events);
  }

  private begin(agentId: string): void {
    const names = Array.from({ length: resourceCount }, (_, nth) => `X:/${nth}`);
    const count = 1 + this.random.below(names.length);
    const intents = names
      .map((resource) => ({ resource, at: this.random.between(0, 1) }))
      .sort((a, b) => a.at - b.at)
      .slice(0, count)
      .map(({ resource }) => ({ predicate: "MUTATES", resource }));
    this.acquire(agentId, intents, this.now);
  }

  private acquire(agentId: string, intents: readonly { predicate: string; resource: string }[], since: number): void {
    const answered = (reply: Reply): void => {
      switch (reply.type) {
        case "granted":
          return this.later(wayMs, () => this.work(agentId, since));
        case "waiting":
        case "standby":
          // The answer is held, and leaves with the end.
          this.waiting.set(reply.requestId, answered);
          return;
        case "died":
          this.deaths++;
          return this.later(wayMs + reply.retryAfterMs, () => this.acquire(agentId, intents, since));
        default:
          return this.later(wayMs, () => this.acquire(agentId, intents, since));
      }
    };
    this.later(wayMs, () => {
      const terms = { ttlMs: 60_000, waitTimeoutMs: 30_000, idleTimeoutMs: null, purpose: null, requestKey: null };
      const more = { tokens: false, dryRun: false, standbyMs: this.way.standbyMs };
      answered(this.tell({ tenant, actor: operator, type: "acquire", agentId, intents, ...terms, ...more }));
    });
  }

  private work(agentId: string, since: number): void {
    this.waits.push(this.now - since);
    this.perAgent.set(agentId, (this.perAgent.get(agentId) ?? 0) + 1);
    this.later(this.between(...workMs) + wayMs, () => {
      this.tell({ tenant, actor: operator, type: "release_all", agentId, leaseIds: null, versions: null });
      this.later(wayMs, () => this.begin(agentId));
    });
  }

  private tell(command: DistributiveOmit<Command, "entropy">): Reply {
    const entropy = [this.random.below(2 ** 32), this.random.below(2 ** 32)] as const;
    const outcome = apply(this.state, { ...command, entropy } as Command, this.now);
    this.note(outcome.events);
    return outcome.reply;
  }

  private note(events: ReturnType<typeof apply>["events"]): void {
    for (const event of events) {
      const requestId = "request" in event ? event.request.id : event.type === "request.died" ? event.requestId : null;
      const isEnd = event.type !== "request.waiting" && event.type !== "request.standing_by";
      const answered = requestId !== null && isEnd ? this.waiting.get(requestId) : undefined;
      if (requestId === null || answered === undefined) continue;
      this.waiting.delete(requestId);
      const ask = { tenant, actor: operator, type: "collect_request", requestId, collect: true } as const;
      this.later(0, () => answered(this.tell(ask)));
    }
  }

  private later(ms: number, act: () => void): void {
    this.queue.push({ at: this.now + ms, order: this.ordered++, act });
  }

  private between(least: number, most: number): number {
    return Math.round(this.random.between(least, most));
  }
}

type DistributiveOmit<C, K extends string> = C extends unknown ? Omit<C, K> : never;

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

const ways: readonly Way[] = [
  { name: "Wait-Die, hints", strategy: "wait_die", standbyMs: 0 },
  { name: "Wait-Die, standby", strategy: "wait_die", standbyMs },
  { name: "Wound-Wait", strategy: "wound_wait", standbyMs: 0 },
];
const tails = new Map<string, number>();
console.log(
  `${agentCount} agents, ${resourceCount} resources, ${workMs.join(" to ")} ms of work, ${seconds} s, seed ${seed}\n`,
);
console.log("                      done/s   min/max of an agent   wait p50    p99    max ms   deaths per success");
for (const way of ways) {
  const { done, deaths, perAgent, waits } = new Run(way).play();
  const sorted = [...waits].sort((a, b) => a - b);
  tails.set(way.name, percentile(sorted, 0.99));
  const row = [
    way.name.padEnd(20),
    (done / seconds).toFixed(1).padStart(8),
    `${Math.min(...perAgent)} / ${Math.max(...perAgent)}`.padStart(21),
    String(percentile(sorted, 0.5)).padStart(11),
    String(percentile(sorted, 0.99)).padStart(7),
    String(sorted.at(-1) ?? 0).padStart(7),
    (deaths / done).toFixed(2).padStart(17),
  ];
  console.log(row.join(""));
}
const worst = Math.max(tails.get("Wait-Die, hints") ?? 0, tails.get("Wait-Die, standby") ?? 0);
const ratio = worst / (tails.get("Wound-Wait") ?? 1);
console.log(`\np99 of Wait-Die: ${ratio.toFixed(2)} times that of Wound-Wait, at most ${tailBar}`);
if (ratio > tailBar) process.exitCode = 1;
