/** Declared resources: capacity (C6, G15), fences (G7), withdrawal (G12); and writes that went past a lease. */
import { checkValue } from "../contract/bounds.ts";
import {
  type Actor,
  commands,
  type DeclareResource,
  type FenceResource,
  type ReportViolation,
  type ResetResource,
  type WithdrawResource,
} from "../contract/commands.ts";
import { EXCLUSIVE } from "../contract/predicates.ts";
import { deny, type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { whyNoMemory } from "../deciding/admission.ts";
import { lastPlace, readName } from "../deciding/manifest.ts";
import { isObstructed } from "../deciding/obstacles.ts";
import { eachAt } from "../index/placed-lists.ts";
import { emitLease } from "../leases/lease-life.ts";
import { requireAbove } from "../memory/actors.ts";
import { scheduleRefill } from "../memory/refill.ts";
import { type AgentEntry, freeName, type Holder, nameOf, type Turn, type WaitingClaim } from "../memory/state.ts";
import { namesOverlap } from "../names/pattern.ts";
import { parseResourceName, type ResourceName } from "../names/resource-name.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { answerAfter, type Later } from "../requests/sweep.ts";
import {
  addResource,
  changeResource,
  clear,
  fence,
  isUsed,
  removeResource,
  turnsAWait,
} from "../resources/resource-life.ts";

export function declareResource(turn: Turn, name: ResourceName, command: DeclareResource): Reply {
  const { tenant, now } = turn;
  const { capacity, refillMs, cell } = command;
  if (name.wild)
    return refuse("invalid_resource", "A pattern cannot be declared; declare the names themselves.", {
      field: "resource",
    });
  const refusal = checkValue("capacity", commands.declare_resource.capacity, capacity) ?? whyNoRefill(command);
  if (refusal !== null) return refusal;
  const known = tenant.resources.get(name.text);
  const before = known?.record ?? null;
  const changesKind =
    (capacity === null) !== ((before?.capacity ?? null) === null) ||
    (refillMs === null) !== ((before?.refillMs ?? null) === null) ||
    cell !== (before?.cell ?? null);
  if (changesKind && isUsed(tenant, name)) {
    return refuse("resource_in_use", "It is leased or waited for; declare it so when it is free.", {
      field: "resource",
    });
  }
  if (known !== undefined && capacity !== null && turnsAWait(tenant, known, capacity)) {
    return refuse(
      "resource_in_use",
      "With so few units a waiting request could deadlock; try again when it is served.",
      { field: "capacity" },
    );
  }
  if (known === undefined && tenant.resources.size >= tenant.record.quotas.resourcesMax) {
    return deny("quota", `The tenant may declare ${tenant.record.quotas.resourcesMax} resources.`);
  }
  const noMemory = known === undefined ? whyNoMemory(tenant) : null;
  if (noMemory !== null) return noMemory;
  const entry = known ?? addResource(tenant, name, now);
  // What a cell said of it is not so of another's, or of nobody's.
  const said = cell === entry.record.cell ? {} : { driver: null, hardware: [], fault: null };
  const spent = refillMs === null ? [] : entry.record.spent;
  if (changesKind) entry.heldUnits = 0;
  changeResource(turn, entry, { ...said, capacity, refillMs, spent, cell, withdrawn: false }, "resource.declared");
  scheduleRefill(turn.state, entry);
  freeName(turn, name);
  turn.state.consequences.push({ type: "units_freed", resource: entry }, { type: "readiness_changed" });
  // A task that waits for more units than there are now gives its place up when it is tried (C6, T10).
  eachAt(entry.node.waiting, (item) => {
    const { holder } = (item as WaitingClaim).request;
    if (holder.kind === "task") turn.state.consequences.push({ type: "task_fits", task: holder });
  });
  return { type: "resource", resource: entry.record, created: known === undefined };
}

/** G15: time gives back units, so there must be units; what a cell hosts is free when the cell says so (G6). */
function whyNoRefill({ capacity, refillMs, cell }: DeclareResource): Refusal | null {
  if (refillMs === null) return null;
  const refusal = checkValue("refill_ms", commands.declare_resource.refillMs, refillMs);
  if (refusal !== null || (capacity !== null && cell === null)) return refusal;
  return refuse("invalid_refill", "refill_ms says when units come back: give a capacity too, and no cell.", {
    field: "refill_ms",
  });
}

export function fenceResource(turn: Turn, name: ResourceName, command: FenceResource): Reply | Later<Reply> {
  const tooLong = checkValue("reason", commands.fence_resource.reason, command.reason);
  if (tooLong !== null) return tooLong;
  const { entry, clearing } = fence(turn, name, command.reason);
  return answerAfter(turn, clearing, () => ({ type: "resource", resource: entry.record, created: false }));
}

/** The probe has seen it clean (for an unbound resource: the operator's word), so it can be leased again. */
export function resetResource(turn: Turn, name: ResourceName, command: ResetResource): Reply {
  const { tenant } = turn;
  const entry = tenant.resources.get(name.text);
  if (entry === undefined)
    return refuse("resource_unknown", "There is no such resource; nothing of this name is fenced.", {
      field: "resource",
    });
  if (!entry.record.fenced) return { type: "resource", resource: entry.record, created: false };
  if (entry.record.cell !== null && !command.probed) {
    return refuse(
      "probe_required",
      "It is bound, and only its cell can see that it is clean: reset it through its cell.",
      { field: "resource" },
    );
  }
  const intent = { predicate: "MUTATES", resource: name.text, units: 1, to: null, pick: null } as const;
  const everything = { intent, name, strength: EXCLUSIVE, counted: null } as const;
  if (isObstructed(tenant, everything, nobody, lastPlace, 0)) {
    return refuse("resource_in_use", "A lease on it is still being torn down; reset it when that is confirmed.", {
      field: "resource",
    });
  }
  changeResource(turn, entry, { fenced: false, fenceReason: null, fencedAt: null }, "resource.reset");
  const { capacity, cell, withdrawn } = entry.record;
  if (capacity === null && cell === null && !withdrawn) removeResource(tenant, entry);
  freeName(turn, name);
  turn.state.consequences.push({ type: "readiness_changed" });
  return { type: "resource", resource: entry.record, created: false };
}

/** A sentinel that equals no holder, so every lease counts as another's. */
const nobody = { leaseCount: 0 } as Holder;

export function withdrawResource(turn: Turn, name: ResourceName, command: WithdrawResource): Reply | Later<Reply> {
  const { tenant, now } = turn;
  const entry = tenant.resources.get(name.text) ?? addResource(tenant, name, now);
  if (!entry.record.withdrawn) changeResource(turn, entry, { withdrawn: true }, "resource.withdrawn");
  const clearing = clear(turn, name, "resource_withdrawn", command.revoke);
  return answerAfter(turn, clearing, () => ({ type: "resource", resource: entry.record, created: false }));
}

export function findName(
  turn: Turn,
  { actor, resource }: { readonly actor: Actor; readonly resource: string },
): ResourceName | Refusal {
  const name = requireAbove(actor) ?? readName(resource, "resource");
  if ("code" in name) return name;
  return whyNotPermitted(turn, actor, { ...question, action: "manage_resource", resource: name }, "resource") ?? name;
}

/**
 * A write that went past a lease, as a guard found it when it was done. Nothing can be undone here, and nobody is punished:
 * it is an event about the lease, so that its holder and all watchers learn of it at once.
 */
export function reportViolation(turn: Turn, agent: AgentEntry, command: ReportViolation): Reply {
  const { tenant } = turn;
  const { leaseId } = command;
  const lease = tenant.leases.get(leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId });
  const name = parseResourceName(command.resource);
  if ("problem" in name) return refuse("invalid_resource", name.problem, { field: "resource" });
  if (lease.holder === agent || !namesOverlap(nameOf(lease), name)) {
    return refuse("invalid_resource", "That lease does not stand against this write; name the one that does.", {
      field: "resource",
    });
  }
  emitLease(turn, lease, "lease.violated", `${agent.record.id} wrote ${name.text}`);
  return { type: "lease", lease: lease.record };
}
