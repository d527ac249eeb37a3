/**
 * What a fingerprint sums of an input, field by field, from the descriptions: src/kernel/names/sums.gen.ts. Written out: to look
 * up 43 fields by their names takes three times as long as to sum those that are given.
 */
import type { Fields } from "../../src/kernel/contract/field.ts";
import { intentInput, receiptInput, taskInput } from "../../src/kernel/contract/inputs.ts";

export function sumsText(): string {
  return `/** Written by scripts/generate.ts from src/kernel/contract. Run \`npm run generate\` to write it again. */
import type { ReceiptInput, TaskInput } from "../contract/task-commands.ts";
import { sum } from "./sum.ts";

${summing("Task", "TaskInput", taskInput, ["intents", "traceparent"])}

${summing("Intent", 'NonNullable<TaskInput["intents"]>[number]', intentInput, [])}

/** How the attempt was named is not part of what a receipt says. */
${summing("Receipt", "ReceiptInput", receiptInput, ["leaseId", "fence"])}
`;
}

function summing(name: string, type: string, fields: Fields, except: readonly string[]): string {
  const lines = Object.keys(fields)
    .filter((key) => !except.includes(key))
    .map((key) => `  sum.field("${key}=", input.${key});`);
  return `export function sum${name}(input: ${type}): void {\n${lines.join("\n")}\n}`;
}
