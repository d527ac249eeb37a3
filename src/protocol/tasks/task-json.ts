/** Tasks, offers and workers on the wire, and the answers about them. */
import type { Offer, TaskReply } from "../../kernel/contract/replies.ts";
import {
  type Task,
  task as taskFields,
  taskTypeRecord,
  type Worker,
  worker as workerFields,
} from "../../kernel/contract/task-records.ts";
import { type Answer, type AnswerContext, answer, answerJson, refusalAnswer } from "../answers/answer.ts";
import { comesWith } from "../answers/errors.ts";
import type { QueryReply, ReadAnswer, TaskObligation, TaskView } from "../answers/queries.ts";
import { ownerOf } from "../operating/record-json.ts";
import { receiptForm, type ShownReceipt } from "../receipts/receipt-json.ts";
import { formOf, show, type WireObject } from "../schema/convert.ts";
import * as views from "../schema/views.ts";

export const offerForm = formOf<Offer>(views.offer);
const offersForm = formOf<Replied<"offers">>(views.offers);
const taskLeaseForm = formOf<Replied<"task_lease">>(views.taskLease);
const createdForm = formOf<Replied<"task">>(views.createdTask);

type Replied<K extends TaskReply["type"]> = Extract<TaskReply, { readonly type: K }>;

export function taskObject(task: Task): WireObject {
  return show(taskFields, task);
}

export function obligationObject({ task, obligation, deadline = null }: TaskObligation): WireObject {
  if ("taskId" in task) {
    const here = { status: "accepted", taskSummary: null, closedAt: null, foreign: true };
    return show(views.taskObligation, { ...task, ...obligation, ...here, deadline });
  }
  const { id: taskId, spec, status, lastReceiptId } = task;
  const closedAt = obligation.state === "CLOSED" ? task.endedAt : null;
  const shown = { ...spec, ...obligation, deadline, closedAt, taskId, status, lastReceiptId, foreign: false };
  return show(views.taskObligation, shown);
}

export function workerObject({ worker, leases }: WorkerView, context: AnswerContext): WireObject {
  return { ...show(workerFields, worker), ...ownerOf(context, worker.keyId), leases };
}

interface WorkerView {
  readonly worker: Worker;
  readonly leases: number;
}

/** T6: how long a worker that got nothing is asked to wait, in seconds. */
const pollBackoffSeconds = 5;
const noWork: Answer = { ...answerJson(204, {}), retryAfter: pollBackoffSeconds };

export function taskReplyAnswer(reply: TaskReply | ReadAnswer, context: AnswerContext): Answer {
  switch (reply.type) {
    case "task":
      return answerJson(200, taskObject(reply.task));
    case "offers": {
      const { offers } = reply;
      const [first] = offers;
      if (first === undefined) return noWork;
      if (offers.length === 1 && context.inList !== true) return answer(200, offerForm, first, context);
      return answer(200, offersForm, reply, context);
    }
    case "task_lease":
      return answer(200, taskLeaseForm, reply, context);
    case "obligation":
      return answerJson(200, obligationObject(reply));
    case "task_type":
      return answerJson(200, {
        ...show(taskTypeRecord, reply.taskType),
        ...(reply.warnings.length > 0 && { warnings: reply.warnings }),
      });
    case "task_view":
      return answerJson(200, viewObject(reply.view));
    case "explained":
      return answerJson(200, { task_id: reply.task.id, status: reply.task.status, waiting_for: reply.waitingFor });
    case "stored_receipt":
      return answer(reply.created ? 201 : 200, receiptForm, reply.stored, context);
    case "receipt_chain": {
      const { stored, causes, effects, truncated } = reply;
      return answerJson(200, {
        receipt_id: stored.receipt.id,
        causes: causes.map(receiptObject),
        receipt: receiptObject(stored),
        effects: effects.map(receiptObject),
        truncated,
      });
    }
    case "ledger_head":
      return answerJson(200, show(views.ledgerHead, reply.head));
    // The caller looks these up in history before they are encoded.
    case "task_key_unknown":
    case "payload_away":
    case "receipt":
    case "receipt_known":
      throw new TypeError(`${reply.type} is not an answer yet`);
  }
}

/** A creation shows no more than how the task stands. */
export function createdAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type === "task") return answer(reply.created ? 201 : 200, createdForm, reply, context);
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

function viewObject({ task, payload, result, receipts }: TaskView): WireObject {
  return {
    ...taskObject(task),
    task_body: payload?.taskBody ?? null,
    inputs: payload?.inputs ?? null,
    result: result === null ? null : receiptObject(result),
    receipts: receipts.map(receiptObject),
  };
}

function receiptObject(receipt: ShownReceipt): WireObject {
  return show(views.storedReceipt, receipt);
}
