/**
 * What the kernel cannot say because it knows only what is alive: how a lease or task ended, and which receipts the ledger
 * has. The store's history has it; ended is final, so asking after the decision cannot race.
 */
import type { Command } from "../kernel/contract/commands.ts";
import { leaseIdWith, suffixOf } from "../kernel/contract/ids.ts";
import type { EndedRequest, Lease } from "../kernel/contract/records.ts";
import type { Refusal } from "../kernel/contract/refusals.ts";
import type { LostLease, Reply } from "../kernel/contract/replies.ts";
import type { EndedTask } from "../kernel/contract/task-records.ts";
import { answerForEnded, answerForEndedRequest, answerForEndedTask } from "../kernel/kernel.ts";
import { taskOfName } from "../kernel/views.ts";
import { readStoredReceipt, type SealedReceipt } from "../ledger/seal.ts";
import type { AgentKey, History } from "../store/store.ts";
import { readEndedTask, readLease } from "./codec/record-text.ts";

/** Whether the reply leaves something open that only history can answer. */
export function needsHistory(reply: Reply): boolean {
  switch (reply.type) {
    case "refused":
      return reply.code === "lease_unknown" || reply.code === "task_unknown" || reply.code === "request_unknown";
    case "leases":
      return reply.lost.some(({ lease }) => lease === null);
    default:
      return false;
  }
}

export async function completeReply(history: History, command: Command, reply: Reply): Promise<Reply> {
  const { tenant } = command;
  switch (reply.type) {
    case "refused":
      if (reply.code === "task_unknown" && reply.taskId !== undefined)
        return answerForEndedTask(command, reply, await findEndedTask(history, tenant, reply.taskId));
      if (reply.code === "lease_unknown" && reply.leaseId !== undefined) {
        const [lease = null] = await endedLeases(history, tenant, [reply.leaseId]);
        const isForTask = command.type === "heartbeat_task" || command.type === "release_task";
        return isForTask ? answerForTaskLease(command, reply, lease) : answerForEnded(command, reply, lease);
      }
      if (reply.code === "request_unknown" && "requestId" in command) {
        const grant = await history.endedGrant(tenant, leaseIdWith(suffixOf(command.requestId), 0));
        return answerForEndedRequest(
          command,
          reply,
          grant.map(({ body }) => readLease(body)),
        );
      }
      return reply;
    case "leases":
      if (!("agentId" in command)) return reply;
      return { ...reply, lost: await completeLost(history, tenant, command.agentId, reply.lost) };
    default:
      return reply;
  }
}

/**
 * How a task's lease ended. Any worker may learn it: a lease's id is a name, not a secret (L13), and the worker is the one
 * who asks. Giving back what is over changes nothing (L5).
 */
function answerForTaskLease(command: Command, unknown: Refusal, lease: Lease | null): Reply {
  if (lease === null || taskOfName(lease.resource) === null) return unknown;
  if (command.type === "release_task") return { type: "lease", lease };
  return answerForEnded({ ...command, actor: above }, unknown, lease);
}

const above = { role: "supervisor", agentId: null, epoch: null } as const;

export async function endedLeases(history: History, tenant: string, ids: readonly string[]): Promise<Lease[]> {
  const rows = await history.endedLease(tenant, ids);
  return rows.map(({ body }) => readLease(body));
}

export async function endedTasks(history: History, tenant: string, ids: readonly string[]): Promise<EndedTask[]> {
  const rows = await history.endedTasks(tenant, ids);
  return rows.map(({ body }) => readEndedTask(body));
}

/** The ended tasks that were created with these idempotency keys (T12). */
export async function endedTasksByKey(
  history: History,
  tenant: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, EndedTask>> {
  const found = new Map<string, EndedTask>();
  for (const { body, idempotencyKey } of await history.endedTasksByKey(tenant, keys))
    if (idempotencyKey !== null) found.set(idempotencyKey, readEndedTask(body));
  return found;
}

/** The requests with these keys that memory has forgotten, each under its agent and key (W10). */
export async function endedRequests(
  history: History,
  tenant: string,
  keys: readonly AgentKey[],
): Promise<ReadonlyMap<string, EndedRequest>> {
  const found = new Map<string, EndedRequest>();
  for (const { endedAs, ...row } of await history.endedRequests(tenant, keys)) {
    const request = { ...row, endedAs: endedAs as EndedRequest["endedAs"] };
    found.set(JSON.stringify([row.agentId, row.key]), request);
  }
  return found;
}

export async function findEndedTask(history: History, tenant: string, id: string): Promise<EndedTask | null> {
  const [task = null] = await endedTasks(history, tenant, [id]);
  return task;
}

/** Of leases that have ended: the tasks that they were on. */
export async function tasksOfEndedLeases(
  history: History,
  tenant: string,
  leaseIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const leases = await endedLeases(history, tenant, leaseIds);
  return new Map(
    leases.flatMap(({ id, resource }) => {
      const taskId = taskOfName(resource);
      return taskId === null ? [] : [[id, taskId] as const];
    }),
  );
}

/** If a client has used an id twice, the first receipt counts. */
export async function findReceipt(history: History, tenant: string, id: string): Promise<SealedReceipt | null> {
  const [row] = await history.receiptsById(tenant, [id]);
  return row === undefined ? null : readStoredReceipt(row);
}

/** L8: the truth for each of the agent's own; another's lease looks unknown. */
async function completeLost(
  history: History,
  tenant: string,
  agentId: string | null,
  lost: readonly LostLease[],
): Promise<LostLease[]> {
  const unknown = lost.filter(({ lease }) => lease === null).map(({ id }) => id);
  const ended = new Map<string, Lease>();
  for (const lease of await endedLeases(history, tenant, unknown))
    if (lease.agentId === agentId) ended.set(lease.id, lease);
  return lost.map((one) => ({ ...one, lease: one.lease ?? ended.get(one.id) ?? null }));
}
