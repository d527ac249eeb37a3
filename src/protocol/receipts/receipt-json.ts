/**
 * Receipts on the wire, in full: LegiVellum's version 1 with its marks for what is absent, and the place in the chain
 * (R2, R6).
 */
import type { Receipt } from "../../kernel/contract/task-records.ts";
import { formOf } from "../schema/convert.ts";
import { receiptMark, storedReceipt } from "../schema/views.ts";

/** A receipt with its place in the ledger's chain. */
export interface ShownReceipt {
  readonly receipt: Receipt;
  readonly hash: string;
  readonly previousHash: string;
}

export const receiptForm = formOf<ShownReceipt>(storedReceipt);

/** What the sender of many needs to know of each. */
export const receiptMarkForm = formOf<ShownReceipt>(receiptMark);
