/**
 * Observation updates (A4), against a plain list of all writes: an update names nothing that was not written by somebody
 * else, and leaves out nothing that was written to what the agent is granted since it could last see it. And A1: who is at
 * work holds a lease.
 */
import { type Predicate, strengths } from "../../src/kernel/contract/predicates.ts";
import type { Lease } from "../../src/kernel/contract/records.ts";
import type { Observation } from "../../src/kernel/contract/replies.ts";
import { covers, overlap } from "../model/names.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

interface End {
  readonly tenant: string;
  readonly resource: string;
  readonly predicate: Predicate;
  readonly holder: string;
  readonly at: number;
  readonly fence: number;
}

/** What ended, was downgraded or was transferred last, in order. */
export type EndMemory = End[];
const rememberedMax = 5_000;

export function checkObservation(memory: EndMemory, step: Step): void {
  noteEnds(memory, step);
  const { reply, command } = step;
  if (reply === null || command === null || !("observation" in reply)) return;
  const { observation } = reply;
  const agentId = agentOf(step);
  if (observation === null || observation === undefined || agentId === null) return;
  const from = memory[0]?.at ?? 0;
  const ends = memory.filter((end) => end.tenant === command.tenant);
  const changes = observation.changes.filter(({ at }) => at > from);
  checkSound(ends, { ...observation, changes }, agentId);
  const pausedAt = pauseBefore(step, agentId);
  if (reply.type !== "granted" || observation.truncated || pausedAt === null) return;
  for (const lease of reply.leases) checkComplete(ends, observation, lease, { agentId, pausedAt });
}

/** Since when the agent was paused that this step lets go on. */
function pauseBefore({ changes, command }: Step, agentId: string): number | null {
  for (const { kind, before } of changes) {
    if (kind === "agent" && before?.id === agentId && before.tenant === command?.tenant) return before.pausedAt;
  }
  return null;
}

function noteEnds(memory: EndMemory, { changes, events, now }: Step): void {
  const note = ({ tenant, resource, predicate, holder, fence }: Lease): void =>
    void memory.push({ tenant, resource, predicate, holder, at: now, fence });
  for (const { kind, before, after } of changes) {
    if (kind !== "lease" || before === null || after === null) continue;
    if (strengths[after.predicate] < strengths[before.predicate] || after.holder !== before.holder) note(before);
  }
  for (const event of events) {
    if (event.type === "lease.released" || event.type === "lease.expired" || event.type === "lease.revoked")
      note(event.lease);
  }
  if (memory.length > 2 * rememberedMax) memory.splice(0, rememberedMax);
}

function agentOf({ reply, command, store }: Step): string | null {
  if (reply === null || command === null) return null;
  if (reply.type === "agent" || reply.type === "resumed") return reply.agent.id;
  if ("agentId" in command && typeof command.agentId === "string") return command.agentId;
  if (reply.type === "lease") return reply.lease.agentId;
  if (reply.type === "granted") return store.request.get(`${command.tenant} ${reply.requestId}`)?.agentId ?? null;
  return null;
}

function checkSound(ends: readonly End[], { changes, since }: Observation, agentId: string): void {
  for (const change of changes) {
    const { resource, predicate, holder, at } = change;
    if (holder === agentId) violated("A4", "an update tells an agent of its own write", change);
    if (at < since) violated("A4", "an update reaches back further than it says", change, since);
    const isKnown = ends.some(
      (end) => end.resource === resource && end.predicate === predicate && end.holder === holder && end.at === at,
    );
    if (!isKnown) violated("A4", "an update tells of a write that never was", change);
  }
}

/** Since the agent could last see it, or at least since its pause. */
function checkComplete(
  ends: readonly End[],
  { changes }: Observation,
  lease: Lease,
  { agentId, pausedAt }: { readonly agentId: string; readonly pausedAt: number },
): void {
  const looks = ends.filter((end) => end.holder === agentId && covers(end.resource, lease.resource));
  const seenUntil = Math.max(pausedAt, ...looks.map(({ at }) => at));
  for (const end of ends) {
    if (end.holder === agentId || end.at <= seenUntil || !overlap(end.resource, lease.resource)) continue;
    if (strengths[end.predicate] === 0 || end.at > lease.acquiredAt) continue;
    const isTold = changes.some((change) => change.resource === end.resource && change.at === end.at);
    if (!isTold) violated("A4", "an update leaves out a write", end, lease, { pausedAt, seenUntil });
  }
}

export function checkWorkers({ agents, field }: TenantView): void {
  const holders = new Set<string>();
  for (const { holder, state } of field.leases) if (state === "ACTIVE" || state === "HELD") holders.add(holder);
  for (const agent of agents.values()) {
    if (agent.state !== "EXECUTING" && agent.state !== "VERIFYING") continue;
    if (!holders.has(agent.id)) violated("A1", "an agent works without a lease", agent);
  }
}
