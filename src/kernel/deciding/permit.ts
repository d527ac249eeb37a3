/** Policies on what is leased (S4): checked when it is asked for, and again when it is renewed, received or downgraded. */
import type { Actor } from "../contract/commands.ts";
import type { Predicate } from "../contract/predicates.ts";
import type { Refusal } from "../contract/replies.ts";
import type { TaskSpec } from "../contract/task-records.ts";
import { isAbove } from "../memory/actors.ts";
import { type AgentEntry, type LeaseEntry, nameOf, type Turn } from "../memory/state.ts";
import { explain } from "../policies/explain.ts";
import { denialOf, isBroad, type Question, question } from "../policies/matching.ts";
import { limitOf, type Permissions, permissionsOf, prepare, whyNotPermitted } from "../policies/permissions.ts";
import { type Claim, claimsOf, type LinkedClaim, type Manifest } from "./manifest.ts";

/** The manifest, its ttl capped if a policy says so, or why it is not allowed. Every acquire passes here. */
export function permit(turn: Turn, actor: Actor, agent: AgentEntry, manifest: Manifest): Manifest | Refusal {
  const { tenant } = turn;
  const { byRole, isByKey } = tenant.permissions ?? prepare(tenant);
  const permissions = isByKey ? permissionsOf(tenant, actor) : byRole[actor.role].plain;
  const { depthMin, leaseParts } = permissions;
  const { claims } = manifest;
  if (depthMin > 0) {
    for (const { claim } of claims) {
      if (claim.name.wild && claim.intent.pick === null && isBroad(claim.name, depthMin))
        return whyNotClaimed(permissions, claims, agent.record.id) ?? manifest;
    }
  }
  if (leaseParts.length === 0) return manifest;
  return whyNotClaimed(permissions, claims, agent.record.id) ?? cappedTtl(permissions, manifest, agent.record.id);
}

/** The first claim that is not allowed; each is one name, so that of a rename both are checked (C7). */
function whyNotClaimed({ parts }: Permissions, claims: readonly LinkedClaim[], id: string | null): Refusal | null {
  let intents = -1;
  let last: Claim["intent"] | null = null;
  for (const { claim } of claims) {
    if (claim.intent !== last) intents++;
    const isTarget = claim.intent === last;
    last = claim.intent;
    const asked = questionOf(claim, id);
    const denial = denialOf(parts.lease, asked);
    if (denial !== null) return explain(denial, asked, `intents.${intents}.${isTarget ? "to" : "resource"}`);
  }
  return null;
}

function questionOf({ intent: { predicate, units, pick }, name }: Claim, id: string | null): Question {
  return { ...question, action: "lease", resource: name, predicate, units, id, isPick: pick !== null };
}

function cappedTtl(permissions: Permissions, manifest: Manifest, id: string): Manifest {
  const cap = ttlCap(permissions, manifest.claims, id);
  if (cap === null || cap.most >= manifest.ttl) return manifest;
  const warning = `ttl_ms was capped at ${cap.most} by the policy ${cap.policy}.`;
  return { ...manifest, ttl: cap.most, warnings: [...manifest.warnings, warning] };
}

export interface TtlCap {
  readonly most: number;
  readonly policy: string;
}

/** A lease that may live for a minute is not granted for two. */
export function ttlCap(permissions: Permissions, claims: readonly LinkedClaim[], id: string | null): TtlCap | null {
  let cap: TtlCap | null = null;
  for (const { claim } of claims) {
    const asked = questionOf(claim, id);
    for (const limit of ["ttlMsMax", "leaseTimeMsMax"] as const) {
      const found = limitOf(permissions, asked, limit);
      if (found !== null && (cap === null || found.most < cap.most))
        cap = { most: found.most, policy: found.part.policy };
    }
  }
  return cap;
}

export interface PermittedTask {
  readonly spec: TaskSpec;
  readonly warnings: readonly string[];
}

/** T10: what a task's manifest names is granted to the task later, so it is its creator who must be allowed to lease it. */
export function permitTask(turn: Turn, actor: Actor, spec: TaskSpec): PermittedTask | Refusal {
  const { tenant } = turn;
  const permissions = permissionsOf(tenant, actor);
  const refusal = whyNotPermitted(turn, actor, taskQuestion(spec.taskType), "task_type");
  if (refusal !== null) return refusal;
  if (spec.intents.length === 0 || permissions.parts.lease.length === 0) return { spec, warnings: none };
  const { agentId } = actor;
  const claims = claimsOf(tenant, spec.intents);
  const denied = whyNotClaimed(permissions, claims, agentId);
  if (denied !== null) return denied;
  const cap = ttlCap(permissions, claims, agentId);
  if (cap === null || cap.most >= spec.leaseDurationMs) return { spec, warnings: none };
  const warning = `lease_duration_ms was capped at ${cap.most} by the policy ${cap.policy}.`;
  return { spec: { ...spec, leaseDurationMs: cap.most }, warnings: [warning] };
}

const none: readonly string[] = [];

/** Of a live lease, as it is or as it is to be: renewed (G8), in other hands or weaker (L15). */
export function whyNotPermittedLease(
  turn: Turn,
  actor: Actor,
  lease: LeaseEntry,
  {
    predicate = lease.record.predicate,
    agentId = lease.record.agentId,
  }: { predicate?: Predicate; agentId?: string } = {},
): Refusal | null {
  const { units } = lease.record;
  const asked = { ...question, action: "lease", resource: nameOf(lease), predicate, units, id: agentId } as const;
  return whyNotPermitted(turn, actor, asked, null);
}

/** L15: those above give what they may lease themselves; an agent gives only what the receiver may. */
export function whyNotReceived(turn: Turn, actor: Actor, lease: LeaseEntry, receiver: AgentEntry): Refusal | null {
  const { id, epoch } = receiver.record;
  const by: Actor = isAbove(actor) ? actor : { role: "agent", agentId: id, epoch };
  return whyNotPermittedLease(turn, by, lease, { agentId: id });
}

export function taskQuestion(taskType: string): Question {
  return { ...question, action: "create_task", taskType };
}

/**
 * L13: a supervisor acts on any lease, but one that policies or scopes narrow only on those that it may manage, or lease
 * itself.
 */
export function whyNotManaged(turn: Turn, actor: Actor, lease: LeaseEntry): Refusal | null {
  const { holder } = lease;
  if (holder.kind === "task") return whyNotPermitted(turn, actor, taskQuestion(holder.record.spec.taskType), null);
  if (permissionsOf(turn.tenant, actor).parts.manage_resource.length === 0) return null;
  const refusal = whyNotPermitted(
    turn,
    actor,
    { ...question, action: "manage_resource", resource: nameOf(lease) },
    null,
  );
  return refusal === null || whyNotPermittedLease(turn, actor, lease) === null ? null : refusal;
}
