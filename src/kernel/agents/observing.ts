/** Observation updates (A4) and assumptions (A5): what others did to the resources that concern an agent. */
import type { Assumption } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Intent, Millis } from "../contract/records.ts";
import type { Judgement, Observation } from "../contract/replies.ts";
import type { Write } from "../contract/write-records.ts";
import { eachSince, isAfter, lastLook, newestWrite } from "../memory/past.ts";
import { type AgentEntry, nameOf, type Turn } from "../memory/state.ts";
import { nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";
import { updateAgent } from "./agent-life.ts";

/** The resources of intents, both names of a rename. */
export function resourcesOf(intents: readonly Intent[]): string[] {
  return intents.flatMap(({ resource, to }) => (to === null ? [resource] : [resource, to]));
}

/**
 * Since when the agent could not see what it asks for: its pause, or earlier where it waited for, died for or lost some of
 * it. null: it sees all of it, and gets no update.
 */
export function blindSince({ record }: AgentEntry, intents: readonly Intent[]): Millis | null {
  const { pausedAt, concerns } = record;
  if (concerns.length === 0) return pausedAt;
  const names = resourcesOf(intents).map(canonicalName);
  let since = pausedAt;
  for (const concern of concerns) {
    const name = canonicalName(concern.resource);
    if (names.some((one) => namesOverlap(one, name))) since = Math.min(since ?? concern.since, concern.since);
  }
  return since;
}

/**
 * A4: the update for an agent that has been blind since then, and goes on now. It covers what it asks for, what it waited
 * for, died for or lost, its backlog, and what it holds.
 */
export function observe(turn: Turn, agent: AgentEntry, since: Millis, asked: readonly string[]): Observation {
  const observation = lookAround(turn, agent, since, asked);
  forgetConcerns(turn, agent);
  return observation;
}

/** The same for somebody who watches: the agent still gets it. */
export function lookAround(turn: Turn, agent: AgentEntry, since: Millis, asked: readonly string[]): Observation {
  const { concerns, concernsCut } = agent.record;
  const digest = agent.digest?.record ?? null;
  const fallback = Math.min(since, digest?.savedAt ?? since);
  /** By resource: since when it counts, if the agent has had no lease on it. */
  const covered = new Map<string, Millis>();
  const cover = (resource: string, from: Millis): void => {
    covered.set(resource, Math.min(covered.get(resource) ?? from, from));
  };
  for (const resource of asked) cover(resource, fallback);
  for (const concern of concerns) cover(concern.resource, Math.min(concern.since, since));
  for (const resource of resourcesOf(digest?.intentBacklog ?? [])) cover(resource, fallback);
  const search = new Search(turn, agent.holderId, concernsCut);
  for (const [resource, from] of covered) search.gather(resource, from, true);
  for (let lease = agent.leases; lease !== null; lease = lease.nextOfHolder) {
    const { resource } = lease.record;
    // It could see this one until the pause.
    if (!covered.has(resource)) search.gather(resource, since, false);
  }
  return search.result(since);
}

/** What the agent holds now, it sees. What it does not hold yet concerns it until it does. */
function forgetConcerns(turn: Turn, agent: AgentEntry): void {
  const { concerns, concernsCut } = agent.record;
  if (concerns.length === 0 && !concernsCut) return;
  const held = new Set<string>();
  const patterns: ResourceName[] = [];
  for (let lease = agent.leases; lease !== null; lease = lease.nextOfHolder) {
    if (lease.record.state !== "ACTIVE") continue;
    if (lease.wild) patterns.push(nameOf(lease));
    else held.add(lease.record.resource);
  }
  const isHeld = (resource: string): boolean => {
    if (held.has(resource)) return true;
    return patterns.length > 0 && patterns.some((pattern) => nameCovers(pattern, canonicalName(resource)));
  };
  const left = concerns.filter(({ resource }) => !isHeld(resource));
  if (left.length === concerns.length && !concernsCut) return;
  updateAgent(turn, agent, { ...agent.record, concerns: left, concernsCut: false });
}

/** Gathers the newest changes by others, name by name. */
class Search {
  private readonly turn: Turn;
  private readonly holder: string;
  /** Everything that ended since then is known. */
  private readonly knownFrom: Millis;
  private isCut: boolean;
  /** By what tells two of them apart: a name may be searched more than once. */
  private found = new Map<string, Write>();
  private names = 0;
  private steps = 0;
  private earliest = Number.POSITIVE_INFINITY;
  /** Once there are more changes than are listed: the time before which none is. */
  private listedFrom: Millis = 0;

  constructor(turn: Turn, holder: string, isCut: boolean) {
    this.turn = turn;
    this.holder = holder;
    this.knownFrom = turn.state.past.from;
    this.isCut = isCut;
  }

  /** With `looks`: since the end of the holder's own last lease on it, if there was one. */
  gather(resource: string, fallback: Millis, looks: boolean): void {
    if (++this.names > limits.namesObservedMax || this.steps > limits.observationStepsMax) {
      this.isCut = true;
      return;
    }
    const name = canonicalName(resource);
    const look = looks ? lastLook(this.turn, name, this.holder) : null;
    const since = look?.at ?? fallback;
    if (since < this.earliest) this.earliest = since;
    const from = () => Math.max(since, this.listedFrom);
    eachSince(this.turn, name, from, (write) => {
      if (++this.steps > limits.observationStepsMax) {
        this.isCut = true;
        return true;
      }
      if (write.holder === this.holder) return false;
      if (look !== null && !isAfter(write, look)) return false;
      this.found.set(keyOf(write), write);
      if (this.found.size >= 2 * limits.changesListedMax) this.keepNewest();
      return false;
    });
  }

  private keepNewest(): void {
    if (this.found.size <= limits.changesListedMax) return;
    const newest = [...this.found.values()].sort(newestFirst).slice(0, limits.changesListedMax);
    this.isCut = true;
    this.listedFrom = newest.at(-1)?.at ?? 0;
    this.found = new Map(newest.map((write) => [keyOf(write), write]));
  }

  result(since: Millis): Observation {
    this.keepNewest();
    const earliest = Math.min(since, this.earliest);
    return {
      since: earliest,
      truncated: this.isCut || earliest < this.knownFrom,
      changes: [...this.found.values()].sort(newestFirst).reverse(),
    };
  }
}

function keyOf({ at, fence, predicate }: Write): string {
  return `${at} ${fence} ${predicate}`;
}

function newestFirst(a: Write, b: Write): number {
  return isAfter(a, b) ? -1 : isAfter(b, a) ? 1 : 0;
}

/**
 * A5: only the newest write counts, whenever it was. If its version is known, that decides. If it is not, and somebody else
 * wrote since the agent could last see the resource, the assumption fails; otherwise nothing is known.
 */
export function judge(
  turn: Turn,
  agent: AgentEntry,
  { resource, version: expected }: Assumption,
  checkpointAt: Millis,
): Judgement {
  const name = canonicalName(resource);
  const last = newestWrite(turn, name);
  const judged = (outcome: Judgement["outcome"], actual: string | null) => ({ resource, expected, actual, outcome });
  if (last === null) return judged("unverified", null);
  // The version of a folder is not that of a file in it, unless they are the same.
  const isReported = last.version !== null && (last.resource === resource || last.version === expected);
  if (isReported) return judged(last.version === expected ? "holds" : "failed", last.version);
  if (last.holder === agent.holderId || seesSince(agent, name, last)) return judged("unverified", null);
  const look = lastLook(turn, name, agent.holderId);
  const isNews = look === null ? last.at >= checkpointAt : isAfter(last, look);
  return judged(isNews ? "failed" : "unverified", null);
}

/** Whether it holds a lease that was granted after the write. */
function seesSince(agent: AgentEntry, name: ResourceName, { at }: Write): boolean {
  for (let lease = agent.leases; lease !== null; lease = lease.nextOfHolder) {
    const { state, acquiredAt } = lease.record;
    if (state === "ACTIVE" && acquiredAt >= at && nameCovers(nameOf(lease), name)) return true;
  }
  return false;
}
