/** An agent's states (A1), its unit of work (W1), its checkpoint, and when it is forgotten (S4). */
import type { PauseCause } from "../contract/activities.ts";
import { utf8Length } from "../contract/bounds.ts";
import { limits } from "../contract/limits.ts";
import type { Agent, AgentState, Digest, Lease, Millis } from "../contract/records.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { createAgentEntry, createEntry } from "../memory/entries.ts";
import { isSwept } from "../memory/jobs.ts";
import {
  type AgentEntry,
  changed,
  emit,
  freshPriority,
  type LeaseEntry,
  leaveSeniors,
  type TenantEntry,
  type Turn,
  takePriority,
  updateCounters,
} from "../memory/state.ts";
import { after, type Transitions } from "../memory/transitions.ts";

export function isUnitOver({ state }: Agent): boolean {
  return state === "COMPLETED" || state === "ABORTED";
}

/** PLANNING, COMPLETED and ABORTED hold nothing and wait for nothing (A1). */
export function isResting(state: AgentState): boolean {
  return state === "PLANNING" || state === "COMPLETED" || state === "ABORTED";
}

/** The timestamp that decides for this agent now: of its unit of work, or of the one that it would begin (W1). */
export function decidingPriority(tenant: TenantEntry, { record }: AgentEntry, now: Millis): number {
  return isUnitOver(record) ? freshPriority(tenant, now) : record.priority;
}

/** The agent in its next unit of work if the last one is over, with the priority that `decidingPriority` foretold. */
export function inUnit(turn: Turn, { record }: AgentEntry): Agent {
  if (!isUnitOver(record)) return record;
  return { ...record, priority: takePriority(turn), attempts: 0, ...unconcerned };
}

/** No pause, or its end. */
export const unpaused = { pausedAt: null, pausedFor: null, retryAt: null } as const;

/** Nothing for an update: no pause, and nothing that it waited for or lost (A4). */
export const unconcerned = { ...unpaused, concerns: [], concernsCut: false } as const;

/** Called when a lease or request of the agent has ended, and with other signs of its life. */
export function noteIdle(turn: Turn, entry: AgentEntry): void {
  const { now } = turn;
  if (hasSomething(entry) || !entry.alive) return;
  if (entry.record.idleSince === now) return;
  entry.record = { ...entry.record, idleSince: now };
  changed(turn, entry);
}

function hasSomething({ leaseCount, open, standby }: AgentEntry): boolean {
  return leaseCount > 0 || open.size > 0 || standby !== null;
}

/** New, or restored. */
export function placeAgent(turn: Turn, record: Agent): AgentEntry {
  const agent = createAgentEntry(record);
  turn.tenant.agents.set(record.id, agent);
  turn.tenant.digestBytes += record.digestBytes;
  scheduleForgetting(turn, agent);
  return agent;
}

/**
 * The entry in the deadlines is left where it is while the agent works; when it comes up, the agent is forgotten, or
 * looked at again a week after it last had something (S4). So agents cost nothing as they come and go.
 */
function scheduleForgetting({ state }: Turn, entry: AgentEntry): void {
  rankIn(state.ends, entry, entry.record.idleSince + limits.agentIdleMs, entry.record.priority);
}

export function forgetIfIdle(turn: Turn, entry: AgentEntry): void {
  const { state, tenant, now } = turn;
  if (hasSomething(entry)) {
    rankIn(state.ends, entry, now + limits.agentIdleMs, entry.record.priority);
    return;
  }
  const { rank, tie } = entry;
  scheduleForgetting(turn, entry);
  // It was an older deadline that came up; the real one takes its turn among the others.
  if (entry.rank !== rank || entry.tie !== tie) return;
  removeFrom(state.ends, entry);
  entry.alive = false;
  changed(turn, entry);
  dropDigest(turn, entry);
  const { epoch } = entry.record;
  if (tenant.counters.record.epochFloor < epoch) updateCounters(turn, { epochFloor: epoch });
  for (const request of entry.remembered) {
    tenant.remembered.delete(request);
    removeFrom(state.ends, request);
    tenant.requests.delete(request.record.id);
    request.alive = false;
    changed(turn, request);
  }
  entry.remembered.clear();
  entry.keys.clear();
  leaveSeniors(tenant, entry);
  tenant.agents.delete(entry.record.id);
  emit(turn, { type: "agent.forgotten", tenant: entry.tenantId, at: now, agent: entry.record });
}

/** A2: in place of the one before. */
export function putDigest(turn: Turn, agent: AgentEntry, digest: Digest, digestBytes: number): void {
  if (agent.digest === null) agent.digest = createEntry("digest", digest);
  else agent.digest.record = digest;
  changed(turn, agent.digest);
  countDigest(turn, agent, digestBytes);
}

function countDigest(turn: Turn, agent: AgentEntry, digestBytes: number): void {
  turn.tenant.digestBytes += digestBytes - agent.record.digestBytes;
  updateAgent(turn, agent, { ...agent.record, digestBytes });
}

/** About what it takes as it is stored (S4). */
export function digestSize(digest: Pick<Digest, "context" | "resumePoint" | "intentBacklog" | "assumptions">): number {
  const { context, resumePoint, intentBacklog, assumptions } = digest;
  return utf8Length(JSON.stringify([context, resumePoint, intentBacklog, assumptions]));
}

export function dropDigest(turn: Turn, entry: AgentEntry): void {
  if (entry.digest === null) return;
  entry.digest.alive = false;
  changed(turn, entry.digest);
  entry.digest = null;
  countDigest(turn, entry, 0);
}

/**
 * An agent's states (A1). Nothing else writes `state` of an agent.
 *
 *   PLANNING ──begin──► ACQUIRING ──grant──► EXECUTING ──verify──► VERIFYING
 *      ▲                   ▲  │            pause │  ▲   │               │
 *      │ plan        begin │  │ pause       lose │  │   │ complete      │ complete; lose: to PAUSED
 *      │                   │  ▼                  ▼  │   ▼               ▼
 *      └───────────────── PAUSED ─────execute───────┘  COMPLETED ──plan, begin──► PLANNING, ACQUIRING
 *
 * EXECUTING and VERIFYING hold a live lease: `lose` is the end of the last one, and `execute` needs one.
 * Not drawn: `grant` and `pause` are the service's verdicts and come in any state, because an agent may acquire in any;
 * `begin` and `abort` may be said in any; `replan` follows a failed assumption (A5). ABORTED goes on as COMPLETED does.
 * To say a state that is the present one changes nothing. DIE_RESTART stands beside the state (`restarting`, L9).
 */

export type AgentMove =
  | ("plan" | "begin" | "execute" | "verify" | "complete" | "abort")
  | ("grant" | "pause" | "lose" | "replan");

const no = "refused";

// biome-ignore format: a table, one row per state
export const agentTransitions: Transitions<AgentState, AgentMove> = {
  PLANNING:  { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: no,       replan: "PLANNING" },
  ACQUIRING: { plan: no,         begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: no,       replan: "PLANNING" },
  EXECUTING: { plan: no,         begin: "ACQUIRING", execute: "EXECUTING", verify: "VERIFYING", complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: "PAUSED", replan: "PLANNING" },
  PAUSED:    { plan: "PLANNING", begin: "ACQUIRING", execute: "EXECUTING", verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: no,       replan: "PLANNING" },
  VERIFYING: { plan: no,         begin: "ACQUIRING", execute: no,          verify: "VERIFYING", complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: "PAUSED", replan: "PLANNING" },
  COMPLETED: { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: "COMPLETED", abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: no,       replan: "PLANNING" },
  ABORTED:   { plan: "PLANNING", begin: "ACQUIRING", execute: no,          verify: no,          complete: no,          abort: "ABORTED", grant: "EXECUTING", pause: "PAUSED", lose: no,       replan: "PLANNING" },
};

/** The move that an agent makes by naming a state. PAUSED is a verdict, which nobody can give itself. */
export const moveTo: Readonly<Record<Exclude<AgentState, "PAUSED">, AgentMove>> = {
  PLANNING: "plan",
  ACQUIRING: "begin",
  EXECUTING: "execute",
  VERIFYING: "verify",
  COMPLETED: "complete",
  ABORTED: "abort",
};

export const firstAgentState: AgentState = "PLANNING";

export function moveAgent(turn: Turn, entry: AgentEntry, move: AgentMove, record: Agent): void {
  updateAgent(turn, entry, { ...record, state: after(agentTransitions, record.state, move) });
}

/** A grant ends PAUSED and forgives the deaths before it (W5, A1). */
export function becomeExecuting(turn: Turn, entry: AgentEntry): void {
  const { record } = entry;
  if (record.state === "EXECUTING" && record.attempts === 0 && record.pausedAt === null) return;
  const isNewUnit = isUnitOver(record);
  // One copy, because each unit of work passes here.
  updateAgent(turn, entry, {
    ...record,
    state: after(agentTransitions, record.state, "grant"),
    priority: isNewUnit ? takePriority(turn) : record.priority,
    attempts: 0,
    pausedAt: null,
    pausedFor: null,
    retryAt: null,
    concerns: isNewUnit ? unconcerned.concerns : record.concerns,
    concernsCut: isNewUnit ? unconcerned.concernsCut : record.concernsCut,
    idleSince: turn.now,
  });
}

/** The unit of work is over. */
export function becomeCompleted(turn: Turn, entry: AgentEntry): void {
  const { record } = entry;
  // Named one by one: a second spread would copy them through the runtime, for each unit of work.
  updateAgent(turn, entry, {
    ...record,
    state: after(agentTransitions, record.state, "complete"),
    pausedAt: null,
    pausedFor: null,
    retryAt: null,
    concerns: unconcerned.concerns,
    concernsCut: false,
    idleSince: turn.now,
  });
}

/** WAIT, DIE and PAUSED all pause the agent (A1). Since when, and over what, is kept for the update of A4. */
export function becomePaused(turn: Turn, entry: AgentEntry, cause: PauseCause, over: readonly string[]): void {
  const agent = inUnit(turn, entry);
  const attempts = agent.attempts + (cause === "die" ? 1 : 0);
  // What it asks for during a pause, it has not seen since the pause began (A4).
  const pausedAt = agent.pausedAt ?? turn.now;
  const paused = { ...agent, attempts, pausedAt, pausedFor: cause, retryAt: null };
  moveAgent(turn, entry, "pause", concerned(entry, paused, over, pausedAt));
}

/** W5: the hint that it got with DIE, for those who watch. */
export function noteRetry(turn: Turn, entry: AgentEntry, retryAfterMs: number): void {
  updateAgent(turn, entry, { ...entry.record, retryAt: turn.now + retryAfterMs });
}

/** A lease was taken from its holder: the agent's next update has what happens to the resource from now on (A4). */
export function noteLost(turn: Turn, { holder, request }: LeaseEntry, { state, resource, claimBy }: Lease): void {
  if (holder.kind !== "agent" || state === "BINDING" || !holder.alive) return;
  // A grant that was never collected let nobody see anything (W8).
  const since = claimBy === null ? turn.now : (request?.record.observeSince ?? turn.now);
  const agent = concerned(holder, holder.record, [resource], since);
  if (agent !== holder.record) updateAgent(turn, holder, agent);
  pauseIfBare(turn, holder);
}

/** W7: a wound means roll back, as DIE does. What is left is released in PAUSED, which keeps the age of the work (A1, W1). */
export function pauseWounded(turn: Turn, { holder }: LeaseEntry): void {
  if (holder.kind !== "agent") return;
  const { record } = holder;
  if (record.state !== "EXECUTING" && record.state !== "VERIFYING") return;
  moveAgent(turn, holder, "pause", { ...record, pausedAt: record.pausedAt ?? turn.now, pausedFor: "wounded" });
}

/** A1: who works holds something. */
export function pauseIfBare(turn: Turn, entry: AgentEntry): void {
  const { record } = entry;
  if ((record.state !== "EXECUTING" && record.state !== "VERIFYING") || holdsLive(turn, entry)) return;
  moveAgent(turn, entry, "lose", { ...record, pausedAt: record.pausedAt ?? turn.now, pausedFor: "lost" });
}

/** Not one that cells set up or tear down, nor one that is about to end with many others (L14). */
export function holdsLive({ tenant }: Turn, entry: AgentEntry): boolean {
  for (let lease = entry.leases; lease !== null; lease = lease.nextOfHolder) {
    const { state } = lease.record;
    if ((state === "ACTIVE" || state === "HELD") && !isSwept(tenant, lease)) return true;
  }
  return false;
}

/** What concerned it first concerns it longest. Past the limit the next update is truncated. */
function concerned(entry: AgentEntry, agent: Agent, over: readonly string[], since: Millis): Agent {
  let { concerns, concernsCut } = agent;
  if (concernsCut && concerns.length >= limits.concernsMax) return agent;
  for (const resource of over) {
    if (isConcern(entry, concerns, resource)) continue;
    if (concerns.length >= limits.concernsMax) {
      concernsCut = true;
      continue;
    }
    const known = entry.concernNames;
    // In a list of its own: the language's concat copies lists at once, and anything else through the runtime.
    const more = concerns.concat([{ resource, since }]);
    if (known !== null && known.of === concerns) {
      known.of = more;
      known.names.add(resource);
      known.chars += resource.length;
    }
    concerns = more;
  }
  if (concerns === agent.concerns && concernsCut === agent.concernsCut) return agent;
  return { ...agent, concerns, concernsCut };
}

/** Mostly there are few, which are compared one by one. An agent that loses very many leases compares each with all. */
const comparedMax = 8;

function isConcern(entry: AgentEntry, concerns: Agent["concerns"], name: string): boolean {
  if (concerns.length <= comparedMax) return concerns.some(({ resource }) => resource === name);
  if (entry.concernNames?.of !== concerns) {
    const names = new Set<string>();
    let chars = 0;
    for (const { resource } of concerns) {
      names.add(resource);
      chars += resource.length;
    }
    entry.concernNames = { of: concerns, names, chars };
  }
  return entry.concernNames.names.has(name);
}

/** Every change of an agent is a sign of its life, also a verdict that gives it nothing (S4). */
export function updateAgent(turn: Turn, entry: AgentEntry, record: Agent): void {
  const from = visibleState(entry.record);
  entry.record = record.idleSince === turn.now ? record : { ...record, idleSince: turn.now };
  entry.priority = entry.record.priority;
  if (entry.concernNames !== null && entry.concernNames.of !== record.concerns) entry.concernNames = null;
  changed(turn, entry);
  const to = visibleState(entry.record);
  if (from !== to)
    emit(turn, {
      type: "agent.transitioned",
      tenant: entry.tenantId,
      at: turn.now,
      agentId: entry.record.id,
      from,
      to,
    });
}

export function visibleState(agent: Agent): AgentState | "DIE_RESTART" {
  return agent.restarting ? "DIE_RESTART" : agent.state;
}
