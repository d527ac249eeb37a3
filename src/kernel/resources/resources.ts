/** Declared resources: capacity (C6), fences (G7), withdrawal (G12). */

import type { DeclareResource, FenceResource, ResetResource, WithdrawResource } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, SHARED } from "../contract/predicates.ts";
import type { Millis, Resource } from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { each, isObstructed, lastPlace, unitsAhead } from "../deciding/conflicts.ts";
import { readName } from "../deciding/manifest.ts";
import { search } from "../index/resource-search.ts";
import { heldFrom, nodeFor, setMark, waitingFrom } from "../index/resource-tree.ts";
import { endBinding, endLeases } from "../leases/holding.ts";
import { findTenant, requireAbove } from "../memory/actors.ts";
import {
  type Claim,
  changed,
  createResourceEntry,
  emit,
  findRoot,
  type LeaseEntry,
  type Party,
  type RequestEntry,
  type ResourceEntry,
  rootOf,
  type State,
  type TenantEntry,
} from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { serve } from "../requests/queue.ts";
import { endWait, unitsWished } from "../requests/request-life.ts";
import { unparkFrom } from "../tasks/task-parking.ts";
import { unbarAll } from "../tasks/task-queue.ts";

export function declareResource(state: State, command: DeclareResource, now: Millis): Reply {
  const found = findName(state, command, command.resource);
  if ("code" in found) return found;
  const { tenant, name } = found;
  const { capacity, cell } = command;
  if (name.wild)
    return refuse("invalid_resource", "A pattern cannot be declared; declare the names themselves.", {
      field: "resource",
    });
  if (capacity !== null && !(Number.isSafeInteger(capacity) && capacity >= 1 && capacity <= limits.unitsMax)) {
    return refuse("invalid_capacity", `capacity is a whole number from 1 to ${limits.unitsMax}.`, {
      field: "capacity",
    });
  }
  const known = tenant.resources.get(name.text);
  const before = known?.record ?? null;
  const changesKind = (capacity === null) !== ((before?.capacity ?? null) === null) || cell !== (before?.cell ?? null);
  if (changesKind && isUsed(tenant, name)) {
    return refuse("resource_in_use", "It is leased or waited for; declare it so when it is free.", {
      field: "resource",
    });
  }
  if (known !== undefined && capacity !== null && turnsAWait(tenant, known, capacity)) {
    return refuse(
      "resource_in_use",
      "With so few units a waiting request could deadlock; try again when it is served.",
      {
        field: "capacity",
      },
    );
  }
  if (known === undefined && tenant.resources.size >= tenant.record.quotas.resourcesMax) {
    return refuse("lease_denied", `The tenant may declare ${tenant.record.quotas.resourcesMax} resources.`, {
      reason: "quota",
    });
  }
  const entry = known ?? addResource(tenant, name, now);
  // What a cell said of it is not so of another's, or of nobody's.
  const said = cell === entry.record.cell ? {} : { driver: null, hardware: [], fault: null };
  entry.record = { ...entry.record, ...said, capacity, cell, withdrawn: false };
  changed(state, entry);
  emitResource(state, entry, "resource.declared", now);
  serve(state, tenant, [name], now);
  unparkFrom(state, tenant, entry);
  unbarAll(state, tenant);
  return { type: "resource", resource: entry.record, created: known === undefined };
}

export function addResource(tenant: TenantEntry, name: ResourceName, now: Millis): ResourceEntry {
  const record: Resource = {
    tenant: tenant.record.id,
    name: name.text,
    capacity: null,
    cell: null,
    driver: null,
    hardware: [],
    fault: null,
    fenced: false,
    fenceReason: null,
    fencedAt: null,
    withdrawn: false,
    declaredAt: now,
  };
  return placeResource(tenant, record, name);
}

/** Enters a resource, new or restored, into the index, with the units that are taken already. */
export function placeResource(tenant: TenantEntry, record: Resource, name: ResourceName): ResourceEntry {
  const node = nodeFor(rootOf(tenant, name.type), name);
  const entry = createResourceEntry(record, name, node);
  each(node.shared, (lease) => (entry.heldUnits += (lease as LeaseEntry).record.units));
  each(node.providing, (lease) => (entry.heldUnits += (lease as LeaseEntry).record.units));
  each(node.exclusive, (lease) => (entry.heldUnits += (lease as LeaseEntry).record.units));
  setMark(node, entry);
  tenant.resources.set(record.name, entry);
  return entry;
}

export function isUsed(tenant: TenantEntry, name: ResourceName): boolean {
  const root = findRoot(tenant, name.type);
  if (root === undefined) return false;
  return search(root, name, {
    visit: ({ shared, providing, exclusive, waiting }) =>
      shared !== null ||
      providing !== null ||
      exclusive !== null ||
      (waiting !== null && (waiting.shared ?? waiting.providing ?? waiting.exclusive) !== null),
    below: (_node, branch) => (heldFrom(branch, SHARED) + waitingFrom(branch, SHARED) > 0 ? "stop" : "skip"),
  });
}

/** Whether somebody would then wait for units in the direction that W2 and W7 forbid. */
export function turnsAWait(tenant: TenantEntry, resource: ResourceEntry, capacity: number): boolean {
  if (capacity >= (resource.record.capacity ?? 0)) return false;
  const waitDie = tenant.record.settings.strategy === "wait_die";
  const isForbidden = (waiter: Party, other: Party): boolean =>
    waiter !== other && (waitDie ? waiter.priority > other.priority : waiter.priority < other.priority);
  let turns = false;
  const ahead: Party[] = [];
  each(resource.node.waiting?.exclusive ?? null, (item) => {
    const { request } = item as Claim;
    const units = unitsWished(
      request.claims.map((wish) => ({ wish })),
      item as Claim,
    );
    if (resource.heldUnits + unitsAhead(resource, item) + units > capacity) {
      turns ||= ahead.some((other) => isForbidden(request.party, other));
      each(resource.node.exclusive, (lease) => {
        turns ||= isForbidden(request.party, (lease as LeaseEntry).party);
      });
    }
    ahead.push(request.party);
  });
  return turns;
}

export function fenceResource(state: State, command: FenceResource, now: Millis): Reply {
  const found = findName(state, command, command.resource);
  if ("code" in found) return found;
  if (command.reason.length > limits.reasonLengthMax) {
    return refuse("invalid_reason", `reason has at most ${limits.reasonLengthMax} characters.`, { field: "reason" });
  }
  const entry = fence(state, found.tenant, found.name, command.reason, now);
  return { type: "resource", resource: entry.record, created: false };
}

/** G7: what is live on it is revoked, who waits for it is told to pause, and nothing is leased until it was reset. */
export function fence(
  state: State,
  tenant: TenantEntry,
  name: ResourceName,
  reason: string,
  now: Millis,
): ResourceEntry {
  const entry = tenant.resources.get(name.text) ?? addResource(tenant, name, now);
  if (entry.record.fenced) return entry;
  entry.record = { ...entry.record, fenced: true, fenceReason: reason, fencedAt: now };
  changed(state, entry);
  emitResource(state, entry, "resource.fenced", now);
  clear(state, tenant, name, "resource_fenced", true, now);
  return entry;
}

/** Ends what is live on a name, if so told, and every wait for it. */
function clear(
  state: State,
  tenant: TenantEntry,
  name: ResourceName,
  reason: string,
  leasesToo: boolean,
  now: Millis,
): void {
  const { leases, requests } = findUsers(tenant, name);
  const freed: ResourceName[] = [];
  for (const request of requests) freed.push(...endWait(state, tenant, request, "PAUSED", reason, now));
  const binding = leases.filter((lease) => lease.request?.record.state === "BINDING");
  for (const { request } of binding) {
    if (request?.record.state === "BINDING") freed.push(...endBinding(state, tenant, request, "PAUSED", reason, now));
  }
  if (leasesToo) freed.push(...endLeases(state, tenant, leases, "REVOKED", reason, now));
  serve(state, tenant, freed, now);
}

function findUsers(tenant: TenantEntry, name: ResourceName): { leases: LeaseEntry[]; requests: RequestEntry[] } {
  const leases: LeaseEntry[] = [];
  const requests = new Set<RequestEntry>();
  const root = findRoot(tenant, name.type);
  if (root !== undefined) {
    search(root, name, {
      visit({ shared, providing, exclusive, waiting }) {
        for (const head of [shared, providing, exclusive]) each(head, (lease) => leases.push(lease as LeaseEntry));
        for (const head of [waiting?.shared, waiting?.providing, waiting?.exclusive]) {
          each(head ?? null, (claim) => requests.add((claim as Claim).request));
        }
        return false;
      },
      below: () => "enter",
    });
  }
  return {
    leases: leases.sort((a, b) => a.order - b.order),
    requests: [...requests].sort((a, b) => a.record.arrival - b.record.arrival),
  };
}

/** The probe has seen it clean (for an unbound resource: the operator's word), so it can be leased again. */
export function resetResource(state: State, command: ResetResource, now: Millis): Reply {
  const found = findName(state, command, command.resource);
  if ("code" in found) return found;
  const { tenant, name } = found;
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
      {
        field: "resource",
      },
    );
  }
  const intent = { predicate: "MUTATES", resource: name.text, units: 1, to: null, pick: null } as const;
  const everything = { intent, name, strength: EXCLUSIVE, counted: null } as const;
  if (isObstructed(tenant, everything, nobody, lastPlace, 0)) {
    return refuse("resource_in_use", "A lease on it is still being torn down; reset it when that is confirmed.", {
      field: "resource",
    });
  }
  entry.record = { ...entry.record, fenced: false, fenceReason: null, fencedAt: null };
  emitResource(state, entry, "resource.reset", now);
  changed(state, entry);
  const { capacity, cell, withdrawn } = entry.record;
  if (capacity === null && cell === null && !withdrawn) removeResource(tenant, entry);
  unbarAll(state, tenant);
  serve(state, tenant, [name], now);
  return { type: "resource", resource: entry.record, created: false };
}

/** Stands for no party: whoever is there is somebody else. */
const nobody = { leaseCount: 0 } as Party;

/** A name that was only fenced, never declared, leaves nothing behind. */
function removeResource(tenant: TenantEntry, entry: ResourceEntry): void {
  entry.alive = false;
  tenant.resources.delete(entry.record.name);
  setMark(entry.node, null);
}

export function withdrawResource(state: State, command: WithdrawResource, now: Millis): Reply {
  const found = findName(state, command, command.resource);
  if ("code" in found) return found;
  const { tenant, name } = found;
  const entry = tenant.resources.get(name.text) ?? addResource(tenant, name, now);
  if (!entry.record.withdrawn) {
    entry.record = { ...entry.record, withdrawn: true };
    changed(state, entry);
    emitResource(state, entry, "resource.withdrawn", now);
  }
  clear(state, tenant, name, "resource_withdrawn", command.revoke, now);
  return { type: "resource", resource: entry.record, created: false };
}

function findName(
  state: State,
  { tenant: tenantId, actor }: Pick<DeclareResource, "tenant" | "actor">,
  text: string,
): { readonly tenant: TenantEntry; readonly name: ResourceName } | Refusal {
  const tenant = findTenant(state, tenantId);
  if ("code" in tenant) return tenant;
  const refusal = requireAbove(actor);
  if (refusal !== null) return refusal;
  const name = readName(text, "resource");
  return "code" in name ? name : { tenant, name };
}

export function emitResource(
  state: State,
  entry: ResourceEntry,
  type: "resource.declared" | "resource.fenced" | "resource.reset" | "resource.withdrawn",
  now: Millis,
): void {
  emit(state, { type, tenant: entry.record.tenant, at: now, resource: entry.record });
}
