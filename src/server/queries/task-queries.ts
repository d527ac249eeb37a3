/** Questions about tasks and workers: the live ones from the kernel, the ended ones from history. */
import { readEndedTask } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { findEndedTask, findReceipt } from "../../engine/history.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import type { EndedTask, Payload, Task } from "../../kernel/contract/task-records.ts";
import { explainTask, type State, type WaitingFor } from "../../kernel/kernel.ts";
import { findTenantFor, type TaskEntry } from "../../kernel/views.ts";
import { readStoredReceipt } from "../../ledger/seal.ts";
import type { QueryOf, QueryReply, TaskView, Waits } from "../../protocol/answers/queries.ts";
import { blockerObject } from "../../protocol/leases/lease-json.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import type { QueryResult } from "./lease-queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { scan } from "./scan.ts";

interface Found {
  readonly task: Task;
  readonly payload: Payload | null;
  readonly waitingFor: readonly Waits[];
}

export async function getTask(engine: Engine, query: QueryOf<"get_task" | "explain_task">): Promise<QueryResult> {
  const { tenant, taskId } = query;
  const { found, now } = await engine.ask((state, at) => ({ found: findLive(state, query, at), now: at }));
  if (found !== null && "code" in found) return { reply: found, now };
  const ended = found === null ? await findEndedTask(engine.store, tenant, taskId) : null;
  if (found === null && ended === null)
    return { reply: refuse("task_unknown", "There is no such task.", { taskId }), now };
  if (query.type === "explain_task") return { reply: explained(found, ended), now };
  const task = found?.task ?? ended;
  if (task === null) throw new TypeError("a task is alive or has ended");
  const view = await viewOf(engine, tenant, task, found === null ? (ended?.payload ?? null) : found.payload);
  return { reply: { type: "task_view", view }, now };
}

function findLive(state: State, query: QueryOf<"get_task" | "explain_task">, now: Millis): Found | Refusal | null {
  const tenant = findTenantFor(state, query);
  if ("code" in tenant) return tenant;
  const entry = tenant.tasks.get(query.taskId);
  if (entry === undefined) return null;
  const waitingFor = query.type === "explain_task" ? explainTask(state, tenant, entry, now) : [];
  return {
    task: entry.record,
    payload: entry.payload?.record ?? null,
    waitingFor: waitingFor.map((one) => waitsObject(one, now)),
  };
}

function explained(live: Found | null, ended: EndedTask | null): QueryReply {
  const task = live?.task ?? ended;
  if (task === null) throw new TypeError("a task is alive or has ended");
  return { type: "explained", task, waitingFor: live?.waitingFor ?? [] };
}

/** T11, in the words of the wire. */
function waitsObject(waits: WaitingFor, now: Millis): Waits {
  const { kind, detail } = waits;
  switch (waits.kind) {
    case "delay":
      return { kind, detail, until: isoTime(waits.until), in_ms: Math.max(0, waits.until - now) };
    case "dependency":
      return { kind, detail, task_ids: waits.taskIds };
    case "concurrency_key":
      return { kind, detail, key: waits.key, limit: waits.limit, running: waits.running };
    case "resource": {
      const blockers = waits.blockers.map((blocker) => blockerObject(blocker, now));
      return { kind, detail, blocked_by: blockers, blocked_by_total: waits.total };
    }
    case "resource_fenced":
    case "cell_not_ready":
      return { kind, detail, resource: waits.resource };
    case "worker":
      return { kind, detail, requires: waits.requires };
    case "queue":
      return { kind, detail, ahead: waits.ahead };
    case "running":
      return { kind, detail, worker_id: waits.workerId, until: isoTime(waits.until) };
    case "tenant_suspended":
    case "quota":
    case "redrive":
      return { kind, detail };
  }
}

async function viewOf(engine: Engine, tenant: string, task: Task, payload: Payload | null): Promise<TaskView> {
  const { winningReceiptId, lastReceiptId } = task;
  if (lastReceiptId === null) return { task, payload, result: null, receipts: [] };
  const page = await engine.store.receiptsPage({ tenant, taskId: task.id, limit: limits.taskReceiptsMax });
  const receipts = page.receipts.map(readStoredReceipt);
  if (winningReceiptId === null) return { task, payload, result: null, receipts };
  const shown = receipts.find(({ receipt }) => receipt.id === winningReceiptId);
  return { task, payload, receipts, result: shown ?? (await findReceipt(engine.store, tenant, winningReceiptId)) };
}

const finals: readonly (Task["status"] | null)[] = ["succeeded", "failed", "canceled"];

/**
 * The living first, by id, which is by age; then the ended, the youngest first, as history has them. A task that ends
 * between two pages is on the second, or on both.
 */
export async function listTasks(engine: Engine, query: QueryOf<"list_tasks">): Promise<QueryResult> {
  const { status, limit } = query;
  const isInEnded = query.cursor !== null && isCursorOf("ended_tasks", query.cursor);
  if (isInEnded || finals.includes(status)) return listEnded(engine, query, [], engine.now());
  const after = readCursor("tasks", query.cursor);
  let page = new PageBuilder<Task>(limit, after);
  const begin = (state: State) => {
    page = new PageBuilder<Task>(limit, after);
    const tenant = findTenantFor(state, query);
    return "code" in tenant ? tenant : tenant.tasks.values();
  };
  const { refusal, now } = await scan<TaskEntry>(engine, begin, ({ record, alive }) => {
    if (alive && matches(record, query)) page.offer(record.id, record);
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  if (lastKey !== null) return { reply: pageOf(items, cursorFor("tasks", lastKey)), now };
  if (status !== null) return { reply: pageOf(items, null), now };
  if (items.length === limit) return { reply: pageOf(items, cursorFor("ended_tasks", "")), now };
  return listEnded(engine, { ...query, cursor: null }, items, now);
}

async function listEnded(
  engine: Engine,
  query: QueryOf<"list_tasks">,
  first: readonly Task[],
  now: Millis,
): Promise<QueryResult> {
  const refusal = await engine.ask((state) => {
    const tenant = findTenantFor(state, query);
    return "code" in tenant ? tenant : null;
  });
  if (refusal !== null) return { reply: refusal, now };
  const before = readCursor("ended_tasks", query.cursor);
  const { tasks, next } = await engine.store.endedTaskPage({
    tenant: query.tenant,
    limit: query.limit - first.length,
    ...(before !== null && before !== "" && { before }),
    ...(query.status !== null && { status: query.status }),
    ...(query.taskType !== null && { taskType: query.taskType }),
  });
  const ended = tasks.map(({ body }) => readEndedTask(body));
  const nextCursor = next === null ? null : cursorFor("ended_tasks", next);
  return { reply: pageOf([...first, ...ended], nextCursor), now };
}

function isCursorOf(list: string, cursor: string): boolean {
  return Buffer.from(cursor, "base64url").toString().startsWith(`${list}\n`);
}

function matches({ status, spec }: Task, query: QueryOf<"list_tasks">): boolean {
  if (query.status !== null && status !== query.status) return false;
  return query.taskType === null || spec.taskType === query.taskType;
}

function pageOf(tasks: readonly Task[], nextCursor: string | null): QueryReply {
  return { type: "task_page", tasks, nextCursor };
}
