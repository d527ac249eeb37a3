/** What those who watch a fleet ask: how many do what, and what each agent does, holds and asks for. */
import type { Engine } from "../../engine/engine.ts";
import { activities } from "../../kernel/contract/activities.ts";
import type { Agent, Millis } from "../../kernel/contract/records.ts";
import type { State } from "../../kernel/kernel.ts";
import {
  type AgentActivity,
  activitiesOf,
  activityOfAgent,
  countRecords,
  isOpen,
  openObligations,
  recordsOf,
  workersOf,
} from "../../kernel/views.ts";
import type { OverviewAnswer, QueryOf } from "../../protocol/answers/queries.ts";
import { resourceState } from "../../protocol/operating/record-json.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { liveTaskStatuses, waitStates, workerActivities } from "../../protocol/watching/fleet-shapes.ts";
import type { Service } from "../service.ts";
import { textBytes } from "./paging.ts";
import { listPage, type QueryResult, read, scan } from "./scan.ts";

/** How long the figures are good, for all who ask: each count reads every record of the tenant. */
const countedForMs = 1_000;
/** A worker without a task that has not been seen for this long is lost; when it was seen is kept to half a minute. */
const workerLostMs = 120_000;

interface Counted {
  readonly begunAt: number;
  readonly answer: Promise<OverviewAnswer>;
}

const countedOf = new WeakMap<Engine, Map<string, Counted>>();

export async function getOverview({ engine }: Service, query: QueryOf<"get_overview">): Promise<QueryResult> {
  const { found: refusal, now } = await read(engine, query, () => null);
  if (refusal !== null) return { reply: refusal, now };
  return { reply: await counted(engine, query.tenant), now };
}

function counted(engine: Engine, tenant: string): Promise<OverviewAnswer> {
  const known = countedOf.get(engine) ?? new Map<string, Counted>();
  countedOf.set(engine, known);
  const begunAt = performance.now();
  for (const [name, one] of known) if (begunAt - one.begunAt >= countedForMs) known.delete(name);
  const fresh = known.get(tenant);
  if (fresh !== undefined) return fresh.answer;
  const answer = count(engine, tenant);
  known.set(tenant, { begunAt, answer });
  answer.catch(() => known.delete(tenant));
  return answer;
}

type Tally = Record<string, Record<string, number>>;

const zeros = (names: readonly string[]): Record<string, number> => Object.fromEntries(names.map((name) => [name, 0]));

async function count(engine: Engine, tenant: string): Promise<OverviewAnswer> {
  let at: Millis = 0;
  let sequence = 0;
  let leases = 0;
  let tally: Tally = {};
  await scan<readonly [subject: string, name: string]>(
    engine,
    (state) => {
      at = engine.now();
      sequence = engine.sequence;
      leases = countRecords(state, "lease", tenant);
      tally = {
        agents: zeros(activities),
        workers: zeros(workerActivities),
        requests: zeros(waitStates),
        tasks: zeros(liveTaskStatuses),
        obligations: zeros(["OPEN", "OVERDUE"]),
        resources: zeros(["READY", "FENCED", "WITHDRAWN"]),
        cells: zeros(["READY", "GONE"]),
      };
      return counts(state, tenant, at);
    },
    ([subject, name]) => {
      const names = tally[subject];
      if (names?.[name] !== undefined) names[name]++;
    },
  );
  const { agents = {}, workers = {}, ...others } = tally;
  return { type: "overview", at, sequence, counts: { agents, workers, leases, ...others } };
}

function* counts(state: State, tenant: string, now: Millis): Generator<readonly [subject: string, name: string]> {
  for (const { activity } of activitiesOf(state, tenant, now)) yield ["agents", activity];
  for (const { worker, leases } of workersOf(state, tenant))
    yield ["workers", leases > 0 ? "working" : now - worker.seenAt > workerLostMs ? "lost" : "idle"];
  for (const request of recordsOf(state, tenant, "request")) yield ["requests", isOpen(request) ? request.state : ""];
  for (const { status } of recordsOf(state, tenant, "task")) yield ["tasks", status];
  for (const { obligation } of openObligations(state, tenant, null)) yield ["obligations", obligation.state];
  for (const resource of recordsOf(state, tenant, "resource")) yield ["resources", resourceState(resource)];
  for (const cell of recordsOf(state, tenant, "cell")) yield ["cells", cell.state];
}

/** This many are described between two turns of the loop. */
const describedAtOnce = 64;

export async function listActivity({ engine }: Service, query: QueryOf<"list_activity">): Promise<QueryResult> {
  const { tenant, agentId, activity } = query;
  const search = query.search?.toLowerCase() ?? null;
  const { reply } = await listPage(engine, query, {
    reader: query,
    name: "activity",
    items: (state) =>
      agentId === null ? activitiesOf(state, tenant, engine.now()) : one(engine, state, tenant, agentId),
    find: (state, key) => activityOfAgent(state, tenant, key, engine.now(), 0) ?? undefined,
    keyOf: ({ agent }) => agent.id,
    isWanted: (found) =>
      (activity === null || found.activity === activity) && (search === null || isFound(found.agent, search)),
    bytesOf: ({ agent }) => textBytes(agent),
    reply: async (found, nextCursor) => {
      const agents: AgentActivity[] = [];
      for (let done = 0; done < found.length; done += describedAtOnce) {
        const some = found.slice(done, done + describedAtOnce);
        const described = await engine.ask((state, now) =>
          some.flatMap(({ agent }) => activityOfAgent(state, tenant, agent.id, now, limits.leasesListedMax) ?? []),
        );
        for (const each of described) agents.push(each);
      }
      return { type: "activity_page", agents, nextCursor };
    },
  });
  return { reply, now: engine.now() };
}

function one(engine: Engine, state: State, tenant: string, agentId: string): readonly AgentActivity[] {
  const found = activityOfAgent(state, tenant, agentId, engine.now(), 0);
  return found === null ? [] : [found];
}

function isFound({ id, labels }: Agent, search: string): boolean {
  if (id.toLowerCase().includes(search)) return true;
  return Object.entries(labels).some(([name, value]) => `${name}=${value}`.toLowerCase().includes(search));
}
