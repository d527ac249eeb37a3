/**
 * When something is freed, the waiters it could matter to are examined in the order of the queue, and those that now
 * fit are granted in the same step (W3). Nobody else is woken.
 */

import { EXCLUSIVE, PROVIDING, SHARED, type Strength, strengthsConflict } from "../contract/predicates.ts";
import { unitsClaimed } from "../deciding/manifest.ts";
import { isFree } from "../deciding/obstacles.ts";
import { findOthers, placeIn } from "../deciding/picking.ts";
import { isBefore, type Placed } from "../index/placed-lists.ts";
import { search } from "../index/resource-search.ts";
import { headOf, type Node, waitingFrom } from "../index/resource-tree.ts";
import { isRequestSwept } from "../memory/jobs.ts";
import {
  findRoot,
  freeName,
  type Holder,
  type RequestEntry,
  type ResourceEntry,
  type TenantEntry,
  type Turn,
  type WaitingClaim,
} from "../memory/state.ts";
import { namesOverlap } from "../names/pattern.ts";
import type { ResourceName } from "../names/resource-name.ts";
import { grantWaiter, updateRequest } from "./request-life.ts";

/** Serves those who may have waited for these names. */
export function serve(turn: Turn, names: readonly ResourceName[]): void {
  const { tenant } = turn;
  if (tenant.book.choices.size > 0) freeChoices(turn, names);
  if (tenant.waitingCount === 0) return;
  const candidates = new Map<RequestEntry, Placed>();
  for (const name of names) {
    const root = findRoot(tenant, name.type);
    if (root === undefined) continue;
    search(root, name, {
      visit(node) {
        addCandidates(candidates, node);
        return false;
      },
      below: (_node, branch) => (waitingFrom(branch, SHARED) > 0 ? "enter" : "skip"),
    });
  }
  const inOrder = [...candidates].sort(([, a], [, b]) => (isBefore(a, b) ? -1 : 1));
  for (const [request] of inOrder) {
    if (request.record.state !== "WAITING" || isRequestSwept(tenant, request) || !fits(tenant, request)) continue;
    // A task keeps its place in the queue, and is granted what it waits for together with a worker (T10).
    if (request.holder.kind === "task") turn.state.consequences.push({ type: "task_fits", task: request.holder });
    else grantWaiter(turn, request);
  }
  if (tenant.picking.size > 0) servePicking(turn, names);
}

/** T10: tasks that may have any one resource of a pattern are tried again when one of those is freed. */
function freeChoices({ state, tenant }: Turn, names: readonly ResourceName[]): void {
  for (const choice of tenant.book.choices.values()) {
    if (names.some((name) => namesOverlap(choice.pattern, name)))
      state.consequences.push({ type: "choice_freed", choice });
  }
}

/** Waiters that leave the choice of a resource open, and could use one of these names instead, in queue order. */
function servePicking(turn: Turn, names: readonly ResourceName[]): void {
  const affected = [...turn.tenant.picking].filter(([{ claims }, patterns]) => {
    return names.some(
      (freed) =>
        patterns.some((pattern) => namesOverlap(pattern, freed)) ||
        claims.some(({ name }) => namesOverlap(name, freed)),
    );
  });
  affected.sort(([a], [b]) => (isBefore(placeIn(a), placeIn(b)) ? -1 : 1));
  for (const [request, patterns] of affected) {
    if (isRequestSwept(turn.tenant, request)) continue;
    const picked = findOthers(turn.tenant, request, patterns, names);
    if (picked === null) continue;
    if (request.holder.kind === "task") {
      turn.state.consequences.push({ type: "task_fits", task: request.holder });
      continue;
    }
    const left = request.claims.map(({ name }) => name);
    updateRequest(turn, request, { picked });
    grantWaiter(turn, request);
    // Others may have stood behind it where it waited.
    for (const name of left) freeName(turn, name);
  }
}

export function fits(tenant: TenantEntry, request: RequestEntry): boolean {
  const claims = request.claims.map((claim) => ({ claim }));
  return request.claims.every((claim) => isFree(tenant, claim, request.holder, claim, unitsClaimed(claims, claim)));
}

/**
 * Of those who wait at one node, the ones that could be granted. All who wait there want the same name, so once two
 * holders ahead conflict with a strength, nobody behind them of that strength can fit: however long the queue is, only
 * its front is looked at.
 */
function addCandidates(candidates: Map<RequestEntry, Placed>, node: Node): void {
  const { waiting } = node;
  if (waiting === null) return;
  const resource = node.mark as ResourceEntry | null;
  if (resource !== null && resource.record.capacity !== null) return addUnitCandidates(candidates, resource);
  const front = new Front();
  const next: (Placed | null)[] = [waiting.shared, waiting.providing, waiting.exclusive];
  for (;;) {
    let first: Placed | null = null;
    for (const strength of [SHARED, PROVIDING, EXCLUSIVE] as const) {
      if (front.isClosed(strength)) next[strength] = null;
      const item = next[strength] ?? null;
      if (item !== null && (first === null || isBefore(item, first))) first = item;
    }
    if (first === null) return;
    const { holder } = (first as WaitingClaim).request;
    if (!front.blocks(first.strength, holder)) candidates.set((first as WaitingClaim).request, first);
    front.add(first.strength, holder);
    next[first.strength] = first.next === headOf(waiting, first.strength) ? null : first.next;
  }
}

/** The holders at the front of one node's queue, as far as it matters to later waiters: none, one or several. */
class Front {
  private readonly holders: (Holder | "several" | null)[] = [null, null, null];

  /** Every later waiter of this strength conflicts with one ahead. */
  isClosed(strength: Strength): boolean {
    const ahead = this.holders[strength] ?? null;
    return ahead === "several" || (ahead !== null && ahead.open.size <= 1);
  }

  blocks(strength: Strength, holder: Holder): boolean {
    const ahead = this.holders[strength] ?? null;
    return ahead === "several" || (ahead !== null && ahead !== holder);
  }

  add(strength: Strength, holder: Holder): void {
    for (const other of [SHARED, PROVIDING, EXCLUSIVE] as const) {
      if (!strengthsConflict(strength, other)) continue;
      const ahead = this.holders[other] ?? null;
      this.holders[other] = ahead === null || ahead === holder ? holder : "several";
    }
  }
}

/** Units are reserved in turn (C6): nobody behind the first that does not fit can. */
function addUnitCandidates(candidates: Map<RequestEntry, Placed>, resource: ResourceEntry): void {
  const head = resource.node.waiting?.exclusive ?? null;
  let room = (resource.record.capacity ?? 0) - resource.heldUnits;
  for (let item = head; item !== null && room >= 0; item = item.next === head ? null : item.next) {
    const { request, intent } = item as WaitingClaim;
    candidates.set(request, item);
    room -= intent.units;
  }
}
