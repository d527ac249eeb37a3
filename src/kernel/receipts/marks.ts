/** What a receipt is known again by: its key and its id, of its task while that lives, and of its sender (R3). */
import { leaseIdPrefix } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../contract/task-commands.ts";
import type { DedupeMark, Receipt, Task } from "../contract/task-records.ts";
import { submitterOf } from "../memory/actors.ts";
import type { State, TenantEntry, Turn } from "../memory/state.ts";
import { type Owed, type TaskEntry, updateTask } from "../memory/task-state.ts";
import { isSameReceipt, receiptFingerprint } from "../names/fingerprint.ts";

/** Under which marks a receipt is known again. */
export function dedupeMarksOf({ dedupeKey, receiptId }: ReceiptInput): string[] {
  const marks: string[] = [];
  if (dedupeKey !== null) marks.push(`key:${dedupeKey}`);
  if (receiptId !== null) marks.push(idMark + receiptId);
  return marks;
}

/**
 * A key that begins with the id of a lease, and a colon, is for receipts of that lease alone. So while its task lives, memory
 * knows each use of it, and the ledger need not be asked (R3).
 */
export function leaseOfKey(key: string | null): string | null {
  const end = key?.startsWith(leaseIdPrefix) === true ? key.indexOf(":") : -1;
  return key === null || end < 0 ? null : key.slice(0, end);
}

/** What it was known by to its task before. */
export function findMark({ dedupes }: Pick<Task, "dedupes">, input: ReceiptInput): DedupeMark | undefined {
  if (dedupes.length === 0) return undefined;
  const marks = dedupeMarksOf(input);
  return dedupes.find(({ key }) => marks.includes(key));
}

/** R3: the same key and content is the first receipt again; the same key with other content is refused. */
export function findKnown(
  { book }: TenantEntry,
  record: Pick<Task, "dedupes">,
  { actor, receipt: input }: SubmitReceipt,
): Reply | null {
  const mark = findMark(record, input);
  if (mark !== undefined) {
    if (!isSameReceipt(mark.fingerprint, input)) return dedupeConflict();
    return { type: "receipt_known", receiptId: mark.receiptId };
  }
  const isOfAnother = dedupeMarksOf(input).some((key) => book.dedupes.has(markName(key, submitterOf(actor))));
  return isOfAnother ? dedupeConflict() : null;
}

export function dedupeConflict(): Refusal {
  return refuse("dedupe_conflict", "Another receipt has this dedupe_key or receipt_id; take a new one.", {
    field: "dedupe_key",
  });
}

/** What a mark is known as beyond its task: a key is its sender's own, so that nobody uses up another's; an id is the tenant's. */
export function markName(key: string, submittedBy: string | null): string {
  return key.startsWith(idMark) ? key : `${submittedBy ?? ""}\n${key}`;
}

const idMark = "id:";

/** So that it is known again (R3). Past its limit a task forgets its first keys; the ledger still has them. */
export function markReceipt(turn: Turn, task: TaskEntry, input: ReceiptInput, receipt: Receipt): void {
  const marks = marksOf(input, receipt);
  if (marks.length === 0) return;
  const dedupes = [...task.record.dedupes, ...marks];
  updateTask(turn, task, { dedupes: dedupes.slice(-limits.dedupeKeysPerTaskMax) });
  rememberMarks(turn.tenant, task);
  forgetMarks(turn.tenant, task, dedupes.slice(0, -limits.dedupeKeysPerTaskMax));
}

export function marksOf(input: ReceiptInput, { id: receiptId, submittedBy }: Receipt): DedupeMark[] {
  const keys = dedupeMarksOf(input);
  if (keys.length === 0) return [];
  const fingerprint = receiptFingerprint(input);
  return keys.map((key) => ({ key, fingerprint, receiptId, submittedBy }));
}

/** New, or restored. */
export function rememberMarks({ book }: TenantEntry, owed: Owed): void {
  for (const { key, submittedBy } of owed.record.dedupes) book.dedupes.set(markName(key, submittedBy), owed);
}

/** The ledger still knows them. */
export function forgetMarks({ book }: TenantEntry, owed: Owed, marks: readonly DedupeMark[]): void {
  for (const { key, submittedBy } of marks) {
    const name = markName(key, submittedBy);
    if (book.dedupes.get(name) === owed) book.dedupes.delete(name);
  }
}

/**
 * Whether memory alone can say if the receipt was sent before (R3): its key is its lease's own, and the live task of that
 * lease has forgotten none.
 */
export function isKeyOfLiveLease({ tenants }: State, tenant: string, receipt: ReceiptInput): boolean {
  const { leaseId, dedupeKey, receiptId } = receipt;
  if (leaseId === null || receiptId !== null || leaseOfKey(dedupeKey) !== leaseId) return false;
  const holder = tenants.get(tenant)?.leases.get(leaseId)?.holder;
  return holder?.kind === "task" && holder.record.dedupes.length < limits.dedupeKeysPerTaskMax;
}
