/** Where a row of the store and the text in it differ, once it is known that they do: slow, and asked rarely. */
import type { StoredReceipt } from "../store/store.ts";
import { readReceipt } from "./receipt-text.ts";

export interface Difference {
  /** The text is not the successor of the one before; else a column was changed beside its text. */
  readonly isChain: boolean;
  readonly detail: string;
}

/** Null where they agree after all: a store keeps a broken half of a character pair as a replacement character. */
export function firstDifference(row: StoredReceipt, previousHash: string): Difference | null {
  const { sequence, body } = row;
  const receipt = parsed(body);
  if (receipt === null) return { isChain: true, detail: `receipt ${sequence} is none: its text cannot be read` };
  if (receipt.sequence !== sequence) {
    return { isChain: true, detail: `in the place of receipt ${sequence} is the text of receipt ${receipt.sequence}` };
  }
  if (!body.startsWith(`{"sequence":${sequence},"previous_hash":"${previousHash}"`)) {
    return { isChain: true, detail: notFollowing(sequence) };
  }
  const columns: readonly (readonly [name: string, column: unknown, text: unknown])[] = [
    ["tenant", row.tenant, receipt.tenant],
    ["id", row.id, receipt.id],
    ["task_id", row.taskId, receipt.taskId],
    ["phase", row.phase, receipt.phase],
    ["recipient_ai", row.recipientAi, receipt.recipientAi],
    ["source_system", row.sourceSystem, receipt.sourceSystem],
    ["dedupe", row.dedupe, receipt.dedupeKey],
    ["stored_at", row.storedAt, receipt.storedAt],
  ];
  const wrong = columns.find(([, column, text]) => column !== (typeof text === "string" ? text.toWellFormed() : text));
  if (wrong !== undefined) {
    return { isChain: false, detail: `the column ${wrong[0]} of receipt ${sequence} says other than its text` };
  }
  return null;
}

function parsed(body: string): ReturnType<typeof readReceipt> | null {
  try {
    return readReceipt(body);
  } catch {
    return null;
  }
}

export function notFollowing(sequence: number): string {
  return `receipt ${sequence} does not hold the hash of the one before: one of the two was replaced or slipped in`;
}
