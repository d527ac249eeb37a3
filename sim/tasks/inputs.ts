/** Tasks and receipts in which nothing is set that may be left out. */
import { blank } from "../../src/kernel/contract/field.ts";
import { receiptInput, taskInput } from "../../src/kernel/contract/inputs.ts";
import type { ReceiptInput, TaskInput } from "../../src/kernel/contract/task-commands.ts";

export function blankTask(taskType: string, principalAi: string): TaskInput {
  return { ...blank(taskInput), taskType, principalAi };
}

export function blankReceipt(phase: string, taskId: string | null): ReceiptInput {
  return { ...blank(receiptInput), phase, taskId };
}
