/** Questions about the ledger, and about what follows from it: who answers for what (R5, R6). */
import { readEndedTask } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { findReceipt } from "../../engine/history.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";
import { findTenantFor, type TaskEntry } from "../../kernel/views.ts";
import { readStoredReceipt } from "../../ledger/seal.ts";
import type { QueryOf, QueryReply, TaskObligation } from "../../protocol/answers/queries.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import { limits } from "../../protocol/schema/limits.ts";
import type { QueryResult } from "./lease-queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { scan } from "./scan.ts";

export async function getReceipt(
  engine: Engine,
  query: QueryOf<"get_receipt" | "get_receipt_chain">,
): Promise<QueryResult> {
  const { tenant, receiptId } = query;
  const { refusal, now } = await admit(engine, query);
  if (refusal !== null) return { reply: refusal, now };
  const stored = await findReceipt(engine.store, tenant, receiptId);
  if (stored === null) return { reply: refuse("receipt_unknown", "There is no such receipt."), now };
  if (query.type === "get_receipt") return { reply: { type: "stored_receipt", stored, created: false }, now };
  return { reply: await chainOf(engine, tenant, stored), now };
}

/** Causes lead from task to task, one by one; effects are followed within the task, which the ledger finds at once. */
async function chainOf(engine: Engine, tenant: string, stored: ShownReceipt): Promise<QueryReply> {
  const causes: ShownReceipt[] = [];
  const seen = new Set([stored.receipt.id]);
  let cause = stored.receipt.causedByReceiptId;
  while (cause !== null && !seen.has(cause) && causes.length < limits.chainMax) {
    seen.add(cause);
    const found = await findReceipt(engine.store, tenant, cause);
    if (found === null) break;
    causes.unshift(found);
    cause = found.receipt.causedByReceiptId;
  }
  const isCut = cause !== null && causes.length === limits.chainMax;
  const rows = await engine.store.receiptsOfTask(tenant, stored.receipt.taskId);
  const effects: ShownReceipt[] = [];
  const led = new Set([stored.receipt.id]);
  for (const one of rows.map(readStoredReceipt)) {
    const { id, causedByReceiptId, sequence } = one.receipt;
    if (sequence <= stored.receipt.sequence || causedByReceiptId === null || !led.has(causedByReceiptId)) continue;
    led.add(id);
    effects.push(one);
  }
  const truncated = isCut || effects.length > limits.chainMax;
  return { type: "receipt_chain", stored, causes, effects: effects.slice(0, limits.chainMax), truncated };
}

export async function listReceipts(engine: Engine, query: QueryOf<"list_receipts">): Promise<QueryResult> {
  const { refusal, now } = await admit(engine, query);
  if (refusal !== null) return { reply: refusal, now };
  const after = readCursor("receipts", query.cursor);
  const { tenant, limit, taskId, phase, recipientAi, sourceSystem, since } = query;
  const page = await engine.store.receiptsPage({
    tenant,
    limit,
    ...(after !== null && { after: Number(after) }),
    ...(taskId !== null && { taskId }),
    ...(phase !== null && { phase }),
    ...(recipientAi !== null && { recipientAi }),
    ...(sourceSystem !== null && { sourceSystem }),
    ...(since !== null && { since }),
  });
  const nextCursor = page.next === null ? null : cursorFor("receipts", String(page.next));
  return { reply: { type: "receipt_page", receipts: page.receipts.map(readStoredReceipt), nextCursor }, now };
}

export async function getLedgerHead(engine: Engine, query: QueryOf<"get_ledger_head">): Promise<QueryResult> {
  const { refusal, now } = await admit(engine, query);
  if (refusal !== null) return { reply: refusal, now };
  const { publicKey } = engine.ledgerKey;
  return { reply: { type: "ledger_head", head: { ...engine.signHead(query.tenant), publicKey } }, now };
}

export function getInbox(engine: Engine, query: QueryOf<"get_inbox">): Promise<QueryResult> {
  return listOpen(engine, { ...query, type: "list_obligations", state: null, custodian: query.recipientAi });
}

export function listObligations(engine: Engine, query: QueryOf<"list_obligations">): Promise<QueryResult> {
  return query.state === "CLOSED" ? listClosed(engine, query) : listOpen(engine, query);
}

async function listOpen(engine: Engine, query: QueryOf<"list_obligations">): Promise<QueryResult> {
  const after = readCursor("obligations", query.cursor);
  let page = new PageBuilder<TaskObligation>(query.limit, after);
  const begin = (state: State) => {
    page = new PageBuilder<TaskObligation>(query.limit, after);
    const tenant = findTenantFor(state, query);
    if ("code" in tenant) return tenant;
    const { custodians } = tenant.book;
    return query.custodian === null ? allOf(custodians) : (custodians.get(query.custodian) ?? []);
  };
  const { refusal, now } = await scan<TaskEntry>(engine, begin, ({ record: task }) => {
    const { obligation } = task;
    if (obligation === null || obligation.state === "CLOSED") return;
    if (query.state !== null && obligation.state !== query.state) return;
    page.offer(task.id, { task, obligation });
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  const nextCursor = lastKey === null ? null : cursorFor("obligations", lastKey);
  return { reply: { type: "obligation_page", obligations: items, nextCursor }, now };
}

function* allOf(custodians: ReadonlyMap<string, ReadonlySet<TaskEntry>>): Generator<TaskEntry> {
  for (const tasks of custodians.values()) yield* tasks;
}

/** Of tasks that have ended, the youngest first; a page may be short where few match, and says how to go on. */
async function listClosed(engine: Engine, query: QueryOf<"list_obligations">): Promise<QueryResult> {
  const { refusal, now } = await admit(engine, query);
  if (refusal !== null) return { reply: refusal, now };
  const { tenant, limit, custodian } = query;
  const before = readCursor("closed", query.cursor);
  const page = await engine.store.endedTaskPage({ tenant, limit, ...(before !== null && { before }) });
  const obligations = page.tasks.flatMap(({ body }) => {
    const task = readEndedTask(body);
    const { obligation } = task;
    const isWanted = obligation !== null && (custodian === null || obligation.custodian === custodian);
    return isWanted ? [{ task, obligation }] : [];
  });
  const nextCursor = page.next === null ? null : cursorFor("closed", page.next);
  return { reply: { type: "obligation_page", obligations, nextCursor }, now };
}

/** Who may look; asked through the engine, so that what is read afterwards is at least as new as all before (S1). */
function admit(
  engine: Engine,
  query: Parameters<typeof findTenantFor>[1],
): Promise<{ readonly refusal: Refusal | null; readonly now: Millis }> {
  return engine.ask((state, now) => {
    const tenant = findTenantFor(state, query);
    return { refusal: "code" in tenant ? tenant : null, now };
  });
}
