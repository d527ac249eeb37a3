/**
 * What one agent does until its connection breaks or it is stopped: it acquires resources that others want too, holds
 * and releases them. It sends one command at a time, so its journal is totally ordered.
 */
import type { Random } from "../sim/random.ts";
import { type Connection, Lost } from "./connections.ts";
import type { Entry, HeldLease } from "./journal.ts";
import type { AcquireInput, Answer, Input, Intent } from "./wire.ts";

export interface AgentRun {
  readonly agentId: string;
  readonly connection: Connection;
  readonly random: Random;
  readonly journal: Entry[];
  readonly held: Map<string, HeldLease>;
  /** Numbers the agent's requests and its own resources; it only grows. */
  readonly nextNumber: () => number;
  readonly isOver: () => boolean;
}

/** Few enough for conflicts, many enough for grants. */
const sharedResources = 40;
const heldMax = 12;
const holdMs = 250;
const pauseAfterDieMsMax = 10;
const pauseAfterUnknownMs = 25;
/** Some expire while the server runs, some while it is down, and some last over many restarts. */
const ttls = [150, 400, 1_200, 3_000, 20_000, 60_000];

export async function runAgent(agent: AgentRun): Promise<void> {
  try {
    while (!agent.isOver()) await step(agent);
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
  }
}

function step(agent: AgentRun): Promise<void> {
  const { held, random } = agent;
  if (held.size === 0) return acquire(agent);
  const some = random.pick([...held.values()]);
  const weights = { acquire: held.size < heldMax ? 45 : 0, heartbeat: 20, renew: 6, release: 29 };
  switch (random.weighted(weights)) {
    case "acquire":
      return acquire(agent);
    case "heartbeat":
      return extend(agent, "heartbeat", some);
    case "renew":
      return extend(agent, "renew_lease", some);
    case "release":
      return release(agent, some);
  }
}

async function acquire(agent: AgentRun): Promise<void> {
  const { agentId, random, nextNumber } = agent;
  const intents = wishes(agent);
  if (intents.length === 0) return;
  const wait = random.pick([0, 0, 0, 0, 0, 300, 2_000]);
  const input: AcquireInput = {
    agent_id: agentId,
    intents,
    ttl_ms: random.pick(ttls),
    wait_timeout_ms: wait,
    hold_ms: wait === 0 ? 0 : random.pick([0, holdMs]),
    request_id: `${agentId}-${nextNumber()}`,
  };
  let answer = await settle(agent, "acquire", { ...input }, (answered) => ({ op: "acquire", input, ...answered }));
  while (answer?.status === 202 && !agent.isOver()) {
    const requestId = answer.body.request_id ?? "";
    const asked = { request_id: requestId, hold_ms: holdMs };
    answer = await settle(agent, "get_request", asked, (answered) => ({
      op: "get_request",
      requestId,
      input,
      ...answered,
    }));
  }
  for (const { id, resource, ttl, state } of answer?.status === 200 ? (answer.body.leases ?? []) : []) {
    if (state === "ACTIVE") agent.held.set(id, { id, resource, ttl });
  }
  if (answer?.body.error === "die") {
    await pause(Math.min(answer.body.retry_after_ms ?? 0, pauseAfterDieMsMax));
  }
}

/** Only resources that it does not hold: then holding one twice means that it was granted twice. */
function wishes({ agentId, held, random, nextNumber }: AgentRun): Intent[] {
  const has = new Set([...held.values()].map(({ resource }) => resource));
  const shared = `FILE:/shared/${random.below(sharedResources)}`;
  const own = { predicate: "MUTATES", resource: `FILE:/own/${agentId}/${nextNumber()}` };
  const wanted = { predicate: random.chance(0.7) ? "MUTATES" : "CONSUMES", resource: shared };
  if (has.has(shared) || random.chance(0.25)) return [own];
  return random.chance(0.3) ? [wanted, own] : [wanted];
}

async function extend(agent: AgentRun, op: "heartbeat" | "renew_lease", { id }: HeldLease): Promise<void> {
  const answer = await settle(agent, op, { lease_id: id }, (answered) => ({ op, leaseId: id, ...answered }));
  if (answer !== null && answer.status !== 200) agent.held.delete(id);
}

async function release(agent: AgentRun, { id }: HeldLease): Promise<void> {
  await settle(agent, "release_lease", { lease_id: id }, (answered) => ({
    op: "release_lease",
    leaseId: id,
    ...answered,
  }));
  agent.held.delete(id);
}

type ReplyPart = Pick<Entry, "agentId" | "answer" | "answeredAt">;

/** Repeats the same command with the same key until the outcome is known (S2). null: stopped before it was. */
async function settle(
  agent: AgentRun,
  op: Entry["op"],
  input: Input,
  entry: (answered: ReplyPart) => Entry,
): Promise<Answer | null> {
  const { agentId, connection, journal, isOver } = agent;
  for (;;) {
    let answer: Answer | null = null;
    try {
      answer = await connection.call(op, input);
    } finally {
      journal.push(entry({ agentId, answer, answeredAt: Date.now() }));
    }
    if (answer.status !== 503) return answer;
    if (isOver()) return null;
    await pause(pauseAfterUnknownMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
