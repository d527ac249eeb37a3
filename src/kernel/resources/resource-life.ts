/** Declared resources in the index, and what a fence or a withdrawal ends (G7, G12). */

import type { ResourceEvent } from "../contract/events.ts";
import { SHARED } from "../contract/predicates.ts";
import type { Millis, Resource } from "../contract/records.ts";
import { unitsAhead, unitsClaimed } from "../deciding/manifest.ts";
import { each, eachAt } from "../index/placed-lists.ts";
import { search } from "../index/resource-search.ts";
import { heldFrom, isEmpty, nodeFor, setMark, waitingFrom } from "../index/resource-tree.ts";
import { createResourceEntry } from "../memory/entries.ts";
import type { Sweep } from "../memory/jobs.ts";
import { isRefilled } from "../memory/refill.ts";
import {
  changed,
  dropRoot,
  emit,
  findRoot,
  type Holder,
  type LeaseEntry,
  nameOf,
  type RequestEntry,
  type ResourceEntry,
  rootOf,
  type TenantEntry,
  type Turn,
  type WaitingClaim,
} from "../memory/state.ts";
import { namesOverlap } from "../names/pattern.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { liveLeasesOf } from "../requests/request-life.ts";
import { eachStandbyNode } from "../requests/standby-index.ts";
import { sweep } from "../requests/sweep.ts";

export function addResource(tenant: TenantEntry, name: ResourceName, now: Millis): ResourceEntry {
  const record: Resource = {
    tenant: tenant.record.id,
    name: name.text,
    capacity: null,
    refillMs: null,
    spent: [],
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
  eachAt(node, (lease) => (entry.heldUnits += (lease as LeaseEntry).record.units));
  setMark(node, entry);
  tenant.resources.set(record.name, entry);
  return entry;
}

export function isUsed(tenant: TenantEntry, name: ResourceName): boolean {
  const root = findRoot(tenant, name.type);
  if (root === undefined) return false;
  return search(root, name, {
    visit: (node) => !isEmpty(node) || (node.waiting !== null && !isEmpty(node.waiting)),
    below: (_node, branch) => (heldFrom(branch, SHARED) + waitingFrom(branch, SHARED) > 0 ? "stop" : "skip"),
  });
}

/** Whether somebody would then wait for units in the direction that W2 and W7 forbid. */
export function turnsAWait(tenant: TenantEntry, resource: ResourceEntry, capacity: number): boolean {
  if (capacity >= (resource.record.capacity ?? 0)) return false;
  const waitDie = tenant.record.settings.strategy === "wait_die";
  const isForbidden = (waiter: Holder, other: Holder): boolean =>
    waiter !== other && (waitDie ? waiter.priority > other.priority : waiter.priority < other.priority);
  let turns = false;
  const ahead: Holder[] = [];
  each(resource.node.waiting?.exclusive ?? null, (item) => {
    const { request } = item as WaitingClaim;
    const units = unitsClaimed(
      request.claims.map((claim) => ({ claim })),
      item as WaitingClaim,
    );
    if (resource.heldUnits + unitsAhead(resource, item) + units > capacity) {
      turns ||= ahead.some((other) => isForbidden(request.holder, other));
      // Nobody waits for a lease where units come back with time (G15).
      each(isRefilled(resource) ? null : resource.node.exclusive, (lease) => {
        turns ||= isForbidden(request.holder, (lease as LeaseEntry).holder);
      });
    }
    ahead.push(request.holder);
  });
  return turns;
}

/** G7: live leases on it are revoked, waiters are paused, and nothing is leased until it is reset. */
export function fence(
  turn: Turn,
  name: ResourceName,
  reason: string,
): { entry: ResourceEntry; clearing: Sweep | null } {
  const { tenant, now } = turn;
  const entry = tenant.resources.get(name.text) ?? addResource(tenant, name, now);
  if (entry.record.fenced) return { entry, clearing: null };
  changeResource(turn, entry, { fenced: true, fenceReason: reason, fencedAt: now }, "resource.fenced");
  return { entry, clearing: clear(turn, name, "resource_fenced", true) };
}

/** Ends every wait for a name, what is being bound on it and, if `leasesToo`, every lease on it. */
export function clear(turn: Turn, name: ResourceName, reason: string, leasesToo: boolean): Sweep {
  const { tenant } = turn;
  const isMeant = (lease: LeaseEntry): boolean => namesOverlap(name, nameOf(lease));
  return sweep(turn, {
    find: (most) => findUsers(tenant, name, most, leasesToo),
    leaseEnd: (lease) => (leasesToo && isMeant(lease) ? { as: "REVOKED", reason } : null),
    requestEnd: (request) => {
      const isWaited = request.claims.some((claim) => isWaitedFor(claim, name));
      return isWaited || liveLeasesOf(tenant, request).some(isMeant) ? { fate: "PAUSED", reason } : null;
    },
  });
}

/** One that stands by and leaves the choice open can still be granted another (W14). */
function isWaitedFor({ request, intent, name: wanted }: WaitingClaim, name: ResourceName): boolean {
  if (request.record.state === "STANDBY" && intent.pick !== null) return false;
  return namesOverlap(name, wanted);
}

function findUsers(
  tenant: TenantEntry,
  name: ResourceName,
  most: number,
  leasesToo: boolean,
): { leases: LeaseEntry[]; requests: RequestEntry[] } | null {
  const leases: LeaseEntry[] = [];
  const requests = new Set<RequestEntry>();
  const root = findRoot(tenant, name.type);
  const areTooMany = (): boolean => leases.length + requests.size > most;
  if (root !== undefined) {
    search(root, name, {
      visit(node) {
        eachAt(node, (lease) => leases.push(lease as LeaseEntry));
        eachAt(node.waiting, (claim) => requests.add((claim as WaitingClaim).request));
        return areTooMany();
      },
      below: (_node, branch) => (heldFrom(branch, SHARED) + waitingFrom(branch, SHARED) > 0 ? "enter" : "skip"),
      hasEnough: areTooMany,
    });
  }
  eachStandbyNode(tenant, name, ({ waiting }) => {
    eachAt(waiting, (claim) => {
      if (isWaitedFor(claim as WaitingClaim, name)) requests.add((claim as WaitingClaim).request);
    });
  });
  if (areTooMany()) return null;
  leases.sort((a, b) => a.order - b.order);
  const inOrder = [...requests].sort((a, b) => a.record.arrival - b.record.arrival);
  for (const { request } of leases) if (request?.record.state === "BINDING") inOrder.push(request);
  return { leases: leasesToo ? leases : [], requests: inOrder };
}

/** A name that was only fenced, never declared, leaves nothing behind. */
export function removeResource(tenant: TenantEntry, entry: ResourceEntry): void {
  entry.alive = false;
  tenant.resources.delete(entry.record.name);
  if (setMark(entry.node, null)) dropRoot(tenant, entry.name.type);
}

export function changeResource(
  turn: Turn,
  entry: ResourceEntry,
  change: Partial<Resource>,
  type: ResourceEvent["type"],
): void {
  entry.record = { ...entry.record, ...change };
  changed(turn, entry);
  emit(turn, { type, tenant: entry.record.tenant, at: turn.now, resource: entry.record });
}
