/**
 * Whether what was restored can be true: no two holders have conflicting leases (C1). Only a bug or another hand can have
 * stored that, so it is looked for where it could be: at names with several leases, and under patterns.
 */
import { EXCLUSIVE, type Strength, strengthsConflict, weakestConflicting } from "./contract/predicates.ts";
import type { Lease, Millis } from "./contract/records.ts";
import { each, eachAt } from "./index/placed-lists.ts";
import { search } from "./index/resource-search.ts";
import { headOf, heldFrom, type Node } from "./index/resource-tree.ts";
import { dueOf } from "./leases/lease-life.ts";
import { findRoot, type LeaseEntry, nameOf, type ResourceEntry, type TenantEntry } from "./memory/state.ts";
import type { Restoring } from "./restore.ts";

/** Broad patterns over millions of leases are not followed to the end: a start must stay quick. */
const nodesVisitedMax = 200_000;

/** Two leases that cannot both be held; null: there are none. Leases whose time is over by now do not count. */
export function findStoredConflict(
  { turns, crowded, patterns }: Restoring,
  now: Millis,
): readonly [Lease, Lease] | null {
  for (const node of crowded) {
    const found = conflictAt(node, now);
    if (found !== null) return found;
  }
  const visits = { left: nodesVisitedMax };
  for (const pattern of patterns) {
    const tenant = turns.get(pattern.tenantId)?.tenant;
    const found = tenant === undefined ? null : conflictOf(tenant, pattern, now, visits);
    if (found !== null) return found;
  }
  return null;
}

function conflictAt(node: Node, now: Millis): readonly [Lease, Lease] | null {
  const resource = node.mark as ResourceEntry | null;
  // Units of a counted resource may be more than it has, after its capacity was lowered (C6).
  if (resource !== null && resource.record.capacity !== null) return null;
  let strongest: LeaseEntry | null = null;
  eachAt(node, (item) => {
    if (!isOver(item as LeaseEntry, now)) strongest = item as LeaseEntry;
  });
  return strongest === null ? null : otherAt(node, strongest, now);
}

/** Somebody else's lease at the node that conflicts with this one. Lists come from the weakest to the strongest. */
function otherAt(node: Node, lease: LeaseEntry, now: Millis): readonly [Lease, Lease] | null {
  let found: LeaseEntry | null = null;
  const weakest = weakestConflicting[lease.strength];
  for (let strength: number = EXCLUSIVE; strength >= weakest && found === null; strength--) {
    each(headOf(node, strength as Strength), (item) => {
      const other = item as LeaseEntry;
      if (found !== null || other.holder === lease.holder || isOver(other, now)) return;
      if (strengthsConflict(other.strength, lease.strength)) found = other;
    });
  }
  return found === null ? null : [lease.record, (found as LeaseEntry).record];
}

function conflictOf(
  tenant: TenantEntry,
  lease: LeaseEntry,
  now: Millis,
  visits: { left: number },
): readonly [Lease, Lease] | null {
  const name = nameOf(lease);
  const root = findRoot(tenant, name.type);
  if (root === undefined || isOver(lease, now)) return null;
  const weakest = weakestConflicting[lease.strength];
  let found: readonly [Lease, Lease] | null = null;
  search(root, name, {
    visit(node) {
      found = otherAt(node, lease, now);
      return found !== null || --visits.left <= 0;
    },
    below: (_node, branch) => (heldFrom(branch, weakest) === 0 ? "skip" : visits.left > 0 ? "enter" : "stop"),
  });
  return found;
}

function isOver({ record }: LeaseEntry, now: Millis): boolean {
  return (record.state === "ACTIVE" || record.state === "HELD") && dueOf(record).at <= now;
}
