/** Converts between the ledger's receipts and the rows of a store. */
import type { StoredReceipt } from "../store/store.ts";
import { readReceipt } from "./receipt-text.ts";
import type { SealedReceipt } from "./seal.ts";

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
