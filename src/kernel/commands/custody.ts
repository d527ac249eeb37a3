/**
 * What custodians do without a lease (R5, T13). When nobody has the task, the custodian of its open obligation answers
 * for it: it completes the task, or escalates it further. A supervisor gives an overdue obligation to a new custodian.
 */
import { checkValues } from "../contract/bounds.ts";
import type { Actor } from "../contract/commands.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import {
  type ReceiptInput,
  type RecoverObligation,
  type SubmitReceipt,
  taskCommands,
} from "../contract/task-commands.ts";
import type { Obligation, Receipt, ReceiptPhase } from "../contract/task-records.ts";
import { whyNotWithinLedger } from "../deciding/admission.ts";
import { taskQuestion } from "../deciding/permit.ts";
import { agentOf, isAbove, requireAbove, submitterOf, whyNotWorkerNamed } from "../memory/actors.ts";
import type { Turn } from "../memory/state.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { whyNotPermitted } from "../policies/permissions.ts";
import { markReceipt } from "../receipts/marks.ts";
import { invalidReceipt, whyNotObligation, whyNotWorkersToSay } from "../receipts/principals.ts";
import { appendReceipt, fillReceipt, recoveredReceipt } from "../receipts/receipts.ts";
import { emitTask, finish, statusAfter } from "../tasks/task-life.ts";
import { moveObligation } from "../tasks/task-states.ts";

export function submitAsCustodian(turn: Turn, task: TaskEntry, command: SubmitReceipt, phase: ReceiptPhase): Reply {
  const { tenant } = turn;
  const { obligation, lastReceiptId, attempts } = task.record;
  const { actor, receipt: input } = command;
  if (obligation === null) throw new Error(`A custodian of nothing: ${task.record.id}`);
  const refusal = whyNotCustodian(turn, actor, obligation, input);
  if (refusal !== null) return refusal;
  if (input.retryRequested === true)
    return invalidReceipt("retry_requested", "has no place in a custodian's receipt; redrive the task instead");
  const { custodian } = obligation;
  const workerId = input.sourceSystem ?? custodian;
  const notIts = whyNotObligation(tenant, task, input, phase, true) ?? whyNotWorkersToSay(actor, input, task, workerId);
  if (notIts !== null) return notIts;
  const submittedBy = submitterOf(actor);
  const sender = { workerId, attempt: Math.max(attempts, 1), startedAt: null, causedByReceiptId: lastReceiptId };
  const content = fillReceipt(input, phase, task, { ...sender, forPrincipal: custodian, submittedBy }, turn);
  if ("code" in content) return content;
  const full = whyNotWithinLedger(tenant, content);
  if (full !== null) return full;
  const receipt = appendReceipt(turn, task, content, input.receiptId);
  markReceipt(turn, task, input, receipt);
  settle(turn, task, receipt);
  return { type: "receipt", receipt };
}

/** A supervisor; the worker of that name, with its key; or the agent of that name. A family cannot be proved by a key. */
function whyNotCustodian(
  turn: Turn,
  actor: Actor,
  { custodian }: Obligation,
  { sourceSystem }: ReceiptInput,
): Refusal | null {
  if (isAbove(actor)) return null;
  if (actor.role === "agent" && actor.agentId === custodian) {
    const agent = agentOf(turn, { actor, agentId: custodian });
    return "code" in agent ? agent : null;
  }
  const isItsWorker = sourceSystem !== null && whyNotWorkerNamed(turn.tenant, actor, sourceSystem) === null;
  return isItsWorker
    ? null
    : refuse("forbidden", `This is for ${custodian}, who answers for the task, or a supervisor.`);
}

function settle(turn: Turn, task: TaskEntry, { id, phase, status, escalationTo, escalationReason }: Receipt): void {
  if (phase === "complete" && status !== null) {
    finish(turn, task, statusAfter[status], id, null);
    emitTask(turn, task, "task.completed", null, null);
  }
  if (phase === "escalate" && escalationTo !== null) {
    moveObligation(turn, task, "reassign", escalationTo);
    emitTask(turn, task, "task.escalated", null, escalationReason);
  }
}

/** RECOVER: back to OPEN under a new custodian. The trail is an `escalate` receipt that names it. */
export function recoverObligation(turn: Turn, command: RecoverObligation): Reply {
  const { obligationId, custodian, reason, actor } = command;
  const refusal = requireAbove(actor) ?? checkValues(taskCommands.recover_obligation, command);
  if (refusal !== null) return refusal;
  const task = turn.tenant.book.obligations.get(obligationId);
  if (task === undefined)
    return refuse("obligation_unknown", "There is no open obligation of this id; it may be closed.", {
      field: "obligation_id",
    });
  if (task.kind !== "task" || task.record.obligation?.state !== "OVERDUE")
    return refuse("obligation_not_overdue", "The obligation is not overdue: its custodian still answers for it.", {
      taskId: task.kind === "task" ? task.record.id : task.record.taskId,
    });
  const denied = whyNotPermitted(turn, actor, taskQuestion(task.record.spec.taskType), "obligation_id");
  if (denied !== null) return denied;
  recoveredReceipt(turn, task, custodian, reason, submitterOf(actor));
  moveObligation(turn, task, "recover", custodian);
  emitTask(turn, task, "task.recovered", null, reason);
  const { obligation } = task.record;
  if (obligation === null) throw new Error(`A recovered obligation is gone: ${obligationId}`);
  return { type: "obligation", task: task.record, obligation };
}
