/** What changes hands or strength: transfer, downgrade (L15), and what is taken away: revocation (L14). */

import { decidingPriority, inUnit, moveAgent, noteIdle } from "../agents/agent-life.ts";
import { checkValue } from "../contract/bounds.ts";
import { type Actor, commands, type DowngradeLease, type Revoke, type TransferLease } from "../contract/commands.ts";
import { requestIdOf } from "../contract/ids.ts";
import { readPredicate, strengths, strengthsConflict } from "../contract/predicates.ts";
import type { Lease, Millis } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import { endedRefusal } from "../deciding/extension.ts";
import { claimOfLease, lastPlace, ownUnits } from "../deciding/manifest.ts";
import { addObstacles, addOverlapping, createObstacles } from "../deciding/obstacles.ts";
import { whyNotManaged, whyNotPermittedLease, whyNotReceived } from "../deciding/permit.ts";
import { eachAt } from "../index/placed-lists.ts";
import { findNode, literalChildren, type Node, patternChildren } from "../index/resource-tree.ts";
import { emitLease, endedLease, linkToHolder, reissue, unlinkFromHolder, weaken } from "../leases/lease-life.ts";
import { agentOf, mayActFor, requireAbove } from "../memory/actors.ts";
import type { LeaseEnd } from "../memory/jobs.ts";
import { noteHandover } from "../memory/past.ts";
import { isRefilled } from "../memory/refill.ts";
import {
  type AgentEntry,
  findRoot,
  freeNameOf,
  type Holder,
  type LeaseEntry,
  leasesOf,
  nameOf,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
  type Turn,
  withLinked,
} from "../memory/state.ts";
import { leasesOfWorker } from "../memory/task-state.ts";
import { namesOverlap } from "../names/pattern.ts";
import { canonicalName, parseResourceName, type ResourceName } from "../names/resource-name.ts";
import { question } from "../policies/matching.ts";
import { permissionsOf, whyNotPermitted } from "../policies/permissions.ts";
import { addRequest, attachLeases, noteEndedLease } from "../requests/request-life.ts";
import { endStandby } from "../requests/standby.ts";
import { answerAfter, type Later, noRequestEnd, sweep } from "../requests/sweep.ts";
import { completeIfDone } from "./holding.ts";

export function transferLease(turn: Turn, lease: LeaseEntry, command: TransferLease): Reply {
  const { tenant, now } = turn;

  const notActive = whyNotActive(lease);
  if (notActive !== null) return notActive;
  const receiver = tenant.agents.get(command.toAgentId);
  if (receiver === undefined) {
    return refuse("agent_unknown", "There is no such agent to hand the lease to; register it first.", {
      field: "to_agent_id",
    });
  }
  if (receiver === lease.holder) return { type: "lease", lease: lease.record };
  const moved = withLinked(tenant, lease);
  const refusal =
    firstRefusal(moved, (one) => whyNotReceived(turn, command.actor, one, receiver)) ??
    whyNotTransferred(tenant, lease.holder, receiver, moved, now);
  if (refusal !== null) return refusal;

  const { holder: giver } = lease;
  if (giver.kind === "task") return ofTask(lease);
  const tooLong = checkValue("version", commands.transfer_lease.version, command.version);
  if (tooLong !== null) return tooLong;
  if (receiver.standby !== null) endStandby(turn, receiver.standby, receiver);
  const { state: before } = receiver.record;
  if (before !== "PAUSED" && before !== "EXECUTING" && before !== "VERIFYING") {
    moveAgent(turn, receiver, "grant", inUnit(turn, receiver));
  }
  for (const one of moved) {
    noteHandover(turn, one.record, now, command.version);
    unlinkFromHolder(one);
    linkToHolder(tenant, one, receiver);
    const request = one.request ?? requestCarriedBy(turn, giver, one);
    if (request !== null) noteHandedOver(turn, request, one.record);
    one.request = null;
    const moving = { agentId: receiver.record.id, holder: receiver.holderId, claimBy: null };
    reissue(turn, one, { ...one.record, ...moving, requestKey: null, fingerprint: null });
    emitLease(turn, one, "lease.transferred", giver.holderId);
  }
  noteIdle(turn, giver);
  completeIfDone(turn, giver);
  for (const one of moved) freeNameOf(turn, one);
  return { type: "lease", lease: lease.record };
}

/**
 * A lease in other hands must not conflict with what the giver keeps, and must not turn a wait round: who waits for it
 * has to stand to its new holder as it stood to the old one, or a cycle could form (W2, W7).
 */
function whyNotTransferred(
  tenant: TenantEntry,
  giver: Holder,
  receiver: AgentEntry,
  moved: readonly LeaseEntry[],
  now: Millis,
): Refusal | null {
  const kept = leasesOf(giver).filter((lease) => !moved.includes(lease));
  const priority = decidingPriority(tenant, receiver, now);
  for (const lease of moved) {
    const name = nameOf(lease);
    const clash = kept.find((other) =>
      other.node !== lease.node
        ? clashes(other, lease)
        : !isCounted(lease.node) && strengthsConflict(other.strength, lease.strength),
    );
    if (clash !== undefined) {
      const { id } = clash.record;
      return notTransferred(lease, `It would conflict with ${id}, which stays behind; transfer or release that first.`);
    }
    const resource = tenant.resources.get(name.text);
    if (resource !== undefined && resource.record.capacity !== null && !isRefilled(resource)) {
      const waitsForIt = [...receiver.open].some((request) =>
        request.claims.some((claim) => claim.node === resource.node),
      );
      if (waitsForIt && ownUnits(resource, receiver) + lease.record.units > resource.record.capacity) {
        return notTransferred(lease, "The receiver waits for units itself, and would then wait for its own.");
      }
    }
    const obstacles = createObstacles();
    const claim = claimOfLease(tenant, lease.record, name);
    // Waiters for units that come back with time do not wait for this lease (G15).
    if (claim.counted !== null && isRefilled(claim.counted))
      addOverlapping(obstacles, tenant, claim, receiver, lastPlace, Number.POSITIVE_INFINITY);
    else addObstacles(obstacles, tenant, claim, receiver, lastPlace, 0, Number.POSITIVE_INFINITY);
    const waitDie = tenant.record.settings.strategy === "wait_die";
    for (const { holder } of obstacles.claims.keys()) {
      if (waitDie ? holder.priority < priority : holder.priority > priority) continue;
      const detail = "Somebody waits for this lease, and could deadlock with the new holder; release it instead.";
      return notTransferred(lease, detail);
    }
  }
  return null;
}

function firstRefusal(leases: readonly LeaseEntry[], whyNot: (lease: LeaseEntry) => Refusal | null): Refusal | null {
  for (const lease of leases) {
    const refusal = whyNot(lease);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** W10: a record for the request that its lease stands for, because the two part; null: there is none. */
function requestCarriedBy(turn: Turn, agent: AgentEntry, lease: LeaseEntry): RequestEntry | null {
  const { id, agentId, predicate, resource, units, ttl, idleTimeout, purpose, tokens } = lease.record;
  const { requestKey: key, fingerprint } = lease.record;
  if (key === null || fingerprint === null) return null;
  const intents = [{ predicate, resource, units, to: null, pick: null }];
  const asked = { intents, picked: [], waitTimeout: 0, observeSince: null, warnings: [] };
  const terms = { id: requestIdOf(id), agentId, key, fingerprint, ttl, idleTimeout, purpose, tokens, ...asked };
  const request = addRequest(turn, agent, terms);
  agent.keys.set(key, request);
  attachLeases(turn, request, [lease]);
  return request;
}

/** For the request through which the giver got it the lease is over: asked for again, it is shown as ended. */
function noteHandedOver(turn: Turn, request: RequestEntry, record: Lease): void {
  noteEndedLease(turn, request, endedLease(record, "RELEASED", turn.now, "transferred", null));
}

function clashes(a: LeaseEntry, b: LeaseEntry): boolean {
  return strengthsConflict(a.strength, b.strength) && namesOverlap(nameOf(a), nameOf(b));
}

function isCounted(node: Node | null): boolean {
  const resource = (node?.mark ?? null) as ResourceEntry | null;
  return resource !== null && resource.record.capacity !== null;
}

export function downgradeLease(turn: Turn, lease: LeaseEntry, command: DowngradeLease): Reply {
  const predicate = readPredicate(command.predicate);
  if (predicate === undefined) {
    return refuse("invalid_predicate", "The predicate is one of PROVIDES, CONSUMES, DEPENDS_ON.", {
      field: "predicate",
    });
  }
  const notActive = whyNotActive(lease);
  if (notActive !== null) return notActive;
  if (lease.holder.kind === "task") return ofTask(lease);
  if (lease.record.predicate === predicate) return { type: "lease", lease: lease.record };
  if (strengths[predicate] >= strengths[lease.record.predicate]) {
    return refuse("not_weaker", `${predicate} is not weaker than ${lease.record.predicate}; acquire it instead.`, {
      leaseId: lease.record.id,
    });
  }
  const tooLong = checkValue("version", commands.downgrade_lease.version, command.version);
  if (tooLong !== null) return tooLong;
  const halves = withLinked(turn.tenant, lease);
  const refusal = firstRefusal(halves, (one) => whyNotPermittedLease(turn, command.actor, one, { predicate }));
  if (refusal !== null) return refusal;
  for (const one of halves) {
    noteHandover(turn, one.record, turn.now, command.version);
    weaken(turn, one, predicate);
    emitLease(turn, one, "lease.downgraded", null);
  }
  return { type: "lease", lease: lease.record };
}

/** T10: a task's leases live and end together, so none of them is handed on or weakened alone. */
function ofTask(lease: LeaseEntry): Refusal {
  return notTransferred(lease, "The lease belongs to a task, whose leases stay together; give the task back.");
}

function notTransferred({ record }: LeaseEntry, detail: string): Refusal {
  return refuse("transfer_refused", detail, { leaseId: record.id });
}

function whyNotActive({ record, request }: LeaseEntry): Refusal | null {
  if (record.state === "CLOSING") return endedRefusal(record.id, record.closingAs ?? "RELEASED", record.endReason);
  if (record.state === "HELD")
    return refuse("verify_required", "The lease is held for a restart; call verify-all first.", { leaseId: record.id });
  if (record.state === "BINDING" || request?.record.state === "BINDING")
    return refuse("renew_required", "The lease is still being set up.", { leaseId: record.id });
  return null;
}

export function revoke(turn: Turn, command: Revoke): Reply | Later<Reply> {
  const refusal = requireAbove(command.actor);
  if (refusal !== null) return refusal;
  const tooLong = checkValue("reason", commands.revoke.reason, command.reason);
  if (tooLong !== null) return tooLong;
  const targets = findTargets(turn, command);
  if ("code" in targets) return targets;
  const { find, isMeant } = targets;
  const end: LeaseEnd = { as: "REVOKED", reason: command.reason };
  const sweeping = sweep(turn, {
    find: (most) => {
      const leases = find(most);
      return leases === null ? null : { requests: [], leases };
    },
    leaseEnd: (lease) => (isMeant(lease) ? end : null),
    requestEnd: noRequestEnd,
  });
  return answerAfter(turn, sweeping, () => ({ type: "revoked", count: sweeping.count }));
}

interface RevokeTargets {
  /** All of them, by fence; null: there are more than `most`. */
  readonly find: (most: number) => readonly LeaseEntry[] | null;
  readonly isMeant: (lease: LeaseEntry) => boolean;
}

function findTargets(turn: Turn, { target, actor }: Revoke): RevokeTargets | Refusal {
  const { tenant } = turn;
  const { leaseId = null, agentId = null, resourcePrefix } = target;
  if (leaseId !== null) {
    const lease = tenant.leases.get(leaseId);
    if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId });
    return whyNotManaged(turn, actor, lease) ?? { find: () => [lease], isMeant: (one) => one === lease };
  }
  if (agentId !== null) {
    const worker = tenant.book.workers.get(agentId);
    if (worker !== undefined && tenant.agents.get(agentId) === undefined) {
      const refusal = whyNotManagedAll(turn, actor, leasesOfWorker(worker));
      if (refusal !== null) return refusal;
      const find = (most: number): LeaseEntry[] | null => (worker.leases.size > most ? null : leasesOfWorker(worker));
      return { find, isMeant: (one) => worker.leases.has(one) };
    }
    const agent = agentOf({ tenant }, { actor, agentId });
    if ("code" in agent) return agent;
    const forbidden = mayActFor(actor, agent) ?? whyNotManagedAll(turn, actor, leasesOf(agent));
    if (forbidden !== null) return forbidden;
    const find = (most: number): LeaseEntry[] | null => (agent.leaseCount > most ? null : leasesOf(agent));
    return { find, isMeant: ({ holder }) => holder === agent };
  }
  const text = (resourcePrefix ?? "").replace(/(\/\*\*|\/)$/, "");
  const name = parseResourceName(text.endsWith(":") ? `${text}/` : text);
  if ("problem" in name) return refuse("invalid_resource", name.problem, { field: "resource_prefix" });
  const whole = canonicalName(name.segments.length === 0 ? `${name.text}**` : `${name.text}/**`);
  const asked = { ...question, action: "manage_resource", resource: whole } as const;
  const refusal = whyNotPermitted(turn, actor, asked, "resource_prefix");
  if (refusal !== null) return refusal;
  const root = findRoot(tenant, name.type);
  const top = root === undefined ? undefined : findNode(root, name);
  return { find: (most) => (top === undefined ? [] : leasesUnder(top, most)), isMeant: isUnder(name) };
}

/** Of a caller that policies do not narrow nothing is looked at. */
function whyNotManagedAll(turn: Turn, actor: Actor, leases: Iterable<LeaseEntry>): Refusal | null {
  const { parts } = permissionsOf(turn.tenant, actor);
  if (parts.manage_resource.length + parts.create_task.length === 0) return null;
  return firstRefusal([...leases], (lease) => whyNotManaged(turn, actor, lease));
}

/** Everything at and below a node, by fence. */
function leasesUnder(top: Node, most: number): LeaseEntry[] | null {
  const leases: LeaseEntry[] = [];
  const look = (node: Node): void => {
    eachAt(node, (lease) => leases.push(lease as LeaseEntry));
    if (leases.length > most) return;
    for (const children of [literalChildren(node), patternChildren(node)]) {
      for (const child of children) {
        look(child);
        if (leases.length > most) return;
      }
    }
  };
  look(top);
  return leases.length > most ? null : leases.sort((a, b) => a.order - b.order);
}

/** By its text: the tree may have lost the node meanwhile, and made another. */
function isUnder({ text }: ResourceName): (lease: LeaseEntry) => boolean {
  const below = text.endsWith("/") ? text : `${text}/`;
  return ({ record: { resource } }) => resource === text || resource.startsWith(below);
}
