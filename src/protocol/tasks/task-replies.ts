/** From replies about tasks and receipts to answers. */
import type { TaskReply } from "../../kernel/contract/replies.ts";
import { taskTypeRecord } from "../../kernel/contract/task-records.ts";
import { type Answer, type AnswerContext, answer, answerJson, refusalAnswer } from "../answers/answer.ts";
import { comesWith } from "../answers/errors.ts";
import type { QueryReply, TaskView, Told } from "../answers/queries.ts";
import { receiptsText, receiptText } from "../receipts/receipt-json.ts";
import { show } from "../schema/show.ts";
import { ledgerHead } from "../schema/views.ts";
import { createdText, offersText, offerText, taskLeaseText, taskObject } from "./task-json.ts";

/** T6: how long a worker that got nothing is asked to wait, in seconds. */
const pollBackoffSeconds = 5;
const noWork: Answer = { ...answer(204, ""), retryAfter: pollBackoffSeconds };

export function taskReplyAnswer(reply: TaskReply | Told, context: AnswerContext): Answer {
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
    // Whoever runs the command looks these up before they are put into words.
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
