/** Questions about tasks and workers: the live ones from the kernel, the ended ones from history. */
import { readEndedTask } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { findEndedTask, findReceipt } from "../../engine/history.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import { blocker } from "../../kernel/contract/replies.ts";
import type { Payload, Task } from "../../kernel/contract/task-records.ts";
import type { WaitingFor } from "../../kernel/kernel.ts";
import { explain, findRecord, findTask, type LiveTask, recordsOf } from "../../kernel/views.ts";
import { readStoredReceipt } from "../../ledger/seal.ts";
import type { QueryOf, QueryReply, TaskView, Waits } from "../../protocol/answers/queries.ts";
import { show } from "../../protocol/schema/convert.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import { matchesTask } from "../../protocol/tasks/task-filter.ts";
import type { Service } from "../service.ts";
import { cursorFor, readCursor, textBytes } from "./paging.ts";
import { answerFromStore, listPage, type QueryResult, read } from "./scan.ts";
import { searchTasks } from "./task-search.ts";

export async function getTask({ engine }: Service, query: QueryOf<"get_task">): Promise<QueryResult> {
  const { tenant, taskId } = query;
  const { found, now } = await read(engine, query, (state) => findTask(state, tenant, taskId));
  if (found !== null && "code" in found) return { reply: found, now };
  const ended = found === null ? await findEndedTask(engine.store, tenant, taskId) : null;
  const known = found ?? (ended === null ? null : { task: ended, payload: ended.payload });
  if (known === null) return { reply: unknownTask(taskId), now };
  const payload = await payloadOf(engine, known);
  return { reply: { type: "task_view", view: await viewOf(engine, tenant, { ...known, payload }) }, now };
}

/** Of a live one it may be in the store alone, and the task may have ended since it was found. */
async function payloadOf(engine: Engine, { task, payload }: LiveTask): Promise<Payload | null> {
  const { tenant, id, payloadBytes } = task;
  if (payload !== null || payloadBytes === 0) return payload;
  return (await engine.payloads.ofTask(tenant, id)) ?? (await findEndedTask(engine.store, tenant, id))?.payload ?? null;
}

export async function explainTask({ engine }: Service, query: QueryOf<"explain_task">): Promise<QueryResult> {
  const { tenant, taskId } = query;
  const { found, now } = await read(engine, query, (state, at) => {
    const task = findRecord(state, tenant, "task", taskId);
    return { task, waitingFor: explain(state, tenant, taskId, at).map((one) => waitsObject(one, at)) };
  });
  if ("code" in found) return { reply: found, now };
  const task = found.task ?? (await findEndedTask(engine.store, tenant, taskId));
  if (task === null) return { reply: unknownTask(taskId), now };
  return { reply: { type: "explained", task, waitingFor: found.waitingFor }, now };
}

function unknownTask(taskId: string): Refusal {
  return refuse("task_unknown", "There is no such task.", { taskId });
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
      const blockers = waits.blockers.map((one) => show(blocker, one, { now }));
      return { kind, detail, blocked_by: blockers, blocked_by_total: waits.total };
    }
    case "resource_fenced":
    case "cell_not_ready":
      return { kind, detail, resource: waits.resource };
    case "binding":
      return { kind, detail, cell: waits.cell, resource: waits.resource, until: isoTime(waits.until) };
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

async function viewOf(engine: Engine, tenant: string, { task, payload }: LiveTask): Promise<TaskView> {
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
export async function listTasks({ engine }: Service, query: QueryOf<"list_tasks">): Promise<QueryResult> {
  const { tenant, status, limit } = query;
  const isInEnded = query.cursor !== null && isCursorOf("ended_tasks", query.cursor);
  if (isInEnded || finals.includes(status)) return answerFromStore(engine, query, () => listEnded(engine, query, []));
  return listPage(engine, query, {
    reader: query,
    name: "tasks",
    items: (state) => recordsOf(state, tenant, "task"),
    find: (state, key) => findRecord(state, tenant, "task", key),
    keyOf: ({ id }) => id,
    isWanted: (task) => matchesTask(task, query),
    bytesOf: textBytes,
    reply: async (found, nextCursor) => {
      const { found: tasks, stoppedAt } = await searchTasks(found, query.search, ({ id }) =>
        engine.payloads.ofTask(tenant, id),
      );
      if (stoppedAt !== null) return pageOf(tasks, cursorFor("tasks", stoppedAt.id));
      if (nextCursor !== null || status !== null) return pageOf(tasks, nextCursor);
      if (found.length === limit) return pageOf(tasks, cursorFor("ended_tasks", ""));
      return listEnded(engine, { ...query, cursor: null }, tasks);
    },
  });
}

async function listEnded(engine: Engine, query: QueryOf<"list_tasks">, first: readonly Task[]): Promise<QueryReply> {
  const before = readCursor("ended_tasks", query.cursor);
  const { tasks, next } = await engine.store.endedTaskPage({
    tenant: query.tenant,
    limit: query.limit - first.length,
    ...(before !== null && before !== "" && { before }),
    ...(query.status !== null && { status: query.status }),
    ...(query.taskType !== null && { taskType: query.taskType }),
  });
  const matching = tasks.map(({ body }) => readEndedTask(body)).filter((task) => matchesTask(task, query));
  const { found, stoppedAt } = await searchTasks(matching, query.search, async ({ id }) => {
    return (await findEndedTask(engine.store, query.tenant, id))?.payload ?? null;
  });
  const from = stoppedAt?.id ?? next;
  return pageOf([...first, ...found], from === null ? null : cursorFor("ended_tasks", from));
}

function isCursorOf(list: string, cursor: string): boolean {
  return Buffer.from(cursor, "base64url").toString().startsWith(`${list}\n`);
}

function pageOf(tasks: readonly Task[], nextCursor: string | null): QueryReply {
  return { type: "task_page", tasks, nextCursor };
}
