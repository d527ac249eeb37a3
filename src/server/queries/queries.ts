/** Questions that change nothing, answered from what is durable (S1), a page at a time, in slices between commands. */
import { refuse } from "../../kernel/contract/refusals.ts";
import { isAway, type State } from "../../kernel/kernel.ts";
import {
  findDigest,
  findRecord,
  keysIn,
  type ListedKind,
  observationOfAgent,
  policiesOf,
  type Reader,
  recordsOf,
  resourcesByCell,
  tenantsIn,
  testPolicies,
  workersOf,
} from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Query, QueryOf } from "../../protocol/answers/queries.ts";
import { agentState, resourceState } from "../../protocol/operating/record-json.ts";
import type { QueryOperation } from "../../protocol/operation.ts";
import { Refused } from "../answering/faults.ts";
import { tokenKeys } from "../cells/token-keys.ts";
import { verifyToken } from "../cells/verify-token.ts";
import type { Caller, Service } from "../service.ts";
import { listAudit } from "./audit-queries.ts";
import { getOverview, listActivity } from "./fleet-queries.ts";
import { getHistory } from "./history-queries.ts";
import { getLease, listLeases, listRequests } from "./lease-queries.ts";
import { textBytes } from "./paging.ts";
import { getInbox, getLedgerHead, getReceipt, listObligations, listReceipts } from "./receipt-queries.ts";
import { answerFrom, listPage, type QueryResult } from "./scan.ts";
import { explainTask, getTask, listTasks } from "./task-queries.ts";
import { getUsage } from "./usage.ts";
import { listWaits } from "./wait-queries.ts";

export async function runQuery(
  service: Service,
  operation: QueryOperation,
  query: Query,
  { actor }: Caller,
): Promise<Answer> {
  // The table gives each type the run for it.
  const run = runs[query.type] as (service: Service, query: Query) => Promise<QueryResult>;
  const { reply, now } = await run(service, query);
  if (reply.type === "refused") service.counts.refuse(reply.code);
  // Only the holder itself is shown its token. Those above it may act on the lease without it.
  const isHolder = reply.type === "lease" && actor.role === "agent" && actor.agentId === reply.lease.agentId;
  const showsOwners = actor.role === "operator" || actor.role === "supervisor";
  return operation.encode(reply, isHolder ? { now, tokenOf: service.tokens.tokenOf } : { now, showsOwners });
}

const runs: { readonly [K in Query["type"]]: (service: Service, query: QueryOf<K>) => Promise<QueryResult> } = {
  get_agent: getAgent,
  get_digest: getDigest,
  get_observation: ({ engine }, query) =>
    answerFrom(engine, query, (state, now) => {
      const observation = observationOfAgent(state, query.tenant, query.agentId, now);
      return observation === null
        ? refuse("agent_unknown", "There is no such agent; register it first.")
        : { type: "observation", observation };
    }),
  list_agents: ({ engine }, query) =>
    listPage(engine, query, {
      ...inTenant("agent", query),
      name: "agents",
      keyOf: ({ id }) => id,
      isWanted: (agent) => query.state === null || agentState(agent) === query.state,
      bytesOf: textBytes,
      reply: (agents, nextCursor) => ({ type: "agent_page", agents, nextCursor }),
    }),
  get_lease: getLease,
  list_leases: listLeases,
  list_requests: listRequests,
  list_resources: ({ engine }, query) =>
    listPage(engine, query, {
      ...inTenant("resource", query),
      name: "resources",
      keyOf: ({ name }) => name,
      isWanted: (resource) =>
        resource.name.startsWith(query.prefix ?? "") &&
        (query.state === null || resourceState(resource) === query.state),
      reply: (resources, nextCursor) => ({ type: "resource_page", resources, nextCursor }),
    }),
  list_cells: listCells,
  verify_token: verifyToken,
  list_token_keys: async ({ engine, tokens }) => ({ reply: tokenKeys(tokens), now: engine.now() }),
  list_audit: listAudit,
  list_tenants: async ({ engine, place }, query) => {
    // What is set for a tenant is its own shard's; all of them are in one database.
    const stored = place === null ? null : await place.tenants();
    return await listPage(engine, query, {
      reader: null,
      name: "tenants",
      items: (state) => stored ?? Array.from(tenantsIn(state).values(), ({ record }) => record),
      keyOf: ({ id }) => id,
      reply: (tenants, nextCursor) => ({ type: "tenant_page", tenants, nextCursor }),
    });
  },
  list_keys: ({ engine }, query) =>
    listPage(engine, query, {
      reader: null,
      name: "keys",
      items: (state) => keysIn(state).values(),
      keyOf: ({ record }) => record.id,
      isWanted: ({ record }) =>
        (query.tenantId === null || record.tenant === query.tenantId) &&
        (query.role === null || record.role === query.role),
      reply: (keys, nextCursor) => ({ type: "key_page", keys: keys.map(({ record }) => record), nextCursor }),
    }),
  list_policies: ({ engine }, query) =>
    listPage(engine, query, {
      reader: query,
      name: "policies",
      items: (state) => policiesOf(state, tenantOf(query)),
      keyOf: ({ id }) => id,
      reply: (policies, nextCursor) => ({ type: "policy_page", policies, nextCursor }),
    }),
  get_policy: ({ engine }, query) =>
    answerFrom(engine, query, (state) => {
      const policy = policiesOf(state, tenantOf(query)).find(({ id }) => id === query.policyId);
      if (policy !== undefined) return { type: "policy", policy, created: false };
      return refuse("policy_unknown", "There is no such policy.", { field: "policy_id" });
    }),
  // Not for readers of the tenant only: a key that registers agents may ask what it is allowed.
  test_policies: ({ engine }, query) =>
    engine.ask((state, now) => {
      const verdict = testPolicies(state, query);
      return { reply: "code" in verdict ? verdict : { type: "policy_verdict", ...verdict }, now };
    }),
  get_task: getTask,
  explain_task: explainTask,
  list_tasks: listTasks,
  list_task_types: ({ engine }, query) =>
    listPage(engine, query, {
      ...inTenant("task_type", query),
      name: "task_types",
      keyOf: ({ taskType }) => taskType,
      reply: (taskTypes, nextCursor) => ({ type: "task_type_page", taskTypes, nextCursor }),
    }),
  list_workers: ({ engine }, query) =>
    listPage(engine, query, {
      reader: query,
      name: "workers",
      items: (state) => workersOf(state, query.tenant),
      keyOf: ({ worker }) => worker.id,
      reply: (workers, nextCursor) => ({ type: "worker_page", workers, nextCursor }),
    }),
  get_receipt: getReceipt,
  get_receipt_chain: getReceipt,
  list_receipts: listReceipts,
  list_obligations: listObligations,
  get_inbox: getInbox,
  get_ledger_head: getLedgerHead,
  get_usage: getUsage,
  get_overview: getOverview,
  list_activity: listActivity,
  list_waits: listWaits,
  get_history: getHistory,
  get_operation: ({ engine, bulk }, query) =>
    answerFrom(engine, query, () => {
      const operation = bulk.find(query.tenant, query.operationId);
      if (operation === null) throw new Refused(unknownOperation);
      return { type: "operation", operation };
    }),
};

const unknownOperation = errorAnswer(
  "operation_unknown",
  "There is no such operation here: the server has restarted since, or it ended over an hour ago. What it had done is done; send it again for the rest.",
);

/** Operators see what concerns any tenant. */
function tenantOf({ actor, tenant }: Reader): string | null {
  return actor.role === "operator" ? null : tenant;
}

function inTenant<K extends ListedKind>(kind: K, reader: Reader) {
  return {
    reader,
    items: (state: State) => recordsOf(state, reader.tenant, kind),
    find: (state: State, key: string) => findRecord(state, reader.tenant, kind, key),
  };
}

/** That there is such an agent is for all of the tenant. */
function getAgent({ engine }: Service, query: QueryOf<"get_agent">): Promise<QueryResult> {
  return answerFrom(engine, query, (state) => {
    const agent = findRecord(state, query.tenant, "agent", query.agentId);
    if (agent !== undefined) return { type: "agent", agent, created: false };
    return refuse("agent_unknown", "There is no such agent; register it first.", { field: "agent_id" });
  });
}

/** Each cell with what it hosts, and how much of that is in use. */
function listCells({ engine, cells: connections }: Service, query: QueryOf<"list_cells">): Promise<QueryResult> {
  const { tenant } = query;
  let hosted: ReturnType<typeof resourcesByCell> = new Map();
  return listPage(engine, query, {
    reader: query,
    name: "cells",
    items: (state) => {
      hosted = resourcesByCell(state, tenant);
      return recordsOf(state, tenant, "cell");
    },
    keyOf: ({ id }) => id,
    reply: (cells, nextCursor) => ({
      type: "cell_page",
      cells: cells.map((cell) => {
        const isConnected = connections.isConnected(tenant, cell.id);
        return { cell, isConnected, resources: hosted.get(cell.id) ?? [] };
      }),
      nextCursor,
    }),
  });
}

/** Its context may have to be read first, and the agent may save another one meanwhile. */
async function getDigest(service: Service, query: QueryOf<"get_digest">): Promise<QueryResult> {
  const { engine } = service;
  const result = await answerFrom(engine, query, (state) => {
    const digest = findDigest(state, query, query.agentId);
    return "code" in digest ? digest : { type: "digest", digest };
  });
  if (result.reply.type !== "digest" || !isAway(result.reply.digest)) return result;
  await engine.payloads.bringDigest(query.tenant, query.agentId);
  return getDigest(service, query);
}
