/**
 * Receipts about tasks that this system does not own (R1), where the tenant takes them: a ledger for others. `accepted`
 * opens an obligation, `escalate` moves its custody, `complete` closes it. There is neither lease nor attempt, so that
 * only the custodian, or who accepted it in the custodian's name, may speak for it.
 */
import type { Actor } from "../contract/commands.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../contract/task-commands.ts";
import type { ForeignObligation, Receipt, ReceiptDraft, ReceiptPhase } from "../contract/task-records.ts";
import { quotaExceeded, whyNoMemory, whyNotWithinLedger } from "../deciding/admission.ts";
import { agentOf, isAbove, submitterOf, whyNotWorker } from "../memory/actors.ts";
import type { TenantEntry, Turn } from "../memory/state.ts";
import type { ForeignEntry } from "../memory/task-state.ts";
import { question } from "../policies/matching.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { findKnown } from "../receipts/marks.ts";
import {
  invalidReceipt,
  namedCustodian,
  ownObligationPrefix,
  type Subject,
  whyNotObligation,
  whyNotWorkersToSay,
} from "../receipts/principals.ts";
import { addToLedger, fillReceipt, ownIdPrefix, receiptIdOf } from "../receipts/receipts.ts";
import { closeForeign, noteForeign, openForeign } from "../tasks/foreign-obligations.ts";
import { meetWorker } from "../tasks/workers.ts";

/** LegiVellum's word for what is not there: the type of a task that names none. */
const noType = "NA";

/** `unknown` is the answer where the receipt cannot be taken for one about another's task. */
export function submitForeign(turn: Turn, command: SubmitReceipt, phase: ReceiptPhase, unknown: Refusal): Reply {
  const { tenant } = turn;
  const { receipt: input, unowned = false } = command;
  const { taskId, leaseId, fence } = input;
  if (taskId === null || leaseId !== null || fence !== null) return unknown;
  const open = tenant.book.foreign.get(taskId);
  // What was accepted can still be completed or escalated after the tenant has switched it off.
  const isTaken = tenant.record.settings.foreignReceipts && unowned;
  if (open === undefined && !isTaken) return unknown;
  const known = findKnown(tenant, open?.record ?? { dedupes: [] }, command);
  if (known !== null) return known;
  const writer = writerOf(turn, command.actor, input);
  if (typeof writer === "object" && writer !== null) return writer;
  const denied = whyNotForeign(turn, command, open?.record ?? null, phase, writer);
  if (denied !== null) return denied;
  if (phase === "accepted") return accept(turn, command, taskId, open, writer);
  return open === undefined ? notAccepted(taskId) : follow(turn, command, phase, open, writer);
}

/** S4, as for tasks of our own: what was accepted can still be completed. */
function whyNotForeign(
  turn: Turn,
  { actor, receipt }: SubmitReceipt,
  open: ForeignObligation | null,
  phase: ReceiptPhase,
  id: string | null,
): Refusal | null {
  if (phase !== "accepted" && !isAbove(actor)) return null;
  const taskType = open?.taskType ?? receipt.taskType ?? noType;
  return whyNotPermitted(turn, actor, { ...question, action: "work", id, taskType }, "task_id");
}

/**
 * R7: in whose name the caller writes. An agent's token is for the agent, a worker's key for the worker_ids that it used
 * first; those above may write for anybody, and need not say for whom.
 */
function writerOf(turn: Turn, actor: Actor, { sourceSystem }: ReceiptInput): string | null | Refusal {
  if (isAbove(actor)) return sourceSystem;
  if (actor.role === "agent") {
    const { agentId } = actor;
    if (agentId === null)
      return refuse("forbidden", "This key registers agents; use the agent_token of one of them for this.");
    const agent = agentOf(turn, { actor, agentId });
    if ("code" in agent) return agent;
    if (sourceSystem === null || sourceSystem === agentId) return agentId;
    return invalidReceipt("source_system", "must be the agent whose token this is");
  }
  if (sourceSystem === null) return invalidReceipt("source_system", "is needed: the worker_id that this key writes as");
  const worker = turn.tenant.book.workers.get(sourceSystem);
  return (worker === undefined ? null : whyNotWorker(actor, worker)) ?? sourceSystem;
}

/** T3 for another's task: it opens the obligation, or the one that it was escalated to takes it up. */
function accept(
  turn: Turn,
  command: SubmitReceipt,
  taskId: string,
  open: ForeignEntry | undefined,
  writer: string | null,
): Reply {
  const { tenant } = turn;
  const { actor, receipt: input } = command;
  const custodian = namedCustodian(actor, input, writer ?? "");
  if (custodian === "") return invalidReceipt("for_principal", "is needed, or recipient_ai: who answers for the task");
  if (input.taskSummary === null) return invalidReceipt("task_summary", "is needed: what was accepted");
  const before = open?.record ?? null;
  if (before !== null && before.obligation.custodian !== custodian)
    return invalidReceipt(
      "for_principal",
      `must be ${before.obligation.custodian}, who answers for it until it is escalated`,
    );
  if (before !== null && before.receiptId !== null) return repeated(actor, input, before, before.receiptId, writer);
  const full = before === null ? whyNoneMore(tenant) : null;
  if (full !== null) return full;
  const about = before ?? {
    tenant: tenant.record.id,
    taskId,
    taskType: input.taskType ?? noType,
    principalAi: input.fromPrincipal ?? custodian,
    obligation: { id: input.obligationId ?? nextObligationId(tenant), state: "OPEN", custodian, openedAt: turn.now },
    attempt: input.attempt ?? 1,
  };
  const sender = { workerId: writer ?? custodian, forPrincipal: custodian, startedAt: null };
  const draft = draftOf(turn, command, "accepted", about, before, sender);
  if ("code" in draft) return draft;
  const receipt = addToLedger(turn, draft, input.receiptId, about.obligation.id);
  if (open === undefined) {
    const { id: receiptId, sourceSystem: acceptedBy } = receipt;
    openForeign(turn, { ...about, acceptedBy, receiptId, lastReceiptId: receiptId }, input, receipt);
  } else noteForeign(turn, open, input, receipt);
  return { type: "receipt", receipt };
}

/** Said before, without a key: the first answer stands. It is not the answer to another of the custodian's family. */
function repeated(
  actor: Actor,
  input: ReceiptInput,
  before: ForeignObligation,
  receiptId: string,
  writer: string | null,
): Reply {
  if (isAbove(actor) || writer === before.acceptedBy)
    return whyNotWorkersToSay(actor, input, subjectOf(before), writer ?? "") ?? { type: "receipt_known", receiptId };
  return refuse("forbidden", `${before.acceptedBy} has accepted this task for ${before.obligation.custodian}.`);
}

/** What follows an acceptance: by the custodian, or by the one who accepted it. */
function follow(
  turn: Turn,
  command: SubmitReceipt,
  phase: ReceiptPhase,
  open: ForeignEntry,
  writer: string | null,
): Reply {
  const { record } = open;
  const { custodian, openedAt, id } = record.obligation;
  const { actor, receipt: input } = command;
  if (!isAbove(actor) && writer !== custodian && writer !== record.acceptedBy)
    return refuse("forbidden", `This is for ${custodian}, who answers for the task, or a supervisor.`);
  const sender = { workerId: writer ?? custodian, forPrincipal: custodian, startedAt: openedAt };
  const draft = draftOf(turn, command, phase, record, record, sender);
  if ("code" in draft) return draft;
  const receipt: Receipt = addToLedger(turn, draft, input.receiptId, id);
  if (phase === "complete") closeForeign(turn, open);
  else noteForeign(turn, open, input, receipt);
  return { type: "receipt", receipt };
}

type About = Omit<ForeignObligation, "acceptedBy" | "receiptId" | "lastReceiptId" | "dedupes">;

/** Checked and filled (R2); the last check is the one that may note a new worker, so that a refusal changes nothing. */
function draftOf(
  turn: Turn,
  { actor, receipt: input }: SubmitReceipt,
  phase: ReceiptPhase,
  about: About,
  before: ForeignObligation | null,
  from: { readonly workerId: string; readonly forPrincipal: string; readonly startedAt: number | null },
): ReceiptDraft | Refusal {
  const { tenant } = turn;
  const subject = subjectOf(about);
  const notIts =
    whyNotObligation(tenant, { record: { obligation: before?.obligation ?? null } }, input, phase, true) ??
    whyNotWorkersToSay(actor, input, subject, from.workerId);
  if (notIts !== null) return notIts;
  const { attempt } = about;
  const sender = {
    ...from,
    attempt,
    causedByReceiptId: before?.lastReceiptId ?? null,
    submittedBy: submitterOf(actor),
  };
  const draft = fillReceipt(input, phase, subject, sender, turn);
  if ("code" in draft) return draft;
  const full = whyNotWithinLedger(tenant, draft);
  if (full !== null) return full;
  const worker = actor.role === "worker" ? meetWorker(turn, actor, from.workerId, null) : null;
  return worker !== null && "code" in worker ? worker : draft;
}

function subjectOf({ tenant, taskId, taskType, principalAi }: About): Subject {
  const unknown = { taskSummary: null, parentTaskId: null, supervisor: null, traceparent: null };
  const expected = { expectedOutcomeKind: null, expectedArtifactMime: null };
  return { record: { tenant, id: taskId, spec: { taskType, principalAi, ...unknown, ...expected } }, payload: null };
}

/** R8, W9: what would begin something new. */
function whyNoneMore(tenant: TenantEntry): Refusal | null {
  const { book, record } = tenant;
  if (record.suspended) return refuse("tenant_suspended", "The tenant is suspended; its operator can resume it.");
  const { foreignObligationsMax } = record.quotas;
  const { size } = book.foreign;
  if (size >= foreignObligationsMax) return quotaExceeded("foreign_obligations_max", size, foreignObligationsMax);
  return whyNoMemory(tenant);
}

/** That of the receipt that opens it; a task's own have a dash. */
function nextObligationId({ counters }: TenantEntry): string {
  return ownObligationPrefix + receiptIdOf(counters.record.receipts + 1).slice(ownIdPrefix.length);
}

/** T4: what closes nothing is not stored, or one obligation could be completed twice. */
function notAccepted(taskId: string): Refusal {
  const detail =
    "Nobody answers for this task here: it was never accepted, or is complete. Send its accepted receipt first.";
  return refuse("complete_without_accept", detail, { taskId });
}
