/** What only history can tell about tasks and receipts: the kernel knows the living, and asks for the dead by name. */

import { readEndedTask } from "../../engine/codec/task-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { endedLeases } from "../../engine/history.ts";
import type { Command } from "../../kernel/contract/commands.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import type { EndedTask } from "../../kernel/contract/task-records.ts";
import { answerForEnded, answerForEndedTask } from "../../kernel/kernel.ts";
import { readStoredReceipt } from "../../ledger/stored.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";

export async function findEndedTask({ store }: Engine, tenant: string, id: string): Promise<EndedTask | null> {
  const [row] = await store.endedTasks(tenant, [id]);
  return row === undefined ? null : readEndedTask(row.body);
}

/** Should a client have given an id twice, the first counts. */
export async function findReceipt({ store }: Engine, tenant: string, id: string): Promise<ShownReceipt | null> {
  const [row] = await store.receiptsById(tenant, [id]);
  return row === undefined ? null : readStoredReceipt(row);
}

/** Of a lease that has ended: the task that it was on. */
export async function taskOfEndedLease({ store }: Engine, tenant: string, leaseId: string): Promise<string | null> {
  const [lease] = await endedLeases(store, tenant, [leaseId]);
  return lease?.resource.startsWith(taskPrefix) === true ? lease.resource.slice(taskPrefix.length) : null;
}

const taskPrefix = "TASK:/";

/** T13's last row: what a command about a task is answered that is not alive. */
export async function answerFromHistory(engine: Engine, command: Command, reply: Reply): Promise<Reply> {
  if (reply.type === "task_ended") {
    const task = await findEndedTask(engine, command.tenant, reply.taskId);
    return task === null ? forgotten(reply.taskId) : { type: "task", task, created: false };
  }
  if (reply.type === "refused" && reply.code === "lease_unknown") return answerForLease(engine, command, reply);
  if (reply.type !== "refused" || reply.code !== "task_unknown" || reply.taskId === undefined) return reply;
  return answerForEndedTask(command, reply, await findEndedTask(engine, command.tenant, reply.taskId));
}

/**
 * How a task's lease ended. Whoever may poll is told: a lease's id is a name, not a secret (L13), and the worker is the
 * one who asks. Giving back what is over changes nothing (L5).
 */
async function answerForLease({ store }: Engine, command: Command, unknown: Refusal): Promise<Reply> {
  const [lease] = unknown.leaseId === undefined ? [] : await endedLeases(store, command.tenant, [unknown.leaseId]);
  if (lease?.resource.startsWith(taskPrefix) !== true) return unknown;
  if (command.type === "release_task") return { type: "lease", lease };
  return answerForEnded({ ...command, actor: above }, unknown, lease);
}

const above = { role: "supervisor", agentId: null, epoch: null } as const;

function forgotten(taskId: string): Refusal {
  return refuse("task_unknown", "The task of this idempotency_key has ended, and is forgotten.", { taskId });
}

export function isForHistory(reply: Reply): boolean {
  return reply.type === "task_ended" || (reply.type === "refused" && reply.code === "task_unknown");
}
