/**
 * Timestamps and fairness (W1, W2). A unit of work keeps its timestamp to its end, and none is given twice. Nobody dies
 * without something older in its way, so the oldest of a tenant never does; and as those before it begin and end, every
 * unit becomes the oldest. That is why none dies for ever.
 */
import { predicates } from "../../src/kernel/contract/predicates.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import { inTheWay } from "../model/conflicts.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

/** The youngest timestamp of each tenant so far. */
export type TimestampMemory = Map<string, number>;

export function checkTimestamps(memory: TimestampMemory, step: Step): void {
  for (const change of step.changes) {
    if (change.kind === "task") checkTaskTimestamp(memory, change.before, change.after);
    if (change.kind !== "agent" || change.after === null) continue;
    const { before, after } = change;
    if (before !== null && before.priority === after.priority) continue;
    if (before !== null && before.state !== "COMPLETED" && before.state !== "ABORTED") {
      violated("W1", "a unit of work changed its timestamp", before, after);
    }
    const last = memory.get(after.tenant) ?? 0;
    if (after.priority <= last) violated("W1", `a timestamp is not younger than ${last}, the last one given`, after);
    memory.set(after.tenant, after.priority);
  }
}

/** T10: a task's age is its own from its creation on, of the same sequence as those of agents. */
function checkTaskTimestamp(memory: TimestampMemory, before: Task | null, after: Task | null): void {
  if (after === null) return;
  if (before !== null) {
    if (before.timestamp !== after.timestamp) violated("W1", "a task changed its timestamp", before, after);
    return;
  }
  const last = memory.get(after.tenant) ?? 0;
  if (after.timestamp <= last) violated("W1", `a task's timestamp is not younger than ${last}`, after);
  memory.set(after.tenant, after.timestamp);
}

export function checkDeath(view: TenantView, { command, reply, events }: Step): void {
  if (command?.type !== "acquire" || command.tenant !== view.tenant.id || reply?.type !== "died") return;
  if (view.tenant.settings.strategy !== "wait_die") violated("W7", "Wound-Wait let somebody die", command);
  const older =
    [...view.agents.values()].some((agent) => agent.priority < reply.priority) ||
    [...view.tasks.values()].some((task) => task.timestamp < reply.priority);
  if (!older) violated("W2", "the oldest unit of work of its tenant died", command, reply);

  // Where it left a choice, what it died of is at the one that was picked: its event names it, and a dry run has none.
  const died = events.find((event) => event.type === "request.died");
  if (died === undefined && command.intents.some(({ pick }) => pick === "any")) return;
  let at = 0;
  const claims = command.intents.flatMap(({ predicate: wish, resource, units, to }) => {
    const predicate = predicates.find((one) => one === wish) ?? "MUTATES";
    const names = to === null || to === undefined ? [resource] : [resource, to];
    return names.map((name) => ({ predicate, resource: died?.resources[at++] ?? name, units: units ?? 1 }));
  });
  const { leases, requests } = inTheWay(view.field, command.agentId, claims, view.waiters, "covered");
  const isOlder = (holder: string) => (view.priorityOf(holder) ?? 0) < reply.priority;
  if (![...leases, ...requests].some((one) => isOlder(one.agentId))) {
    violated("W2", "it died although nothing older is in its way", command, reply);
  }
}
