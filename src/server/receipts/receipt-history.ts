/** What only history and the ledger can say about a receipt: that it came late, or was sent before (T13, R3). */
import type { Engine } from "../../engine/engine.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { dedupeConflict, receiptFingerprint } from "../../kernel/kernel.ts";
import { dedupeMarksOf } from "../../kernel/receipts/receipt-content.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import type { KnownReceipt } from "./dedupe-lookup.ts";
import { answerFromHistory, findEndedTask, findReceipt, taskOfEndedLease } from "./task-history.ts";

export type Late =
  | { readonly type: "stored"; readonly stored: ShownReceipt }
  | { readonly type: "refused"; readonly refusal: Refusal }
  /** To be put to the kernel, once more or in this form. */
  | { readonly type: "again"; readonly receipt: ReceiptInput };

/** Refusals that history may have another word on. */
export function needsLook({ code }: Refusal): boolean {
  return code === "task_unknown" || code === "lease_unknown";
}

export async function answerLate(engine: Engine, command: SubmitReceipt, reply: Reply): Promise<Late> {
  const { tenant, receipt } = command;
  if (reply.type === "refused" && reply.code === "lease_unknown") {
    // Its lease has ended; history knows the task that it was on.
    const taskId = receipt.leaseId === null ? null : await taskOfEndedLease(engine, tenant, receipt.leaseId);
    if (taskId === null || receipt.taskId !== null) return { type: "refused", refusal: reply };
    return { type: "again", receipt: { ...receipt, taskId } };
  }
  const answered = await answerFromHistory(engine, command, reply);
  if (answered.type === "refused") return { type: "refused", refusal: answered };
  if (answered.type !== "receipt_known") throw new TypeError(`${answered.type} is no answer to a receipt`);
  return storedAs(engine, tenant, answered.receiptId);
}

/** R3: the key stands in the ledger. The same content is the first receipt again; other content is refused. */
export async function answerRepeated(
  engine: Engine,
  tenant: string,
  receipt: ReceiptInput,
  before: KnownReceipt,
): Promise<Late> {
  const marks = dedupeMarksOf(receipt);
  const ended = await findEndedTask(engine, tenant, before.taskId);
  const mark = ended?.dedupes.find(({ key }) => marks.includes(key));
  if (mark !== undefined) {
    const isSame = mark.fingerprint === receiptFingerprint(receipt);
    return isSame ? storedAs(engine, tenant, mark.receiptId) : conflict;
  }
  // Its task is alive, and the kernel has the mark by now; or all have forgotten it, and the ledger alone remembers.
  const isKnown = engine.peek(({ tenants }) => marks.some((one) => tenants.get(tenant)?.book.dedupes.has(one)));
  if (isKnown) return { type: "again", receipt };
  const stored = await findReceipt(engine, tenant, before.receiptId);
  return stored !== null && agrees(receipt, stored.receipt) ? { type: "stored", stored } : conflict;
}

const conflict: Late = { type: "refused", refusal: dedupeConflict() };

async function storedAs(engine: Engine, tenant: string, receiptId: string): Promise<Late> {
  const stored = await findReceipt(engine, tenant, receiptId);
  if (stored === null) throw new TypeError(`the ledger has no ${receiptId}, which was answered before`);
  return { type: "stored", stored };
}

/** Whether all that was sent is what is stored; how the attempt was named is not part of what is said. */
function agrees(sent: ReceiptInput, stored: object): boolean {
  const there = stored as Readonly<Record<string, unknown>>;
  return Object.entries(sent).every(([field, value]) => {
    if (value === null || value === undefined || unsaid.has(field)) return true;
    return JSON.stringify(value) === JSON.stringify(there[field]);
  });
}

const unsaid: ReadonlySet<string> = new Set(["leaseId", "fence", "receiptId", "tenantId", "obligationId"]);
