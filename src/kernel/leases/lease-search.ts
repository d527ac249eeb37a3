/** Finds a superset of the live leases that a query may match; the caller still checks each. */
import { SHARED } from "../contract/predicates.ts";
import { some } from "../index/placed-lists.ts";
import { search } from "../index/resource-search.ts";
import { heldFrom } from "../index/resource-tree.ts";
import { type LeaseEntry, leasesOf, type TenantEntry } from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";

/** What is found in one go; where there would be more, all leases are read instead, a slice at a time. */
const foundMax = 2_000;
/** An agent's own leases are at hand in a list, so more of them are taken. */
const ofAgentMax = 20_000;

export function findLeases(
  tenant: TenantEntry,
  { resource, agentId }: { readonly resource: ResourceName | null; readonly agentId: string | null },
): Iterable<LeaseEntry> {
  if (agentId !== null) {
    const agent = tenant.agents.get(agentId);
    if (agent === undefined) return [];
    if (agent.leaseCount <= ofAgentMax) return leasesOf(agent);
  }
  return (resource === null ? null : overlapping(tenant, resource)) ?? tenant.leases.values();
}

/** null: too many. */
function overlapping(tenant: TenantEntry, name: ResourceName): readonly LeaseEntry[] | null {
  const root = tenant.roots.get(name.type);
  if (root === undefined) return [];
  const found: LeaseEntry[] = [];
  let visited = 0;
  const isTooMuch = search(root, name, {
    visit: ({ shared, providing, exclusive }) => {
      const isFull = [shared, providing, exclusive].some((head) =>
        some(head, (item) => {
          if (found.length === foundMax) return true;
          found.push(item as LeaseEntry);
          return false;
        }),
      );
      return isFull || ++visited > foundMax;
    },
    below: (_node, branch) => (heldFrom(branch, SHARED) > 0 ? "enter" : "skip"),
  });
  return isTooMuch ? null : found;
}
