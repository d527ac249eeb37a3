import type { Fields } from "../contract/field.ts";
import { intentInput, receiptInput, taskInput } from "../contract/inputs.ts";
import type { ReceiptInput, TaskInput } from "../contract/task-commands.ts";

/** Tells a repeated command from another one under the same key (W10, R3, T12). Not secret: two 32-bit FNV-1a sums will do. */
export function fingerprint(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}`;
}

/** T12: which creations are the same. */
export function taskFingerprint(task: TaskInput): string {
  const intents = task.intents?.map((intent) => withoutNew(intent, newIntentFields)) ?? null;
  return fingerprint(JSON.stringify(withoutNew({ ...task, intents, traceparent: undefined }, newTaskFields)));
}

/** R3: which receipts are the same. How the attempt was named is not part of what it says. */
export function receiptFingerprint(receipt: ReceiptInput): string {
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
