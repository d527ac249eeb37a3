/** Questions about the ledger, and about what follows from it: who answers for what (R5, R6). */
import { readEndedTask } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { findReceipt } from "../../engine/history.ts";
import { refuse } from "../../kernel/contract/refusals.ts";
import type { Task } from "../../kernel/contract/task-records.ts";
import { openObligations } from "../../kernel/views.ts";
import { readStoredReceipt } from "../../ledger/seal.ts";
import type { QueryOf, QueryReply, TaskObligation } from "../../protocol/answers/queries.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { receiptBytesPerPage } from "../../store/store.ts";
import type { Service } from "../service.ts";
import { cursorFor, readCursor } from "./paging.ts";
import { answerFromStore, listPage, type QueryResult } from "./scan.ts";

export function getReceipt(
  { engine }: Service,
  query: QueryOf<"get_receipt" | "get_receipt_chain">,
): Promise<QueryResult> {
  const { type, tenant, receiptId } = query;
  return answerFromStore(engine, query, async () => {
    const stored = await findReceipt(engine.store, tenant, receiptId);
    if (stored === null) return refuse("receipt_unknown", "There is no such receipt.");
    return type === "get_receipt"
      ? { type: "stored_receipt", stored, created: false }
      : chainOf(engine, tenant, stored);
  });
}

/** Causes lead from task to task, one by one; effects are followed within the task, which the ledger finds at once. */
async function chainOf(engine: Engine, tenant: string, stored: ShownReceipt): Promise<QueryReply> {
  const causes: ShownReceipt[] = [];
  const seen = new Set([stored.receipt.id]);
  let cause = stored.receipt.causedByReceiptId;
  let bytes = 0;
  while (cause !== null && !seen.has(cause) && causes.length < limits.chainMax && bytes < receiptBytesPerPage) {
    seen.add(cause);
    const found = await findReceipt(engine.store, tenant, cause);
    if (found === null) break;
    causes.unshift(found);
    bytes += found.text.length;
    cause = found.receipt.causedByReceiptId;
  }
  const isCut = cause !== null && (causes.length === limits.chainMax || bytes >= receiptBytesPerPage);
  const { effects, isWhole } = await effectsOf(engine, tenant, stored);
  return { type: "receipt_chain", stored, causes, effects, truncated: isCut || !isWhole };
}

/** One page of its task's later receipts, of which those are effects that it, or one of them, has caused. */
async function effectsOf(engine: Engine, tenant: string, { receipt }: ShownReceipt) {
  const { taskId, sequence: after } = receipt;
  const page = await engine.store.receiptsPage({ tenant, taskId, after, limit: limits.chainMax });
  const led = new Set([receipt.id]);
  const effects = page.receipts.map(readStoredReceipt).filter((one) => {
    const { id, causedByReceiptId } = one.receipt;
    const isEffect = causedByReceiptId !== null && led.has(causedByReceiptId);
    if (isEffect) led.add(id);
    return isEffect;
  });
  return { effects, isWhole: page.next === null };
}

export function listReceipts({ engine }: Service, query: QueryOf<"list_receipts">): Promise<QueryResult> {
  return answerFromStore(engine, query, async () => {
    const { tenant, limit, taskId, phase, recipientAi, sourceSystem, since, afterReceiptId } = query;
    const newestFirst = query.sort === "desc";
    const list = newestFirst ? "newest_receipts" : "receipts";
    const cursor = Number(readCursor(list, query.cursor) ?? 0);
    const seen = afterReceiptId === null ? null : await findReceipt(engine.store, tenant, afterReceiptId);
    if (afterReceiptId !== null && seen === null)
      return refuse("receipt_unknown", "There is no such receipt.", { field: "after_receipt_id" });
    const after = Math.max(seen?.receipt.sequence ?? 0, newestFirst ? 0 : cursor);
    const page = await engine.store.receiptsPage({
      tenant,
      limit,
      after,
      newestFirst,
      ...(newestFirst && cursor > 0 && { before: cursor }),
      ...(taskId !== null && { taskId }),
      ...(phase !== null && { phase }),
      ...(recipientAi !== null && { recipientAi }),
      ...(sourceSystem !== null && { sourceSystem }),
      ...(since !== null && { since }),
    });
    const nextCursor = page.next === null ? null : cursorFor(list, String(page.next));
    return { type: "receipt_page", receipts: page.receipts.map(readStoredReceipt), nextCursor };
  });
}

export function getLedgerHead({ engine }: Service, query: QueryOf<"get_ledger_head">): Promise<QueryResult> {
  const { publicKey } = engine.ledgerKey;
  const head = async (): Promise<QueryReply> => ({
    type: "ledger_head",
    head: { ...engine.signHead(query.tenant), publicKey },
  });
  return answerFromStore(engine, query, head);
}

export function getInbox({ engine }: Service, query: QueryOf<"get_inbox">): Promise<QueryResult> {
  return listOpen(engine, { ...query, type: "list_obligations", state: null, custodian: query.recipientAi });
}

export function listObligations({ engine }: Service, query: QueryOf<"list_obligations">): Promise<QueryResult> {
  if (query.state !== "CLOSED") return listOpen(engine, query);
  return answerFromStore(engine, query, () => listClosed(engine, query));
}

function listOpen(engine: Engine, query: QueryOf<"list_obligations">): Promise<QueryResult> {
  return listPage(engine, query, {
    reader: query,
    name: "obligations",
    items: (state) => openObligations(state, query.tenant, query.custodian),
    keyOf: ({ task }) => ("taskId" in task ? task.taskId : task.id),
    isWanted: ({ obligation }) => query.state === null || obligation.state === query.state,
    reply: (obligations, nextCursor) => ({ type: "obligation_page", obligations, nextCursor }),
  });
}

/** Of tasks that have ended, the youngest first; a page may be short where few match, and says how to go on. */
async function listClosed(engine: Engine, query: QueryOf<"list_obligations">): Promise<QueryReply> {
  const { tenant, limit, custodian } = query;
  const before = readCursor("closed", query.cursor);
  const page = await engine.store.endedTaskPage({ tenant, limit, ...(before !== null && { before }) });
  const obligations = page.tasks
    .flatMap(({ body }) => obligationsIn(readEndedTask(body)))
    .filter(({ obligation }) => custodian === null || obligation.custodian === custodian);
  const nextCursor = page.next === null ? null : cursorFor("closed", page.next);
  return { type: "obligation_page", obligations, nextCursor };
}

function obligationsIn(task: Task): readonly TaskObligation[] {
  return task.obligation === null ? [] : [{ task, obligation: task.obligation }];
}
