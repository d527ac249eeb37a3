/**
 * What the kernel does with inputs field by field, from their descriptions: src/kernel/contract/inputs.gen.ts. Written
 * out rather than looped over tables, because every command is checked and most are decided within a microsecond.
 */
import { commands, digestInput } from "../../src/kernel/contract/commands.ts";
import { type FieldData, type Fields, wireName, without } from "../../src/kernel/contract/field.ts";
import { receiptInput, taskInput, taskType, taskTypeSettings } from "../../src/kernel/contract/inputs.ts";
import { taskCommands } from "../../src/kernel/contract/task-commands.ts";
import { receipt, taskDecided, taskSpec } from "../../src/kernel/contract/task-records.ts";

interface Checked {
  readonly name: string;
  readonly type: string;
  readonly source: string;
  readonly fields: Fields;
  /** Fields may be missing altogether. */
  readonly isPartial?: true;
}

/** What is read by rules of its own (names of resources, ids) is left to them. */
const checked: readonly Checked[] = [
  { name: "Task", type: "TaskInput", source: "taskInput", fields: without(taskInput, "intents") },
  {
    name: "TaskTypeSettings",
    type: 'SetTaskType["settings"]',
    source: "taskTypeSettings",
    fields: taskTypeSettings,
    isPartial: true,
  },
  { name: "TaskType", type: 'Pick<SetTaskType, "taskType">', source: "taskInput", fields: { taskType } },
  {
    name: "Poll",
    type: "PollTasks",
    source: "taskCommands.poll_tasks",
    fields: without(taskCommands.poll_tasks, "workerId"),
    isPartial: true,
  },
  { name: "Receipt", type: "ReceiptInput", source: "receiptInput", fields: receiptInput },
  { name: "Digest", type: "DigestInput", source: "digestInput", fields: digestInput },
  {
    name: "Terms",
    type: "Acquire",
    source: "commands.acquire",
    fields: without(commands.acquire, "agentId", "intents"),
  },
];

export function inputsText(): string {
  return `/** Written by scripts/generate.ts from the descriptions beside it. Run \`npm run generate\` to write it again. */
import { exceedsBytes, exceedsCharacters, jsonExceedsBytes, outOfBounds } from "./bounds.ts";
import { type Acquire, commands, type DigestInput, digestInput } from "./commands.ts";
import { receiptInput, taskInput, taskTypeSettings } from "./inputs.ts";
import type { Refusal } from "./refusals.ts";
import { type PollTasks, type ReceiptInput, type SetTaskType, type TaskInput, taskCommands } from "./task-commands.ts";
import type { ReceiptDraft, TaskSpec, taskDecided } from "./task-records.ts";

${checked.map(checkText).join("\n\n")}

/** The spec of a task: what a rule decides, and the rest as it was given. */
export function taskSpecOf(input: TaskInput, decided: Pick<TaskSpec, (typeof taskDecided)[number]>): TaskSpec {
  return {
${Object.entries(taskSpec)
  .map(([key, field]) => `    ${key}: ${specValue(key, field)},`)
  .join("\n")}
  };
}

/** A receipt with what was sent; the rules fill in the rest. */
export function receiptDraftOf(input: ReceiptInput): ReceiptDraft {
  return {
${Object.entries(receipt)
  .map(([key, field]) => `    ${key}: ${draftValue(key, field)},`)
  .join("\n")}
  };
}
`;
}

function specValue(key: string, field: FieldData): string {
  if ((taskDecided as readonly string[]).includes(key)) return `decided.${key}`;
  if (!field.optional || field.usual === null) return `input.${key}`;
  return `input.${key} ?? ${JSON.stringify(field.usual)}`;
}

function draftValue(key: string, field: FieldData): string {
  const sent: FieldData | undefined = (receiptInput as Fields)[key];
  const absent = field.optional
    ? JSON.stringify(field.usual ?? null)
    : (blanks[key] ?? (field.kind === "text" ? '""' : "0"));
  if (sent === undefined || sent.kind !== field.kind) return absent;
  return absent === "null" && field.kind !== "json" ? `input.${key}` : `input.${key} ?? ${absent}`;
}

const blanks: Readonly<Record<string, string>> = { phase: '"progress"' };

function checkText({ name, type, source, fields, isPartial }: Checked): string {
  const lines = Object.entries(fields).flatMap(([key, field]) => fieldCheck(key, field, `${source}.${key}`, isPartial));
  return `export function check${name}(input: ${type}): Refusal | null {\n${lines.join("\n")}\n  return null;\n}`;
}

function fieldCheck(key: string, field: FieldData, source: string, isPartial = false): readonly string[] {
  const value = `input.${key}`;
  const given = isPartial ? `${value} !== null && ${value} !== undefined && ` : `${value} !== null && `;
  const isSet = field.optional && field.kind !== "json" ? given : "";
  const name = wireName(key, field);
  const lines: string[] = [];
  for (const [bad, tooFew] of problems(field, value)) {
    lines.push(
      `  if (${isSet}${isSet !== "" && bad.includes("||") ? `(${bad})` : bad}) return outOfBounds("${name}", ${source}${tooFew ? ", true" : ""});`,
    );
  }
  const { items } = field;
  const inner =
    items === undefined || field.kind !== "list" || items.kind === "record" ? [] : problems(items, `${value}[at]`);
  if (inner.length > 0) {
    const test = problems(items ?? field, "item")
      .map(([bad]) => bad)
      .join(" || ");
    const loop = `for (let at = 0; at < ${value}.length; at++) {
      const item = ${value}[at] ?? "";
      if (${test}) return outOfBounds(\`${name}.\${at}\`, ${source}.items ?? ${source});
    }`;
    lines.push(isSet === "" ? loop : `  if (${isSet.slice(0, -4)}) {\n    ${loop}\n  }`);
  }
  return lines;
}

/** The tests that find a value out of bounds, and whether it is because it has too few items. */
function problems(
  { kind, min, max, bytesMax, oneLine, error, values }: FieldData,
  value: string,
): (readonly [string, boolean])[] {
  const found: string[] = [];
  switch (kind) {
    case "text":
      if (min === 1) found.push(`${value}.length === 0`);
      if (max !== undefined) found.push(`exceedsCharacters(${value}, ${max})`);
      if (bytesMax !== undefined) found.push(`exceedsBytes(${value}, ${bytesMax})`);
      if (oneLine) found.push(`${value}.includes("\\n")`);
      break;
    case "json":
      if (bytesMax !== undefined) found.push(`jsonExceedsBytes(${value}, ${bytesMax})`);
      break;
    case "integer":
      found.push(`!Number.isSafeInteger(${value})`, `${value} < ${min ?? 0}`);
      if (max !== undefined) found.push(`${value} > ${max}`);
      break;
    case "number":
      found.push(`!(${value} >= ${min ?? 0}${max === undefined ? "" : ` && ${value} <= ${max}`})`);
      break;
    case "choice":
      found.push(values?.map((one) => `${value} !== ${JSON.stringify(one)}`).join(" && ") ?? "false");
      break;
    case "list": {
      const tests: (readonly [string, boolean])[] = [];
      if (min !== undefined) tests.push([`${value}.length < ${min}`, true]);
      if (max !== undefined) tests.push([`${value}.length > ${max}`, false]);
      return typeof error === "object" || tests.length < 2
        ? tests
        : [[tests.map(([test]) => test).join(" || "), false]];
    }
    default:
  }
  return found.length === 0 ? [] : [[found.join(" || "), false]];
}
