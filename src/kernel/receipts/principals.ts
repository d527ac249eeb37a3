/**
 * Whom a receipt names, and who answers for a task (R2, R5, R7, T5). `from_principal` is the requester, the task's
 * principal; `for_principal` is the executor, who answers for it.
 */

import { invalid } from "../contract/bounds.ts";
import type { Actor } from "../contract/commands.ts";
import { wireName } from "../contract/field.ts";
import { receiptInput } from "../contract/inputs.ts";
import type { Refusal } from "../contract/refusals.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import type { PastAttempt, ReceiptPhase, Task, TaskAttempt, TaskSpec } from "../contract/task-records.ts";
import { isAbove } from "../memory/actors.ts";
import type { TenantEntry } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";

/** What a receipt is about, as far as it is filled from it: a task, or what is known of one that this system does not own. */
export interface Subject {
  readonly record: Pick<Task, "tenant" | "id"> & { readonly spec: SubjectSpec };
  readonly payload: TaskEntry["payload"];
}

export type SubjectSpec = Pick<
  TaskSpec,
  | "taskType"
  | "principalAi"
  | "taskSummary"
  | "parentTaskId"
  | "expectedOutcomeKind"
  | "expectedArtifactMime"
  | "supervisor"
  | "traceparent"
>;

/** T5: who gets what the rules escalate: named by the task, its type or the tenant, else its principal. */
export function supervisorOf(
  { book, record }: TenantEntry,
  spec: Pick<TaskSpec, "supervisor" | "taskType" | "principalAi">,
): string {
  return (
    spec.supervisor ??
    book.types.get(spec.taskType)?.record.supervisor ??
    record.settings.supervisor ??
    spec.principalAi
  );
}

/** The custodian that its accepted receipt named. */
export function custodianOf({ custodian, workerId }: TaskAttempt): string {
  return custodian ?? workerId;
}

/** What ends a name before an instance's number or a part of the name: `worker.codegen` of `worker.codegen-1`. */
const familySeparators = "-._:/@#";

export function isItselfOrFamily(name: string, workerId: string): boolean {
  if (name === workerId) return true;
  return workerId.startsWith(name) && familySeparators.includes(workerId.charAt(name.length));
}

/**
 * R5: who answers for the task with this acceptance: the executor that it names, or its recipient. A worker's or agent's
 * key can only bind itself, so a recipient that is somebody else is only an address.
 */
export function namedCustodian(actor: Actor, { forPrincipal, recipientAi }: ReceiptInput, workerId: string): string {
  if (forPrincipal !== null) return forPrincipal;
  if (recipientAi === null || (!isAbove(actor) && !isItselfOrFamily(recipientAi, workerId))) return workerId;
  return recipientAi;
}

export function invalidReceipt(field: string, problem: string): Refusal {
  return invalid("invalid_receipt", field, problem);
}

type WorkersField =
  | ("fromPrincipal" | "forPrincipal" | "taskType" | "taskSummary" | "taskBody" | "inputs" | "parentTaskId")
  | ("expectedOutcomeKind" | "expectedArtifactMime");

/**
 * R7: a worker says what it did, not what the task was, nor as whom else. Supervisors and operators stand above it: what
 * they say is kept as it is (R2).
 */
export function whyNotWorkersToSay(
  actor: Actor,
  input: ReceiptInput,
  { record, payload }: Subject,
  workerId: string,
): Refusal | null {
  if (isAbove(actor)) return null;
  const { spec } = record;
  const { fromPrincipal, forPrincipal } = input;
  if (fromPrincipal !== null && fromPrincipal !== spec.principalAi && !isItselfOrFamily(fromPrincipal, workerId))
    return notIts("fromPrincipal", "must be the task's principal");
  if (forPrincipal !== null && !isItselfOrFamily(forPrincipal, workerId))
    return notIts("forPrincipal", "must be the worker itself, or its family");
  if (input.taskType !== null && input.taskType !== spec.taskType) return notIts("taskType", ofTask);
  for (const field of ofTheTask) if (differs(input[field], spec[field])) return notIts(field, ofTask);
  if (differs(input.taskBody, payload?.record.taskBody)) return notIts("taskBody", ofTask);
  const own = payload?.record.inputs ?? null;
  if (own !== null && input.inputs !== null && input.inputs !== undefined && !isSameJson(input.inputs, own))
    return notIts("inputs", ofTask);
  return null;
}

const ofTheTask = ["taskSummary", "parentTaskId", "expectedOutcomeKind", "expectedArtifactMime"] as const;
const ofTask = "is not the task's own; leave it out";

/** Where the task says nothing, the worker may. */
function differs(said: string | null, own: string | null | undefined): boolean {
  return said !== null && own !== null && own !== undefined && said !== own;
}

function notIts(field: WorkersField, problem: string): Refusal {
  return invalidReceipt(wireName(field, receiptInput[field]), problem);
}

/** The same value, whatever the order of its members. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  if (keys.length !== others.length) return false;
  const [one, other] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  return keys.every((key) => Object.hasOwn(other, key) && isSameJson(one[key], other[key]));
}

/** Ids of obligations that the control plane makes; a sender's own must differ. */
export const ownObligationPrefix = "obl_";

/**
 * R5: the obligation that a receipt names is the task's open one. An acceptance that opens one may give it its id, which
 * no other open obligation has.
 */
export function whyNotObligation(
  { book }: TenantEntry,
  { record }: { readonly record: Pick<Task, "obligation"> },
  { obligationId }: ReceiptInput,
  phase: ReceiptPhase,
  isBound: boolean,
): Refusal | null {
  if (obligationId === null) return null;
  const { obligation } = record;
  if (!isBound && phase !== "accepted")
    return invalidReceipt("obligation_id", "is not of this lease, which binds nobody");
  if (obligation !== null && obligation.state !== "CLOSED") {
    if (obligation.id === obligationId) return null;
    return invalidReceipt("obligation_id", `is not the task's open obligation, which is ${obligation.id}`);
  }
  if (phase !== "accepted") return invalidReceipt("obligation_id", "is not the task's, which has no open obligation");
  if (obligationId.startsWith(ownObligationPrefix))
    return invalidReceipt("obligation_id", `must not begin with ${ownObligationPrefix}, as the ledger's own ids do`);
  if (obligation?.id === obligationId) return invalidReceipt("obligation_id", "is closed; give the new one another id");
  return book.obligations.has(obligationId) ? invalidReceipt("obligation_id", "is another task's obligation") : null;
}

/**
 * It names no attempt, nobody has the task, and its source is the custodian. One that had lost the task before must name
 * the obligation: otherwise this may be its late result, to which T13 applies.
 */
export function speaksAsCustodian(
  { record }: TaskEntry,
  { leaseId, fence, sourceSystem, obligationId }: ReceiptInput,
  phase: ReceiptPhase,
): boolean {
  const { obligation, live, past } = record;
  if (phase === "accepted" || leaseId !== null || fence !== null || live.length > 0) return false;
  if (obligation === null || obligation.state === "CLOSED") return false;
  if (sourceSystem !== null && sourceSystem !== obligation.custodian) return false;
  const isMeant = ({ workerId }: PastAttempt): boolean => sourceSystem === null || workerId === sourceSystem;
  return obligationId !== null || !past.some((one) => one.acceptedAt !== null && isMeant(one));
}
