/** Tasks and receipts as an edge would ask for them, for tests of the engine. */
import type { Actor, Command } from "../../kernel/contract/commands.ts";
import { blank } from "../../kernel/contract/field.ts";
import { receiptInput, taskInput } from "../../kernel/contract/inputs.ts";
import type { ReceiptInput, TaskInput } from "../../kernel/contract/task-commands.ts";
import { drawEntropy } from "../clock.ts";

const actor: Actor = { role: "operator", agentId: null, epoch: null };

function asked(tenant = "default") {
  return { tenant, actor, entropy: drawEntropy() };
}

export function createTask(task: Partial<TaskInput> = {}, tenant?: string): Command {
  const plain = {
    ...blank(taskInput),
    taskType: "code.review",
    principalAi: "planner",
    taskSummary: "Review the change",
  };
  return { ...asked(tenant), type: "create_task", task: { ...plain, ...task }, endedDependencies: null };
}

export function poll(workerId: string, maxTasks = 1, tenant?: string): Command {
  const wish = { capabilities: null, maxTasks, preferredKinds: null, requestKey: null, reclaim: false };
  return { ...asked(tenant), type: "poll_tasks", workerId, ...wish };
}

export function heartbeatTask(leaseId: string): Command {
  return { ...asked(), type: "heartbeat_task", leaseId, progress: undefined };
}

export function releaseTask(leaseId: string): Command {
  return { ...asked(), type: "release_task", leaseId };
}

export function submit(receipt: Partial<ReceiptInput> & Pick<ReceiptInput, "phase">, tenant?: string): Command {
  return { ...asked(tenant), type: "submit_receipt", receipt: { ...blank(receiptInput), ...receipt } };
}
