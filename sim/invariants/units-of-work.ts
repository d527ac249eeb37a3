/**
 * Timestamps and fairness (W1, W2). A unit of work keeps its timestamp to its end, none is given twice, and who is
 * older than all others with business of their own never dies: so no unit dies for ever while others begin and end.
 */

import { predicates } from "../../src/kernel/predicates.ts";
import { inTheWay } from "../model/conflicts.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

export interface Fairness {
  /** The youngest timestamp of each tenant so far. */
  readonly lastPriority: Map<string, number>;
  /** Deaths of each unit of work, by tenant and timestamp; the most is reported. */
  readonly deaths: Map<string, number>;
}

export function createFairness(): Fairness {
  return { lastPriority: new Map(), deaths: new Map() };
}

export function checkTimestamps(fairness: Fairness, step: Step): void {
  for (const change of step.changes) {
    if (change.kind !== "agent" || change.after === null) continue;
    const { before, after } = change;
    if (before !== null && before.priority === after.priority) continue;
    if (before !== null && before.state !== "COMPLETED" && before.state !== "ABORTED") {
      violated("W1", "a unit of work changed its timestamp", before, after);
    }
    const last = fairness.lastPriority.get(after.tenant) ?? 0;
    if (after.priority <= last) violated("W1", `a timestamp is not younger than ${last}, the last one given`, after);
    fairness.lastPriority.set(after.tenant, after.priority);
  }
}

export function checkDeath(fairness: Fairness, view: TenantView, { command, reply }: Step): void {
  if (command?.type !== "acquire" || command.tenant !== view.tenant.id || reply?.type !== "died") return;
  if (view.tenant.settings.strategy !== "wait_die") violated("W7", "Wound-Wait let somebody die", command);
  const claims = command.intents.flatMap(({ predicate: wish, resource, units, to }) => {
    const predicate = predicates.find((one) => one === wish) ?? "MUTATES";
    const names = to === null || to === undefined ? [resource] : [resource, to];
    return names.map((name) => ({ predicate, resource: name, units: units ?? 1 }));
  });
  const { leases, requests } = inTheWay(view.field, command.agentId, claims, view.waiters, "covered");
  const older = [...leases, ...requests].some((one) => (view.agents.get(one.agentId)?.priority ?? 0) < reply.priority);
  if (!older) violated("W2", "it died although nothing older is in its way", command, reply);
  if (!command.dryRun) {
    const unit = `${view.tenant.id} ${reply.priority}`;
    fairness.deaths.set(unit, (fairness.deaths.get(unit) ?? 0) + 1);
  }
}
