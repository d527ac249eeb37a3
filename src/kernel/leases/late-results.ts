/**
 * A worker that lost its lease may still come with its result (T13). For a task with a manifest that counts only while
 * nobody else was granted what it held: its names are kept, in trees like those of the leases, until a grant that would have
 * conflicted with one of them.
 */
import { limits } from "../contract/limits.ts";
import { EXCLUSIVE, type Strength, strengths, weakestConflicting } from "../contract/predicates.ts";
import type { Intent } from "../contract/records.ts";
import type { Claim } from "../deciding/manifest.ts";
import { each } from "../index/placed-lists.ts";
import { search } from "../index/resource-search.ts";
import { createRoot, headOf, heldFrom, type Node, nodeFor, put, take } from "../index/resource-tree.ts";
import type { Holder, TenantEntry, Turn } from "../memory/state.ts";
import { type LateName, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { canonicalName } from "../names/resource-name.ts";

export function awaitLateResult(turn: Turn, task: TaskEntry): void {
  const { tenant } = turn;
  const { lateResults } = tenant.book;
  dropLateResult(tenant, task);
  lateResults.set(
    task,
    task.record.spec.intents.flatMap((intent, at) => lateNamesOf(tenant, task, intent, task.record.picked[at] ?? null)),
  );
  if (lateResults.size <= limits.taskLateResultsMax) return;
  for (const oldest of lateResults.keys()) return contestPast(turn, oldest);
}

function lateNamesOf(
  { book }: TenantEntry,
  task: TaskEntry,
  { predicate, resource, to }: Intent,
  picked: string | null,
): LateName[] {
  return [picked ?? resource, ...(to === null ? [] : [to])].map((text) => {
    const name = canonicalName(text);
    const lateName: LateName = {
      task,
      type: name.type,
      node: null,
      strength: strengths[predicate],
      order: task.priority,
      suborder: 0,
      previous: null,
      next: null,
    };
    put("held", nodeFor(lateRoot(book.lateNames, name.type), name), lateName);
    return lateName;
  });
}

function lateRoot(lateNames: Map<string, Node>, type: string): Node {
  const known = lateNames.get(type);
  if (known !== undefined) return known;
  const root = createRoot();
  lateNames.set(type, root);
  return root;
}

export function dropLateResult({ book }: TenantEntry, task: TaskEntry): void {
  for (const lateName of book.lateResults.get(task) ?? []) {
    if (take("held", lateName)) book.lateNames.delete(lateName.type);
  }
  book.lateResults.delete(task);
}

/** Somebody is granted this: from now on results of those that lost a lease on it come too late. */
export function contestLateResults(turn: Turn, holder: Holder, claim: Claim): void {
  // Other units of a counted resource are other things (C6).
  const root = claim.counted === null ? turn.tenant.book.lateNames.get(claim.name.type) : undefined;
  if (root === undefined) return;
  const weakest = weakestConflicting[claim.strength];
  const met = new Set<TaskEntry>();
  search(root, claim.name, {
    visit(node) {
      for (let strength: number = EXCLUSIVE; strength >= weakest; strength--) {
        each(headOf(node, strength as Strength), (lateName) => met.add((lateName as LateName).task));
      }
      return false;
    },
    below: (_node, branch) => (heldFrom(branch, weakest) > 0 ? "enter" : "skip"),
  });
  for (const task of met) if (task !== holder) contestPast(turn, task);
}

export function contestPast(turn: Turn, task: TaskEntry): void {
  dropLateResult(turn.tenant, task);
  updateTask(turn, task, { past: task.record.past.map((attempt) => ({ ...attempt, contested: true })) });
}
