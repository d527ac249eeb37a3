/** R6: each receipt holds the hash of the one before, and is hashed itself; and what a store keeps of it. */
import { hash } from "node:crypto";
import type { Receipt } from "../kernel/contract/task-records.ts";
import type { StoredReceipt } from "../store/store.ts";
import { asciiJson, quoted, timeOf } from "./ledger-json.ts";
import { type ReceiptMembers, receiptMembers, receiptOf } from "./receipt-members.gen.ts";

/** A receipt with its place in the chain. */
export interface SealedReceipt {
  readonly receipt: Receipt;
  readonly previousHash: string;
  readonly hash: string;
  /** What was hashed. */
  readonly text: string;
}

export function seal(receipt: Receipt, previousHash: string): SealedReceipt {
  const text = receiptText(receipt, previousHash);
  return { receipt, previousHash, hash: hashOf(text), text };
}

/** SHA-256 over the bytes of the text, in lower-case hex. */
export function hashOf(text: string): string {
  return hash("sha256", text, "hex");
}

export function storedReceipt({ receipt, hash, text }: SealedReceipt): StoredReceipt {
  const { tenant, sequence, id, taskId, phase, recipientAi, sourceSystem, dedupeKey: dedupe, storedAt } = receipt;
  return { tenant, sequence, id, taskId, phase, recipientAi, sourceSystem, dedupe, storedAt, hash, body: text };
}

export function readStoredReceipt({ sequence, hash, body }: StoredReceipt): SealedReceipt {
  return { receipt: readReceipt(body), previousHash: previousHashIn(body, sequence), hash, text: body };
}

/** Its offset follows from the number before it, so that nothing has to be parsed. */
function previousHashIn(text: string, sequence: number): string {
  const start = `{"sequence":${sequence},"previous_hash":"`.length;
  return text.slice(start, start + 64);
}

/**
 * A receipt as the text that is hashed, stored and exported; docs/ledger.md says how to verify it. The members are in a
 * fixed order, and those that the store searches by come first, so that its columns can be compared with the text
 * without parsing it. Members that are null, false or 0 are left out.
 */

/** The `previous_hash` of a tenant's first receipt. */
export const genesisHash = "0".repeat(64);

/** The fields at the beginning of the text; a row of the store has the same. */
type ReceiptStart = Omit<StoredReceipt, "hash" | "body">;

/** From the brace to `stored_at`. The tenant is part of it, so that no receipt can be moved to another ledger. */
export function textStart(start: ReceiptStart, previousHash: string): string {
  const { sequence, tenant, id, taskId, phase, recipientAi, sourceSystem, dedupe, storedAt } = start;
  const key = dedupe === null ? "" : `,"dedupe_key":${quoted(dedupe)}`;
  return `{"sequence":${sequence},"previous_hash":"${previousHash}","tenant_id":${quoted(tenant)},"receipt_id":${quoted(id)},"task_id":${quoted(taskId)},"phase":"${phase}","recipient_ai":${quoted(recipientAi)},"source_system":${quoted(sourceSystem)}${key},"stored_at":${asciiJson(timeOf(storedAt))}`;
}

/**
 * Whether a text begins with the fields of a row, for rows that need no escaping. It compares piece by piece, because
 * building the beginning first costs more than the rest of a check. No value can extend beyond its end, since a quotation
 * mark within a text is always escaped.
 */
export function beginsAs(text: string, row: ReceiptStart, previousHash: string): boolean {
  let at = 0;
  const meets = (piece: string): boolean => {
    if (!text.startsWith(piece, at)) return false;
    at += piece.length;
    return true;
  };
  return (
    meets(`{"sequence":`) &&
    meets(String(row.sequence)) &&
    meets(`,"previous_hash":"`) &&
    meets(previousHash) &&
    meets(`","tenant_id":"`) &&
    meets(row.tenant) &&
    meets(`","receipt_id":"`) &&
    meets(row.id) &&
    meets(`","task_id":"`) &&
    meets(row.taskId) &&
    meets(`","phase":"`) &&
    meets(row.phase) &&
    meets(`","recipient_ai":"`) &&
    meets(row.recipientAi) &&
    meets(`","source_system":"`) &&
    meets(row.sourceSystem) &&
    (row.dedupe === null || (meets(`","dedupe_key":"`) && meets(row.dedupe))) &&
    meets(`","stored_at":"`) &&
    meets(String(timeOf(row.storedAt))) &&
    meets(`"`)
  );
}

/** Through one object and JSON.stringify: measured, half the time of concatenation. */
export function receiptText(receipt: Receipt, previousHash: string): string {
  return asciiJson(receiptMembers(receipt, previousHash));
}

/** Reads a receipt from its text. Only for texts that this program wrote: nothing is checked. */
export function readReceipt(text: string): Receipt {
  return receiptOf(JSON.parse(text) as ReceiptMembers);
}
