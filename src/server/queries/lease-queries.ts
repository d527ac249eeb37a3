/** Questions about leases: the live ones from the kernel, the ended ones from the store's history (L16). */
import { readLease } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { endedLeases } from "../../engine/history.ts";
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import { refuse } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";
import {
  findTenantFor,
  type LeaseEntry,
  namesOverlap,
  parseResourceName,
  type ResourceName,
} from "../../kernel/views.ts";
import type { QueryOf, QueryReply } from "../../protocol/answers/queries.ts";
import { findLeases } from "./lease-search.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { isRefusal, scan } from "./scan.ts";

export interface QueryResult {
  readonly reply: QueryReply;
  readonly now: Millis;
}

/** Ended leases that are looked at for one page; where few match, a page may be short, and says how to go on. */
const endedScannedMax = 10_000;
const endedPortion = 1_000;

export async function getLease(engine: Engine, query: QueryOf<"get_lease">): Promise<QueryResult> {
  const { tenant, leaseId } = query;
  const { found, now } = await engine.ask((state, at) => {
    const readable = findTenantFor(state, query);
    return { found: "code" in readable ? readable : (readable.leases.get(leaseId)?.record ?? null), now: at };
  });
  if (found !== null) return { reply: isRefusal(found) ? found : { type: "lease", lease: found }, now };
  const [lease] = await endedLeases(engine.store, tenant, [leaseId]);
  if (lease !== undefined) return { reply: { type: "lease", lease }, now };
  return { reply: refuse("lease_unknown", "There is no such lease.", { leaseId }), now };
}

interface LeaseFilter {
  readonly resource: ResourceName | null;
  readonly agentId: string | null;
  readonly state: Lease["state"] | null;
}

export async function listLeases(engine: Engine, query: QueryOf<"list_leases">): Promise<QueryResult> {
  const { agentId, state } = query;
  const resource = query.resource === null ? null : parseResourceName(query.resource);
  if (resource !== null && "problem" in resource) {
    return { reply: refuse("invalid_resource", resource.problem, { field: "resource" }), now: engine.now() };
  }
  const filter: LeaseFilter = { resource, agentId, state };
  return isEnded(state) ? listEnded(engine, query, filter) : listLive(engine, query, filter);
}

async function listLive(engine: Engine, query: QueryOf<"list_leases">, filter: LeaseFilter): Promise<QueryResult> {
  const after = readCursor("leases", query.cursor);
  let page = new PageBuilder<Lease>(query.limit, after);
  const begin = (state: State) => {
    page = new PageBuilder<Lease>(query.limit, after);
    const tenant = findTenantFor(state, query);
    return "code" in tenant ? tenant : findLeases(tenant, filter);
  };
  const { refusal, now } = await scan<LeaseEntry>(engine, begin, ({ record, alive }) => {
    if (alive && matches(record, filter)) page.offer(record.id, record);
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  return { reply: pageOf(items, lastKey === null ? null : cursorFor("leases", lastKey)), now };
}

/** The youngest first, which is how history has them. */
async function listEnded(engine: Engine, query: QueryOf<"list_leases">, filter: LeaseFilter): Promise<QueryResult> {
  const { tenant, limit } = query;
  const { refusal, now } = await engine.ask((state, at) => {
    const readable = findTenantFor(state, query);
    return { refusal: "code" in readable ? readable : null, now: at };
  });
  if (refusal !== null) return { reply: refusal, now };
  const leases: Lease[] = [];
  let before = readCursor("ended", query.cursor);
  for (let scanned = 0; scanned < endedScannedMax; scanned += endedPortion) {
    const rows = await engine.store.endedPage({ tenant, limit: endedPortion, ...(before !== null && { before }) });
    for (const { id, body } of rows) {
      const lease = readLease(body);
      before = id;
      if (matches(lease, filter) && leases.push(lease) === limit) {
        return { reply: pageOf(leases, cursorFor("ended", before)), now };
      }
    }
    if (rows.length < endedPortion) return { reply: pageOf(leases, null), now };
  }
  return { reply: pageOf(leases, before === null ? null : cursorFor("ended", before)), now };
}

function pageOf(leases: readonly Lease[], nextCursor: string | null): QueryReply {
  return { type: "lease_page", leases, nextCursor };
}

function matches(lease: Lease, { resource, agentId, state }: LeaseFilter): boolean {
  if (state !== null && lease.state !== state) return false;
  if (agentId !== null && lease.agentId !== agentId) return false;
  if (resource === null) return true;
  const name = parseResourceName(lease.resource);
  return !("problem" in name) && namesOverlap(resource, name);
}

function isEnded(state: Lease["state"] | null): boolean {
  return state === "RELEASED" || state === "EXPIRED" || state === "REVOKED";
}
