/** The ledger and the ended tasks of the store in memory: the same queries, answered by a full scan. */
import {
  type EndedTaskPage,
  type EndedTaskPageQuery,
  type EndedTaskRow,
  type LedgerHead,
  type Millis,
  type ReceiptPage,
  type ReceiptPageQuery,
  type ReceiptsAfterQuery,
  type SignedHead,
  type StoredReceipt,
  taskReceiptsMax,
} from "./store.ts";

export interface MemoryLedger {
  readonly receipts: StoredReceipt[];
  readonly heads: SignedHead[];
  readonly endedTasks: (EndedTaskRow & { readonly at: Millis })[];
}

export function createMemoryLedger(): MemoryLedger {
  return { receipts: [], heads: [], endedTasks: [] };
}

export function ledgerHeads({ receipts, heads }: MemoryLedger): LedgerHead[] {
  const found = new Map<string, LedgerHead>();
  for (const { tenant, sequence, hash } of receipts) found.set(tenant, { tenant, sequence, hash, signedSequence: 0 });
  for (const { tenant, sequence } of heads) {
    const head = found.get(tenant);
    if (head !== undefined) found.set(tenant, { ...head, signedSequence: Math.max(head.signedSequence, sequence) });
  }
  return [...found.values()].sort((a, b) => (a.tenant < b.tenant ? -1 : 1));
}

export function receiptsOfTask({ receipts }: MemoryLedger, tenant: string, taskId: string): StoredReceipt[] {
  return receipts.filter((one) => one.tenant === tenant && one.taskId === taskId).slice(0, taskReceiptsMax);
}

export function receiptsPage({ receipts }: MemoryLedger, query: ReceiptPageQuery): ReceiptPage {
  const { tenant, limit, after = 0, taskId, phase, recipientAi, sourceSystem, since = 0 } = query;
  const agrees = (wanted: string | undefined, value: string): boolean => wanted === undefined || wanted === value;
  const found = receipts
    .filter((one) => one.tenant === tenant && one.sequence > after && one.storedAt >= since)
    .filter((one) => agrees(taskId, one.taskId) && agrees(phase, one.phase))
    .filter((one) => agrees(recipientAi, one.recipientAi) && agrees(sourceSystem, one.sourceSystem))
    .slice(0, limit);
  return { receipts: found, next: found.length >= limit ? (found.at(-1)?.sequence ?? null) : null };
}

export function receiptsAfter({ receipts }: MemoryLedger, query: ReceiptsAfterQuery): StoredReceipt[] {
  return after(receipts, query);
}

export function signedHeads({ heads }: MemoryLedger, query: ReceiptsAfterQuery): SignedHead[] {
  return after(heads, query).sort((a, b) => a.sequence - b.sequence);
}

function after<T extends { readonly tenant: string; readonly sequence: number }>(
  rows: readonly T[],
  { tenant, sequence, limit }: ReceiptsAfterQuery,
): T[] {
  return rows.filter((row) => row.tenant === tenant && row.sequence > sequence).slice(0, limit);
}

export function endedTaskPage({ endedTasks }: MemoryLedger, query: EndedTaskPageQuery): EndedTaskPage {
  const { tenant, limit, before, status, taskType } = query;
  const tasks = endedTasks
    .filter((task) => task.tenant === tenant && (before === undefined || task.id < before))
    .filter((task) => status === undefined || task.status === status)
    .filter((task) => taskType === undefined || task.taskType === taskType)
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit)
    .map(plainTask);
  return { tasks, next: tasks.length >= limit ? (tasks.at(-1)?.id ?? null) : null };
}

export function plainTask({ tenant, id, taskType, status, endedAt, body }: EndedTaskRow): EndedTaskRow {
  return { tenant, id, taskType, status, endedAt, body };
}
