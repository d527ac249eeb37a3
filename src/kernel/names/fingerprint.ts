import type { Fields } from "../contract/field.ts";
import { intentInput, receiptInput, taskInput } from "../contract/inputs.ts";
import type { ReceiptInput, TaskInput } from "../contract/task-commands.ts";
import { sum } from "./sum.ts";
import { sumIntent, sumReceipt, sumTask } from "./sums.gen.ts";

/** Tells a repeated command from another one under the same key (W10, R3, T12). Not secret: two 32-bit FNV-1a sums will do. */
export function fingerprint(text: string): string {
  sum.begin();
  sum.add(text);
  return sum.end(oldForm);
}

/** Between the two sums, and so how a fingerprint says what was summed. */
const oldForm = ".";
const form = ":";

/** T12: which creations are the same. */
export function taskFingerprint(task: TaskInput): string {
  sum.begin();
  sumTask(task);
  const { intents } = task;
  if (intents !== null && intents !== undefined) {
    sum.add("intents=");
    for (const intent of intents) {
      sum.add("[");
      sumIntent(intent);
      sum.add("]");
    }
  }
  return sum.end(form);
}

/** R3: which receipts are the same. */
export function receiptFingerprint(receipt: ReceiptInput): string {
  sum.begin();
  sumReceipt(receipt);
  return sum.end(form);
}

export function isSameTask(stored: string | null, task: TaskInput): boolean {
  return stored === (stored?.includes(oldForm) === true ? oldTaskFingerprint(task) : taskFingerprint(task));
}

export function isSameReceipt(stored: string, receipt: ReceiptInput): boolean {
  return stored === (stored.includes(oldForm) ? oldReceiptFingerprint(receipt) : receiptFingerprint(receipt));
}

/** As version 0.1 summed it: the JSON of all fields. */
export function oldTaskFingerprint(task: TaskInput): string {
  const intents = task.intents?.map((intent) => withoutNew(intent, newIntentFields)) ?? null;
  return fingerprint(JSON.stringify(withoutNew({ ...task, intents, traceparent: undefined }, newTaskFields)));
}

export function oldReceiptFingerprint(receipt: ReceiptInput): string {
  return fingerprint(JSON.stringify(withoutNew({ ...receipt, leaseId: null, fence: null }, newReceiptFields)));
}

/**
 * Databases hold fingerprints of what had these numbers of fields, all of them included. A field added since, at the
 * end, is included only where it is given: what was sent before it existed keeps its fingerprint.
 */
const newTaskFields = newFieldsOf(taskInput, 23);
const newReceiptFields = newFieldsOf(receiptInput, 43);
const newIntentFields = newFieldsOf(intentInput, 5);

function newFieldsOf(fields: Fields, firstFields: number): readonly string[] {
  return Object.keys(fields).slice(firstFields);
}

export function withoutNew(values: object, newFields: readonly string[]): object {
  if (newFields.length === 0) return values;
  const shown: Record<string, unknown> = { ...values };
  // What is undefined has no text; to delete it would cost more than the rest.
  for (const field of newFields) if (shown[field] === null) shown[field] = undefined;
  return shown;
}
