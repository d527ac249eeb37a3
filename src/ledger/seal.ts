/** R6: each receipt holds the hash of the one before, and is hashed itself. */
import { hash } from "node:crypto";
import type { Receipt } from "../kernel/contract/task-records.ts";
import { receiptText } from "./receipt-text.ts";

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
