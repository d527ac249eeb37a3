import type { Fields } from "../contract/field.ts";
import { intentInput, receiptInput, taskInput } from "../contract/inputs.ts";
import type { ReceiptInput, TaskInput } from "../contract/task-commands.ts";

/** Tells a repeated command from another one under the same key (W10, R3, T12). Not secret: two 32-bit FNV-1a sums will do. */
export function fingerprint(text: string): string {
  return sumsOf(text, oldForm);
}

/** Between the two sums, and so how a fingerprint says what was summed. */
const oldForm = ".";
const form = ":";

function sumsOf(text: string, separator: string): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return `${(a >>> 0).toString(36)}${separator}${(b >>> 0).toString(36)}`;
}

/** T12: which creations are the same. */
export function taskFingerprint(task: TaskInput): string {
  const text = givenText(task, taskFields);
  const { intents } = task;
  if (intents === null || intents === undefined) return sumsOf(text, form);
  return sumsOf(`${text}intents=${intents.map((intent) => `[${givenText(intent, intentFields)}]`).join("")}`, form);
}

/** R3: which receipts are the same. How the attempt was named is not part of what it says. */
export function receiptFingerprint(receipt: ReceiptInput): string {
  return sumsOf(givenText(receipt, receiptFields), form);
}

export function isSameTask(stored: string | null, task: TaskInput): boolean {
  return stored === (stored?.includes(oldForm) === true ? oldTaskFingerprint(task) : taskFingerprint(task));
}

export function isSameReceipt(stored: string, receipt: ReceiptInput): boolean {
  return stored === (stored.includes(oldForm) ? oldReceiptFingerprint(receipt) : receiptFingerprint(receipt));
}

const intentFields = Object.keys(intentInput);
const taskFields = Object.keys(taskInput).filter((field) => field !== "intents" && field !== "traceparent");
const receiptFields = Object.keys(receiptInput).filter((field) => field !== "leaseId" && field !== "fence");

/**
 * Of most fields nothing is said, so only what is given is summed; a field that is added later changes no sum. A text stands
 * behind its length, so that no other fields have the same text.
 */
function givenText(values: object, fields: readonly string[]): string {
  const given = values as Readonly<Record<string, unknown>>;
  let text = "";
  for (const field of fields) {
    const value = given[field];
    if (value === null || value === undefined) continue;
    text +=
      typeof value === "string" ? `${field}=${value.length}:${value};` : `${field}=${JSON.stringify(value) ?? "null"};`;
  }
  return text;
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
