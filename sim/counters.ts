/**
 * How often each rule was exercised. A simulation that never exercises a rule says nothing about it, so no count may
 * be 0.
 */
import { refusalCodes } from "../src/kernel/contract/refusals.ts";
import { taskSituations } from "./tasks/task-situations.ts";

export type Counters = Map<string, number>;

export function count(counters: Counters, name: string, by = 1): void {
  counters.set(name, (counters.get(name) ?? 0) + by);
}

export function addAll(counters: Counters, more: Iterable<readonly [string, number]>): void {
  for (const [name, by] of more) count(counters, name, by);
}

/** Codes that the kernel never refuses with: of tokens, of what it answers with PAUSED, and of reading receipts. */
const notOfTheKernel: readonly string[] = ["resource_fenced", "receipt_unknown"];

const verdicts = ["granted", "waiting", "standby", "died", "paused"];

const events = [
  "lease.binding",
  "lease.granted",
  "lease.renewed",
  "lease.reissued",
  "lease.held",
  "lease.revived",
  "lease.transferred",
  "lease.downgraded",
  "lease.violated",
  "lease.closing",
  "lease.released",
  "lease.expired",
  "lease.revoked",
  "request.waiting",
  "request.standing_by",
  "request.granted",
  "request.timed_out",
  "request.canceled",
  "request.paused",
  "request.died",
  "agent.registered",
  "agent.taken_up",
  "agent.paused",
  "agent.unpaused",
  "agent.forgotten",
  "agent.transitioned",
  "resource.declared",
  "resource.fenced",
  "resource.reset",
  "resource.withdrawn",
  "cell.enrolled",
  "cell.gone",
  "cell.withdrawn",
  "cell.readmitted",
  "tenant.created",
  "tenant.suspended",
  "tenant.resumed",
  "tenant.changed",
  "task.created",
  "task.offered",
  "task.accepted",
  "task.completed",
  "task.requeued",
  "task.escalated",
  "task.canceled",
  "task.redriven",
  "task.recovered",
  "receipt.stored",
];

/** What only the simulation knows it has done, each with its rule. */
const situations = [
  "L3 many ends settled at one instant",
  "L3 settled in slices",
  "L9 held, verified and revived",
  "L10 revoked as idle",
  "G2 quota on a type",
  "G6 a cell lost a binding",
  "G11 a cell ended a binding by itself",
  "pick granted",
  "pick waiting",
  "pick died",
  "pick paused",
  "W3 waiter with pick granted",
  "C6 units leased",
  "C6 capacity lowered",
  "C7 rename granted",
  "W3 waiter granted",
  "W5 died again",
  "W7 wounded",
  "W8 unclaimed",
  "W10 repeated and answered",
  "W11 more than 16 obstacles",
  "W12 dry run",
  "W12 dry run compared",
  "S3 refusal compared",
  "A3 command of an older instance",
  "A4 grant with an update",
  "strategy switched",
  "restored from records",
  "S2 a step threw",
  "restored between two slices",
  "L11 re-issued after a restore",
  "twins compared",
  "twins compared, with offers",
  "tasks drained",
  "tasks drained among agents",
  "late command",
  "repeated command",
];

export const required: readonly string[] = [
  ...verdicts.map((verdict) => `verdict ${verdict}`),
  ...["resource_fenced", "resource_withdrawn", "tenant_suspended", "agent_paused", "cell_not_ready"].map(
    (reason) => `paused ${reason}`,
  ),
  ...["quota", "capacity", "self_blocked", "bind_failed"].map((reason) => `denied ${reason}`),
  ...refusalCodes.filter((code) => !notOfTheKernel.includes(code)).map((code) => `refused ${code}`),
  ...events.map((type) => `event ${type}`),
  ...situations,
  ...taskSituations,
];

/** What must happen to the simulated service, its network and its workers; see service/. */
const requiredOfService: readonly string[] = [
  "agents: granted",
  "network: reply dropped",
  "network: request sent again",
  "network: request repeated",
  "network: request dropped",
  "principals: cancelled",
  "service: commit fails, lost",
  "service: commit fails, stored",
  "service: killed",
  "service: restarted",
  "service: tasks succeeded",
  "workers: died",
  "workers: late result acknowledged",
  "workers: reclaimed",
  "workers: result refused, already_completed",
  "workers: result refused, stale_fence",
  "workers: result stored before",
  "workers: stopped past the lease",
  "workers: directive cancel",
];

export function missing(counters: Counters): string[] {
  return required.filter((name) => (counters.get(name) ?? 0) === 0);
}

export function missingOfService(counters: Counters): string[] {
  return requiredOfService.filter((name) => (counters.get(name) ?? 0) === 0);
}

export function describe(counters: Counters): string {
  const lines = [...counters].sort(([a], [b]) => (a < b ? -1 : 1));
  return lines.map(([name, times]) => `${String(times).padStart(10)}  ${name}`).join("\n");
}
