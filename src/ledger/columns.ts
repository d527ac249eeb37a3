/** Finds where a row of the store and its text differ, once it is known that they do: slow, and rarely needed. */
import type { StoredReceipt } from "../store/store.ts";
import { readReceipt } from "./seal.ts";

interface Difference {
  /** True if the text does not follow the one before; false if a column differs from its text. */
  readonly isChain: boolean;
  readonly detail: string;
}

/** Null if they agree after all: a store turns an unpaired surrogate into a replacement character. */
export function firstDifference(row: StoredReceipt, previousHash: string): Difference | null {
  const { sequence, body } = row;
  const receipt = parsed(body);
  if (receipt === null) return { isChain: true, detail: `receipt ${sequence} cannot be read` };
  if (receipt.sequence !== sequence) {
    return { isChain: true, detail: `the row of receipt ${sequence} holds the text of receipt ${receipt.sequence}` };
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
    return { isChain: false, detail: `the column ${wrong[0]} of receipt ${sequence} differs from its text` };
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
  return `receipt ${sequence} does not hold the hash of the one before: one of the two was replaced or inserted`;
}
