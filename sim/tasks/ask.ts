/**
 * Sends task commands as an engine does: what the kernel no longer knows is looked up in history, and the kernel's
 * rules answer for it.
 */
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { Refusal } from "../../src/kernel/contract/refusals.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { CreateTask } from "../../src/kernel/contract/task-commands.ts";
import type { TaskStatus } from "../../src/kernel/contract/task-records.ts";
import { answerForEndedTask, answerForRepeated } from "../../src/kernel/kernel.ts";
import { count } from "../counters.ts";
import { violated } from "../invariants/step.ts";
import { send } from "../send.ts";
import { entropyOf, type World } from "../world.ts";

export function ask(world: World, command: Command): Reply {
  if (command.type === "create_task" && command.task.idempotencyKey !== null) return askForKey(world, command);
  return askHistory(world, command);
}

/** T12: a key that no live task has is looked up among the ended ones before it is taken for a new one. */
function askForKey(world: World, command: CreateTask): Reply {
  const reply = askHistory(world, { ...command, asksHistory: true });
  if (reply.type !== "task_key_unknown") return reply;
  for (const task of world.ledger.ended.values()) {
    if (task.tenant !== command.tenant || task.spec.idempotencyKey !== reply.key) continue;
    count(world.counters, "T12 creation repeated after its task ended");
    return answerForRepeated(command.task, task);
  }
  return askHistory(world, { ...command, asksHistory: false });
}

function askHistory(world: World, command: Command): Reply {
  const reply = send(world, command);
  if (reply.type === "receipt_known") checkKnown(world, command, reply.receiptId);
  if (reply.type !== "refused") return reply;
  if (reply.code === "lease_unknown" && command.type === "submit_receipt") return askForTask(world, command, reply);
  if (reply.code === "task_unknown") return answerFromHistory(world, command, reply);
  if (reply.code === "dependency_unknown" && command.type === "create_task" && command.endedDependencies === null) {
    return askAgain(world, command, reply.missing ?? []);
  }
  return reply;
}

/** R3: the first receipt is in the ledger and has the same content. */
function checkKnown({ ledger, counters }: World, command: Command, receiptId: string): void {
  if (command.type !== "submit_receipt") violated("R3", "a receipt is known, but none was sent", command);
  const first = ledger.receipts.get(command.tenant)?.find(({ id }) => id === receiptId);
  if (first === undefined) violated("R3", "a known receipt is not in the ledger", command, receiptId);
  const { phase, status, taskId } = command.receipt;
  const saysSame = first.phase === phase && (phase === "accepted" || first.status === status);
  const isSame = saysSame && (taskId === null || first.taskId === taskId);
  if (!isSame) violated("R3", "a repeated receipt was answered with another one", command, first);
  count(counters, "R3 repeated receipt answered with the first");
}

function answerFromHistory(world: World, command: Command, unknown: Refusal): Reply {
  const ended = world.ledger.ended.get(`${command.tenant} ${unknown.taskId}`) ?? null;
  const answer = answerForEndedTask(command, unknown, ended);
  if (ended === null) return answer;
  count(world.counters, "T13 answered from history");
  if (answer.type === "receipt_known") checkKnown(world, command, answer.receiptId);
  if (command.type === "submit_receipt" && answer.type === "receipt")
    violated("T4", "an ended task took a receipt", command);
  if (answer.type === "refused") {
    count(world.counters, `refused ${answer.code}`);
    const { winningReceiptId } = answer;
    if (winningReceiptId !== undefined && winningReceiptId !== ended.winningReceiptId) {
      violated("T13", "the winning receipt is not the one in the reply", ended, answer);
    }
  }
  return answer;
}

/** T4: of a lease that has ended, history knows the task. */
function askForTask(world: World, command: Extract<Command, { type: "submit_receipt" }>, unknown: Refusal): Reply {
  const { leaseId, taskId } = command.receipt;
  const task = [...world.store.task.values()].find(
    ({ tenant, past }) => tenant === command.tenant && past.some((one) => one.leaseId === leaseId),
  );
  if (task === undefined || taskId !== null || (command.taskOfLease ?? null) !== null) return unknown;
  count(world.counters, "T4 late receipt that names only its lease");
  return ask(world, { ...command, taskOfLease: task.id, entropy: entropyOf(world) });
}

function askAgain(world: World, command: Extract<Command, { type: "create_task" }>, missing: readonly string[]): Reply {
  const endedDependencies: Record<string, TaskStatus> = {};
  for (const id of missing) {
    const ended = world.ledger.ended.get(`${command.tenant} ${id}`);
    if (ended !== undefined) endedDependencies[id] = ended.status;
  }
  return send(world, { ...command, endedDependencies, entropy: entropyOf(world) });
}
