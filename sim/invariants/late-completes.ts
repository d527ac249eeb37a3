/**
 * T13, late results: a result that comes after its lease was lost counts only if nobody else was granted the task's
 * resources since, and the task itself was not offered again with its manifest. Checked against all events.
 */
import type { KernelEvent, LeaseEvent } from "../../src/kernel/contract/events.ts";
import type { Lease } from "../../src/kernel/contract/records.ts";
import type { ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import { type Claim, claimsConflict, type Field } from "../model/conflicts.ts";
import { overlap } from "../model/names.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, viewsOf } from "./tenant-view.ts";

export interface GrantMemory {
  /** The number of events so far, so that each has a number. */
  count: number;
  /** By task: the event at which its last attempt lost the last of its manifest's leases, or cells began to end it (G6). */
  readonly lost: Map<string, number>;
  readonly offers: Map<string, number>;
  grants: { readonly at: number; readonly lease: Lease }[];
}

/** No result comes later than this many grants. */
const grantsKept = 4_000;

export function createGrantMemory(): GrantMemory {
  return { count: 0, lost: new Map(), offers: new Map(), grants: [] };
}

export function checkLateCompletes(memory: GrantMemory, step: Step): void {
  const losing = losingIn(step);
  // The decision is checked first, against what was known before it; a late complete grants nothing before itself.
  for (const event of step.events) {
    memory.count++;
    if (event.type === "task.offered") {
      const id = `${event.tenant} ${event.task.id}`;
      memory.offers.set(id, (memory.offers.get(id) ?? 0) + 1);
    }
    if (event.type === "lease.granted" || event.type === "lease.binding") {
      memory.grants.push({ at: memory.count, lease: event.lease });
    }
    if (endsLease(event) && losing.has(`${event.tenant} ${event.lease.holder}`)) {
      memory.lost.set(`${event.tenant} ${event.lease.holder}`, memory.count);
    }
    if (event.type === "receipt.stored" && event.receipt.phase === "complete")
      checkCounted(memory, step, event.receipt.taskId);
  }
  checkRefused(memory, step);
  if (memory.grants.length > 2 * grantsKept) memory.grants = memory.grants.slice(-grantsKept);
}

/** Tasks whose attempt is over with this step. */
function losingIn({ changes }: Step): ReadonlySet<string> {
  const losing = new Set<string>();
  for (const change of changes) {
    if (change.kind !== "task" || change.before === null || change.before.live.length === 0) continue;
    if (change.after === null || change.after.live.length === 0)
      losing.add(`${change.before.tenant} ${change.before.id}`);
  }
  return losing;
}

function endsLease(event: KernelEvent): event is LeaseEvent {
  switch (event.type) {
    case "lease.expired":
    case "lease.released":
    case "lease.revoked":
    case "lease.closing":
      return true;
    default:
      return false;
  }
}

/** It was accepted: then nobody else was granted its resources. */
function checkCounted(memory: GrantMemory, { command, changes, store }: Step, taskId: string): void {
  if (command?.type !== "submit_receipt") return;
  const change = changes.find((one) => one.kind === "task" && one.before?.id === taskId);
  if (change?.kind !== "task" || change.before === null || change.before.spec.intents.length === 0) return;
  const { before } = change;
  if (before.live.length > 0) return; // In time.
  if (isCustodians(command.receipt, before)) return;
  const [other] = grantsSince(memory, store, before, conflicts);
  if (other !== undefined)
    violated("T13", "a late result was accepted, but another holder was granted its resources", before, other);
}

/** Not a result of that lease: the custodian ends the task, and says so (R5). */
export function isCustodians({ leaseId, fence, sourceSystem, obligationId }: ReceiptInput, task: Task): boolean {
  if (leaseId !== null || fence !== null || task.obligation === null) return false;
  if (sourceSystem !== null && sourceSystem !== task.obligation.custodian) return false;
  const had = task.past.filter(
    ({ acceptedAt, workerId }) => acceptedAt !== null && workerId === (sourceSystem ?? workerId),
  );
  return obligationId !== null || had.length === 0;
}

/** It was refused as contested: then somebody was. */
function checkRefused(memory: GrantMemory, { command, reply, store }: Step): void {
  if (command?.type !== "submit_receipt" || reply?.type !== "refused" || reply.code !== "stale_fence") return;
  const task = store.task.get(`${command.tenant} ${reply.taskId}`);
  if (task === undefined || !reply.detail.startsWith("What the task had")) return;
  // An attempt before the last one is contested by the task's own next offer.
  const offers = memory.offers.get(`${task.tenant} ${task.id}`) ?? 0;
  if (offers > 1 || grantsSince(memory, store, task, overlaps).length > 0) return;
  violated("T13", "a late result was refused as contested, but nobody was granted its resources", task, command);
}

type Test = (field: Field<Lease>, claim: Claim, lease: Lease) => boolean;

function grantsSince(memory: GrantMemory, store: Step["store"], task: Task, test: Test): Lease[] {
  const since = memory.lost.get(`${task.tenant} ${task.id}`) ?? Number.POSITIVE_INFINITY;
  const field = viewsOf(store).find(({ tenant }) => tenant.id === task.tenant)?.field;
  if (field === undefined) return [];
  const claims = claimsOf(task.spec.intents, task.picked);
  return memory.grants.flatMap(({ at, lease }) => {
    const isOthers = at > since && lease.tenant === task.tenant && lease.holder !== task.id;
    return isOthers && claims.some((claim) => test(field, claim, lease)) ? [lease] : [];
  });
}

/** Other units of a counted resource do not conflict (C6); a pattern over them may or may not include these. */
function conflicts(field: Field<Lease>, claim: Claim, lease: Lease): boolean {
  if (field.capacityOf(claim.resource) !== null || field.capacityOf(lease.resource) !== null) return false;
  return claimsConflict(field, claim, lease);
}

function overlaps(_field: Field<Lease>, claim: Claim, lease: Lease): boolean {
  return overlap(claim.resource, lease.resource);
}
