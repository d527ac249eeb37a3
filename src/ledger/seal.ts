/** R6: each receipt holds the hash of the one before, and is hashed itself; and what a store keeps of it. */
import { hash } from "node:crypto";
import type { Receipt } from "../kernel/contract/task-records.ts";
import type { StoredReceipt } from "../store/store.ts";
import { readReceipt, receiptText } from "./receipt-text.ts";

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
