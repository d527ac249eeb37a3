/**
 * A worker that lost its lease may still come with its result (T13). For a task with a manifest that counts only while
 * nobody else was granted what it held: what it held is left behind as "ghosts", in trees like those of the leases, and
 * a grant that would have conflicted with one of them lays them all to rest.
 */

import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, type Strength, strengthOf, weakestConflicting } from "../contract/predicates.ts";
import type { Intent } from "../contract/records.ts";
import type { Wish } from "../deciding/claims.ts";
import { search } from "../index/resource-search.ts";
import { createRoot, each, headOf, heldFrom, type Node, nodeFor, put, take } from "../index/resource-tree.ts";
import type { Party, TenantEntry, Turn } from "../memory/state.ts";
import { type Ghost, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { canonicalName } from "../names/resource-name.ts";

export function haunt(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { haunted } = tenant.book;
  unhaunt(tenant, task);
  haunted.set(
    task,
    task.record.spec.intents.flatMap((intent) => ghostsOf(tenant, task, intent)),
  );
  if (haunted.size <= limits.taskHauntedMax) return;
  for (const oldest of haunted.keys()) return contestPast(turn, oldest);
}

function ghostsOf({ book }: TenantEntry, task: TaskEntry, { predicate, resource, to }: Intent): Ghost[] {
  return [resource, ...(to === null ? [] : [to])].map((text) => {
    const name = canonicalName(text);
    const ghost: Ghost = {
      task,
      node: null,
      strength: strengthOf(predicate),
      order: task.priority,
      suborder: 0,
      previous: null,
      next: null,
    };
    put("held", nodeFor(ghostRoot(book.ghosts, name.type), name), ghost);
    return ghost;
  });
}

function ghostRoot(ghosts: Map<string, Node>, type: string): Node {
  const known = ghosts.get(type);
  if (known !== undefined) return known;
  const root = createRoot();
  ghosts.set(type, root);
  return root;
}

export function unhaunt({ book }: TenantEntry, task: TaskEntry): void {
  for (const ghost of book.haunted.get(task) ?? []) take("held", ghost);
  book.haunted.delete(task);
}

/** Somebody is granted this: whoever lost a lease on it comes too late from now on. */
export function contest(turn: Turn, party: Party, wish: Wish): void {
  const { tenant } = turn;
  // Other units of a counted resource are other things (C6).
  const root = wish.counted === null ? tenant.book.ghosts.get(wish.name.type) : undefined;
  if (root === undefined) return;
  const weakest = weakestConflicting(wish.strength);
  const met = new Set<TaskEntry>();
  search(root, wish.name, {
    visit(node) {
      for (let strength: number = EXCLUSIVE; strength >= weakest; strength--) {
        each(headOf(node, strength as Strength), (ghost) => met.add((ghost as Ghost).task));
      }
      return false;
    },
    below: (_node, branch) => (heldFrom(branch, weakest) > 0 ? "enter" : "skip"),
  });
  for (const task of met) if (task !== party) contestPast(turn, task);
}

export function contestPast(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  unhaunt(tenant, task);
  updateTask(turn, task, { past: task.record.past.map((attempt) => ({ ...attempt, contested: true })) });
}
