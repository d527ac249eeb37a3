/** What history and the ledger say about a receipt that came late, or was sent before (T4, T13, R3). */
import type { Engine } from "../../engine/engine.ts";
import { completeReply, endedTasks, findEndedTask, findReceipt, tasksOfEndedLeases } from "../../engine/history.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { answerForLateReceipt, dedupeConflict } from "../../kernel/kernel.ts";
import { isReceiptKnown, type Reader } from "../../kernel/views.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import type { KnownReceipt } from "./dedupe-lookup.ts";

export type Finding =
  | { readonly type: "stored"; readonly stored: ShownReceipt }
  | { readonly type: "refused"; readonly refusal: Refusal }
  /** To be submitted once more, with the task that its lease was on. */
  | { readonly type: "again"; readonly taskOfLease: string | null };

export async function findLate(
  { store }: Engine,
  { tenant, actor }: Reader,
  receipt: ReceiptInput,
  taskOfLease: string | null,
  reply: Reply,
): Promise<Finding> {
  if (reply.type === "refused" && reply.code === "lease_unknown") {
    // Its lease has ended; history knows the task that it was on.
    const { leaseId } = receipt;
    const taskId = leaseId === null ? undefined : (await tasksOfEndedLeases(store, tenant, [leaseId])).get(leaseId);
    if (taskId === undefined || receipt.taskId !== null || taskOfLease !== null)
      return { type: "refused", refusal: reply };
    return { type: "again", taskOfLease: taskId };
  }
  const command: SubmitReceipt = { type: "submit_receipt", tenant, actor, receipt, taskOfLease, entropy: unstamped };
  const completed = await completeReply(store, command, reply);
  if (completed.type === "refused") return { type: "refused", refusal: completed };
  if (completed.type !== "receipt_known") throw new TypeError(`${completed.type} does not answer a receipt`);
  return storedAs({ store }, tenant, completed.receiptId);
}

/** R3: the key is in the ledger. The same content is the first receipt again; other content is refused. */
export async function findRepeated(
  engine: Engine,
  sender: Reader,
  receipt: ReceiptInput,
  before: KnownReceipt,
): Promise<Finding> {
  const { tenant } = sender;
  if (receipt.taskId !== null && receipt.taskId !== before.taskId) return conflict;
  const ended = await findEndedTask(engine.store, tenant, before.taskId);
  const known = ended === null ? null : answerForLateReceipt(receipt, ended);
  if (known?.type === "receipt_known") return storedAs(engine, tenant, known.receiptId);
  if (known?.type === "refused" && known.code === "dedupe_conflict") return conflict;
  // Its task is alive, and the kernel knows the mark by now; or its task is forgotten, and only the ledger remembers.
  const about = { ...receipt, taskId: before.taskId };
  if (engine.peek((state) => isReceiptKnown(state, sender, about)))
    return { type: "again", taskOfLease: receipt.taskId === null ? before.taskId : null };
  const stored = await findReceipt(engine.store, tenant, before.receiptId);
  return stored !== null && agrees(receipt, stored.receipt) ? { type: "stored", stored } : conflict;
}

const conflict: Finding = { type: "refused", refusal: dedupeConflict() };

async function storedAs({ store }: Pick<Engine, "store">, tenant: string, receiptId: string): Promise<Finding> {
  const stored = await findReceipt(store, tenant, receiptId);
  if (stored === null) throw new TypeError(`the ledger does not have ${receiptId}, which was answered before`);
  return { type: "stored", stored };
}

/** Whether all that was sent is what is stored; how the attempt was named is not part of the content. */
function agrees(sent: ReceiptInput, stored: object): boolean {
  const there = stored as Readonly<Record<string, unknown>>;
  return Object.entries(sent).every(([field, value]) => {
    if (value === null || value === undefined || notContent.has(field)) return true;
    return JSON.stringify(value) === JSON.stringify(there[field]);
  });
}

const notContent: ReadonlySet<string> = new Set(["leaseId", "fence", "receiptId", "tenantId", "obligationId"]);

/** Those of the tasks that history does not know either. */
export async function withoutOwned(
  { store }: Engine,
  tenant: string,
  tasks: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  if (tasks.size === 0) return tasks;
  const ended = await endedTasks(store, tenant, [...tasks]);
  return tasks.difference(new Set(ended.map(({ id }) => id)));
}
