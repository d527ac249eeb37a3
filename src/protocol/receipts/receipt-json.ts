/**
 * Receipts on the wire, in full: LegiVellum's version 1 with its marks for what is absent, and the place in the chain
 * (R2, R6). Every step of every task is answered with one, so they are text at once.
 */
import { type Receipt, receipt as receiptFields } from "../../kernel/contract/task-records.ts";
import { membersTextOf } from "../schema/convert.ts";
import { escaped, isoTime } from "../schema/text.ts";

/** A receipt with its place in the ledger's chain. */
export interface ShownReceipt {
  readonly receipt: Receipt;
  readonly hash: string;
  readonly previousHash: string;
}

/** What the sender of many needs to know of each. */
export function receiptMarkText({ receipt, hash, previousHash }: ShownReceipt): string {
  const { id, taskId, phase, sequence, storedAt } = receipt;
  return (
    `{"receipt_id":"${escaped(id)}","task_id":"${taskId}","phase":"${phase}","sequence":${sequence}` +
    `,"stored_at":"${isoTime(storedAt)}","hash":"${hash}","previous_hash":"${previousHash}"}`
  );
}

const membersText = membersTextOf<Receipt>(receiptFields);

export function receiptText({ receipt, hash, previousHash }: ShownReceipt): string {
  return `{${membersText(receipt)},"schema_version":"1.0","hash":"${hash}","previous_hash":"${previousHash}"}`;
}

export function receiptsText(receipts: readonly ShownReceipt[]): string {
  return `[${receipts.map(receiptText).join(",")}]`;
}
