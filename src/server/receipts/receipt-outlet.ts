/** What receipts come with, and what is said of them. */
import type { Actor } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { ReceiptInput } from "../../kernel/contract/task-commands.ts";
import type { Answer } from "../../protocol/answers/answer.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";

/** Gets what became of each receipt, by its place: stored, now or before, or refused, by the kernel or at the edge. */
export interface ReceiptOutlet<T = unknown> {
  /** Runs when the receipt is decided; `stored` gets its result when it is durable. */
  encode(stored: ShownReceipt, created: boolean): T;
  stored(index: number, encoded: T): void;
  refused(index: number, refusal: Refusal, now: Millis): void;
  answered(index: number, answer: Answer): void;
  /** The outcome is unknown (S2). */
  failed(fault: unknown): void;
}

export interface ReceiptSender {
  readonly tenant: string;
  readonly actor: Actor;
}

/** null: an item that is answered already. */
export type ReceiptItems = readonly (ReceiptInput | null)[];
