/** Finds a superset of the live leases that a query may match; the caller still checks each. */
import { EXCLUSIVE, PROVIDING, SHARED } from "../../kernel/contract/predicates.ts";
import {
  headOf,
  type LeaseEntry,
  leasesOf,
  type Node,
  type Placed,
  type ResourceName,
  search,
  type TenantEntry,
} from "../../kernel/views.ts";

/** What is found in one go; where there would be more, all leases are looked at instead, a slice at a time. */
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
    visit: (node) => {
      for (const strength of [SHARED, PROVIDING, EXCLUSIVE] as const) {
        if (!collect(headOf(node, strength), found)) return true;
      }
      return ++visited > foundMax;
    },
    below: (node: Node) => (held(node) > 0 ? "enter" : "skip"),
  });
  return isTooMuch ? null : found;
}

function held({ branch }: Node): number {
  return branch === null ? 0 : branch.heldShared + branch.heldProviding + branch.heldExclusive;
}

function collect(head: Placed | null, found: LeaseEntry[]): boolean {
  for (let item = head; item !== null; item = item.next === head ? null : item.next) {
    if (found.length === foundMax) return false;
    found.push(item as LeaseEntry);
  }
  return true;
}
