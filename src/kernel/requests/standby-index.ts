/**
 * Where requests stand by (W14): trees beside that of leases and waiters, one for each resource type, in which each list
 * is in order of age. A freed name finds what stands by for it at the cost of real overlaps (C5), and a search for what
 * is in the way never comes here.
 *
 *   FILE:/ ─ src ─ app.ts   exclusive: carol's (the oldest) ⇄ bob's ⇄ dave's
 */
import { SHARED, strengths } from "../contract/predicates.ts";
import { rankIn, removeFrom } from "../index/heap.ts";
import { search } from "../index/resource-search.ts";
import { createRoot, findNode, isEmpty, type Node, nodeFor, put, take, waitingFrom } from "../index/resource-tree.ts";
import type { AgentEntry, RequestEntry, TenantEntry, Turn, WaitingClaim } from "../memory/state.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";

/** Requests that stand by (W14), in trees of their own: no search for what is in the way meets them. */
export interface Standby {
  readonly roots: Map<string, Node>;
  count: number;
  /** How many of them leave the choice of a resource open. */
  picks: number;
  /** Names that were freed while settling; they are tried for once all waiters were served. */
  freed: ResourceName[];
}

/** Enters a request, new or restored. Where it leaves the choice open it stands at its pattern. */
export function enterStandby({ state, tenant }: Turn, request: RequestEntry, agent: AgentEntry): void {
  const { standby } = tenant;
  for (const intent of request.record.intents) {
    for (const text of intent.to === null ? [intent.resource] : [intent.resource, intent.to]) {
      const name = canonicalName(text);
      const claim: WaitingClaim = {
        request,
        name,
        intent,
        counted: null,
        node: null,
        strength: strengths[intent.predicate],
        order: agent.priority,
        suborder: request.record.arrival,
        previous: null,
        next: null,
      };
      put("waiting", nodeFor(rootFor(tenant, name.type), name), claim);
      request.claims.push(claim);
    }
  }
  standby.count++;
  if (leavesChoice(request)) standby.picks++;
  agent.standby = request;
  rankIn(state.waits, request, request.record.timeoutAt, request.record.arrival);
}

export function leaveStandby({ state, tenant }: Turn, request: RequestEntry): void {
  const { standby } = tenant;
  if (leavesChoice(request)) standby.picks--;
  for (const claim of request.claims) {
    take("waiting", claim);
    const { type } = claim.name;
    const root = standby.roots.get(type);
    if (root?.branch === null && (root.waiting === null || isEmpty(root.waiting))) standby.roots.delete(type);
  }
  request.claims.length = 0;
  standby.count--;
  if (request.holder.kind === "agent") request.holder.standby = null;
  removeFrom(state.waits, request);
}

function leavesChoice({ record }: RequestEntry): boolean {
  return record.intents.some(({ pick }) => pick !== null);
}

function rootFor({ standby }: TenantEntry, type: string): Node {
  const known = standby.roots.get(type);
  if (known !== undefined) return known;
  const root = createRoot();
  standby.roots.set(type, root);
  return root;
}

/** Every node at which something stands by that overlaps with the name. */
export function eachStandbyNode({ standby }: TenantEntry, name: ResourceName, visit: (node: Node) => void): void {
  const root = standby.roots.get(name.type);
  if (root === undefined) return;
  search(root, name, {
    visit(node) {
      if (node.waiting !== null) visit(node);
      return false;
    },
    below: (_node, branch) => (waitingFrom(branch, SHARED) > 0 ? "enter" : "skip"),
  });
}

/** The node of exactly this name. */
export function standbyNodeOf({ standby }: TenantEntry, name: ResourceName): Node | null {
  const root = standby.roots.get(name.type);
  return root === undefined ? null : (findNode(root, name) ?? null);
}
