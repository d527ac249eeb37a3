/**
 * Tasks, offers and workers on the wire. Offers are what a busy server sends most, so their text is put together
 * directly; the kernel's own ids need no escaping.
 */

import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Directive, Offer, TaskReply } from "../../kernel/contract/replies.ts";
import {
  type Payload,
  type Task,
  task as taskFields,
  taskTypeRecord,
  type Worker,
  worker as workerFields,
} from "../../kernel/contract/task-records.ts";
import { type Answer, type AnswerContext, answer, answerJson, refusalAnswer } from "../answers/answer.ts";
import { comesWith } from "../answers/errors.ts";
import type { QueryReply, ReadAnswer, TaskObligation, TaskView } from "../answers/queries.ts";
import { expiresInMs, leasesText } from "../leases/lease-json.ts";
import { receiptsText, receiptText } from "../receipts/receipt-json.ts";
import { show, type WireObject } from "../schema/convert.ts";
import { escaped, isoTime } from "../schema/text.ts";
import { ledgerHead, taskObligation } from "../schema/views.ts";

type TokenOf = (lease: Lease, now: Millis) => string | null;

export function offersText(offers: readonly Offer[], now: Millis, tokenOf?: TokenOf): string {
  let text = "";
  for (const offer of offers) {
    if (text !== "") text += ",";
    text += offerText(offer, now, tokenOf);
  }
  return `{"offers":[${text}]}`;
}

export function offerText({ task, payload, lease, leases, attempt }: Offer, now: Millis, tokenOf?: TokenOf): string {
  const text =
    `{"lease_id":"${lease.id}",${lastsText(lease, now)},"fence":${lease.fence}` +
    `,"attempt":${attempt},"task":${offeredText(task, payload)}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

/** The nine fields of the AsyncGate document. */
function offeredText({ id, spec }: Task, payload: Payload | null): string {
  const { principalAi, taskType, taskSummary, payloadPointer, expectedOutcomeKind, expectedArtifactMime } = spec;
  const inputs = payload?.inputs ?? null;
  return (
    `{"task_id":"${id}","principal_ai":"${escaped(principalAi)}","task_type":"${escaped(taskType)}"` +
    `,"task_summary":${text(taskSummary)},"task_body":${text(payload?.taskBody ?? null)}` +
    `,"payload_pointer":${text(payloadPointer)},"inputs":${inputs === null ? "null" : JSON.stringify(inputs)}` +
    `,"expected_outcome_kind":${text(expectedOutcomeKind)},"expected_artifact_mime":${text(expectedArtifactMime)}}`
  );
}

export function taskLeaseText(
  lease: Lease,
  leases: readonly Lease[],
  directives: readonly Directive[],
  now: Millis,
  tokenOf?: TokenOf,
): string {
  const asked = directives.length === 0 ? "[]" : JSON.stringify(directives);
  const text = `{${lastsText(lease, now)},"directives":${asked}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

function lastsText(lease: Lease, now: Millis): string {
  return `"lease_expires_at":"${isoTime(lease.expiresAt)}","expires_in_ms":${expiresInMs(lease, now)}`;
}

function text(value: string | null): string {
  return value === null ? "null" : `"${escaped(value)}"`;
}

export function createdText({ id, status }: Task, warnings: readonly string[] = []): string {
  const warned = warnings.length === 0 ? "" : `,"warnings":${JSON.stringify(warnings)}`;
  return `{"task_id":"${id}","status":"${status}"${warned}}`;
}

export function taskObject(task: Task): WireObject {
  return show(taskFields, task);
}

export function obligationObject({ task, obligation }: TaskObligation): WireObject {
  const { id: taskId, spec, status, lastReceiptId } = task;
  const closedAt = obligation.state === "CLOSED" ? task.endedAt : null;
  return show(taskObligation, { ...spec, ...obligation, closedAt, taskId, status, lastReceiptId });
}

export function workerObject({ worker, leases }: { readonly worker: Worker; readonly leases: number }): WireObject {
  return { ...show(workerFields, worker), leases };
}

/** From replies about tasks and receipts to answers. */
/** T6: how long a worker that got nothing is asked to wait, in seconds. */
const pollBackoffSeconds = 5;
const noWork: Answer = { ...answer(204, ""), retryAfter: pollBackoffSeconds };

export function taskReplyAnswer(reply: TaskReply | ReadAnswer, context: AnswerContext): Answer {
  const { now, tokenOf } = context;
  switch (reply.type) {
    case "task":
      return answerJson(200, taskObject(reply.task));
    case "offers": {
      const { offers } = reply;
      const [first] = offers;
      if (first === undefined) return noWork;
      const isAlone = offers.length === 1 && context.inList !== true;
      return answer(200, isAlone ? offerText(first, now, tokenOf) : offersText(offers, now, tokenOf));
    }
    case "task_lease":
      return answer(200, taskLeaseText(reply.lease, reply.leases, reply.directives, now, tokenOf));
    case "task_type":
      return answerJson(200, {
        ...show(taskTypeRecord, reply.taskType),
        ...(reply.warnings.length > 0 && { warnings: reply.warnings }),
      });
    case "task_view":
      return answer(200, viewText(reply.view));
    case "explained":
      return answerJson(200, { task_id: reply.task.id, status: reply.task.status, waiting_for: reply.waitingFor });
    case "stored_receipt":
      return answer(reply.created ? 201 : 200, receiptText(reply.stored));
    case "receipt_chain": {
      const { stored, causes, effects, truncated } = reply;
      const head = `{"receipt_id":${JSON.stringify(stored.receipt.id)},"causes":${receiptsText(causes)}`;
      const tail = `"receipt":${receiptText(stored)},"effects":${receiptsText(effects)},"truncated":${truncated}}`;
      return answer(200, `${head},${tail}`);
    }
    case "ledger_head":
      return answerJson(200, show(ledgerHead, reply.head));
    // The caller looks these up in history before they are encoded.
    case "task_ended":
    case "receipt":
    case "receipt_known":
      throw new TypeError(`${reply.type} is not an answer yet`);
  }
}

/** A creation shows no more than how the task stands. */
export function createdAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type === "task") return answer(reply.created ? 201 : 200, createdText(reply.task, reply.warnings));
  return reply.type === "refused" ? refusalAnswer(reply, context.now) : taskReplyAnswer(reply as TaskReply, context);
}

export function taskAnswer(reply: QueryReply, context: AnswerContext): Answer {
  return reply.type === "refused" ? refusalAnswer(reply, context.now) : taskReplyAnswer(reply as TaskReply, context);
}

/** A receipt that comes too late is in conflict with what is; 410 is for those who hold on to a lease. */
export function receiptAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type !== "refused") return taskReplyAnswer(reply as TaskReply, context);
  const refused = refusalAnswer(reply, context.now);
  return refused.status === 410 && comesWith(reply.code, 409) ? { ...refused, status: 409 } : refused;
}

function viewText({ task, payload, result, receipts }: TaskView): string {
  const shown = JSON.stringify({
    ...taskObject(task),
    task_body: payload?.taskBody ?? null,
    inputs: payload?.inputs ?? null,
  });
  const resultText = result === null ? "null" : receiptText(result);
  return `${shown.slice(0, -1)},"result":${resultText},"receipts":${receiptsText(receipts)}}`;
}
