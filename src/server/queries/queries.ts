/** Questions that change nothing, answered from what is durable (S1), a page at a time, in slices between commands. */
import type { Engine } from "../../engine/engine.ts";
import type { Agent, Key, Resource, Tenant } from "../../kernel/contract/records.ts";
import { type Refusal, refuse } from "../../kernel/contract/refusals.ts";
import type { TaskType, Worker } from "../../kernel/contract/task-records.ts";
import type { State } from "../../kernel/kernel.ts";
import {
  type AgentEntry,
  agentOf,
  findTenantFor,
  type KeyEntry,
  type ResourceEntry,
  type TaskTypeEntry,
  type TenantEntry,
  type WorkerEntry,
} from "../../kernel/views.ts";
import type { Answer } from "../../protocol/answers/answer.ts";
import type { Paging, Query, QueryOf, QueryReply } from "../../protocol/answers/queries.ts";
import { agentState, resourceState } from "../../protocol/operating/record-json.ts";
import type { QueryOperation } from "../../protocol/operation.ts";
import { tokenKeys } from "../cells/token-keys.ts";
import { verifyToken } from "../cells/verify-token.ts";
import type { Caller, Service } from "../service.ts";
import { listCells } from "./cell-queries.ts";
import { getLease, listLeases, type QueryResult } from "./lease-queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { getInbox, getLedgerHead, getReceipt, listObligations, listReceipts } from "./receipt-queries.ts";
import { listRequests } from "./request-queries.ts";
import { scan } from "./scan.ts";
import { getTask, listTasks } from "./task-queries.ts";

export async function runQuery(
  service: Service,
  operation: QueryOperation,
  query: Query,
  { actor }: Caller,
): Promise<Answer> {
  const { reply, now } = await find(service, query);
  if (reply.type === "refused") service.counts.refuse(reply.code);
  // Only the holder itself is shown its token. Those above it may act on the lease without it.
  const isHolder = reply.type === "lease" && actor.role === "agent" && actor.agentId === reply.lease.agentId;
  return operation.encode(reply, isHolder ? { now, tokenOf: service.tokens.tokenOf } : { now });
}

async function find({ engine, cells, tokens }: Service, query: Query): Promise<QueryResult> {
  switch (query.type) {
    case "get_agent":
    case "get_digest":
      return getAgent(engine, query);
    case "list_agents":
      return listAgents(engine, query);
    case "get_lease":
      return getLease(engine, query);
    case "list_leases":
      return listLeases(engine, query);
    case "list_requests":
      return listRequests(engine, query);
    case "list_resources":
      return listResources(engine, query);
    case "list_cells":
      return listCells(engine, cells, query);
    case "verify_token":
      return verifyToken(engine, tokens, query);
    case "list_token_keys":
      return { reply: tokenKeys(tokens), now: engine.now() };
    case "list_tenants":
      return listTenants(engine, query);
    case "list_keys":
      return listKeys(engine, query);
    case "get_task":
    case "explain_task":
      return getTask(engine, query);
    case "list_tasks":
      return listTasks(engine, query);
    case "list_task_types":
      return listTaskTypes(engine, query);
    case "list_workers":
      return listWorkers(engine, query);
    case "get_receipt":
    case "get_receipt_chain":
      return getReceipt(engine, query);
    case "list_receipts":
      return listReceipts(engine, query);
    case "list_obligations":
      return listObligations(engine, query);
    case "get_inbox":
      return getInbox(engine, query);
    case "get_ledger_head":
      return getLedgerHead(engine, query);
  }
}

function getAgent(engine: Engine, query: QueryOf<"get_agent" | "get_digest">): Promise<QueryResult> {
  const look = (state: State): QueryReply => {
    const tenant = findTenantFor(state, query);
    if ("code" in tenant) return tenant;
    // A checkpoint is its agent's own, and of those above it; that there is such an agent is for all of the tenant.
    if (query.type === "get_digest") {
      const agent = agentOf({ tenant }, query);
      if ("code" in agent) return agent;
      if (agent.digest === null)
        return refuse("digest_unknown", "The agent has no checkpoint; it was never saved, or dropped.");
      return { type: "digest", digest: agent.digest.record };
    }
    const agent = tenant.agents.get(query.agentId);
    if (agent === undefined) {
      return refuse("agent_unknown", "There is no such agent; register it first.", { field: "agent_id" });
    }
    return { type: "agent", agent: agent.record, created: false };
  };
  return engine.ask((state, now) => ({ reply: look(state), now }));
}

function listAgents(engine: Engine, query: QueryOf<"list_agents">): Promise<QueryResult> {
  return list<AgentEntry, Agent>(engine, query, "agents", {
    begin: inTenant(query, ({ agents }) => agents.values()),
    pick: ({ record }) => (query.state === null || agentState(record) === query.state ? record : null),
    keyOf: ({ id }) => id,
    reply: (agents, nextCursor) => ({ type: "agent_page", agents, nextCursor }),
  });
}

function listResources(engine: Engine, query: QueryOf<"list_resources">): Promise<QueryResult> {
  const { prefix, state } = query;
  return list<ResourceEntry, Resource>(engine, query, "resources", {
    begin: inTenant(query, ({ resources }) => resources.values()),
    pick: ({ record }) => {
      if (prefix !== null && !record.name.startsWith(prefix)) return null;
      return state === null || resourceState(record) === state ? record : null;
    },
    keyOf: ({ name }) => name,
    reply: (resources, nextCursor) => ({ type: "resource_page", resources, nextCursor }),
  });
}

function listTenants(engine: Engine, query: QueryOf<"list_tenants">): Promise<QueryResult> {
  return list<TenantEntry, Tenant>(engine, query, "tenants", {
    begin: ({ tenants }) => tenants.values(),
    pick: ({ record }) => record,
    keyOf: ({ id }) => id,
    reply: (tenants, nextCursor) => ({ type: "tenant_page", tenants, nextCursor }),
  });
}

function listKeys(engine: Engine, query: QueryOf<"list_keys">): Promise<QueryResult> {
  const { tenantId, role } = query;
  return list<KeyEntry, Key>(engine, query, "keys", {
    begin: ({ keys }) => keys.values(),
    pick: ({ record }) => {
      if (tenantId !== null && record.tenant !== tenantId) return null;
      return role === null || record.role === role ? record : null;
    },
    keyOf: ({ id }) => id,
    reply: (keys, nextCursor) => ({ type: "key_page", keys, nextCursor }),
  });
}

function listTaskTypes(engine: Engine, query: QueryOf<"list_task_types">): Promise<QueryResult> {
  return list<TaskTypeEntry, TaskType>(engine, query, "task_types", {
    begin: inTenant(query, ({ book }) => book.types.values()),
    pick: ({ record }) => record,
    keyOf: ({ taskType }) => taskType,
    reply: (taskTypes, nextCursor) => ({ type: "task_type_page", taskTypes, nextCursor }),
  });
}

function listWorkers(engine: Engine, query: QueryOf<"list_workers">): Promise<QueryResult> {
  return list<WorkerEntry, { readonly worker: Worker; readonly leases: number }>(engine, query, "workers", {
    begin: inTenant(query, ({ book }) => book.workers.values()),
    pick: ({ record, leases }) => ({ worker: record, leases: leases.size }),
    keyOf: ({ worker }) => worker.id,
    reply: (workers, nextCursor) => ({ type: "worker_page", workers, nextCursor }),
  });
}

interface Listing<E, R> {
  readonly begin: (state: State) => Iterable<E> | Refusal;
  /** The record, if it belongs to the list. */
  readonly pick: (entry: E) => R | null;
  readonly keyOf: (record: R) => string;
  readonly reply: (items: readonly R[], nextCursor: string | null) => QueryReply;
}

async function list<E, R>(
  engine: Engine,
  { limit, cursor }: Paging,
  name: string,
  { begin, pick, keyOf, reply }: Listing<E, R>,
): Promise<QueryResult> {
  const after = readCursor(name, cursor);
  let page = new PageBuilder<R>(limit, after);
  const start = (state: State) => {
    page = new PageBuilder<R>(limit, after);
    return begin(state);
  };
  const { refusal, now } = await scan<E>(engine, start, (entry) => {
    const record = pick(entry);
    if (record !== null) page.offer(keyOf(record), record);
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  return { reply: reply(items, lastKey === null ? null : cursorFor(name, lastKey)), now };
}

function inTenant<E>(query: Parameters<typeof findTenantFor>[1], items: (tenant: TenantEntry) => Iterable<E>) {
  return (state: State): Iterable<E> | Refusal => {
    const tenant = findTenantFor(state, query);
    return "code" in tenant ? tenant : items(tenant);
  };
}
