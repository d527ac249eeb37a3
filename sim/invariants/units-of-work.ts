/**
 * Timestamps and fairness (W1, W2). A unit of work keeps its timestamp to its end, and none is given twice. A request
 * dies only of something older, so the oldest unit of a tenant never does; as older units end, every unit becomes the
 * oldest. So none dies for ever.
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

/** T10: a task gets its timestamp at creation, from the same sequence as agents. */
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
  if (view.tenant.settings.strategy !== "wait_die") violated("W7", "a request died under Wound-Wait", command);
  const older =
    [...view.agents.values()].some((agent) => agent.priority < reply.priority) ||
    [...view.tasks.values()].some((task) => task.timestamp < reply.priority);
  if (!older) violated("W2", "the oldest unit of work of its tenant died", command, reply);

  // With `pick`, the obstacle is on the picked resource: the event names it, and a dry run has no event.
  // One that names a request stood by until now (W14).
  const died = events.filter((event) => event.type === "request.died").find((event) => event.requestId === null);
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
