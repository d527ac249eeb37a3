/**
 * Questions about leases, the live ones from the kernel, the ended ones from the store's history (L16); and about requests
 * that are not decided yet: who waits, and for whom.
 */
import { readLease } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { endedLeases } from "../../engine/history.ts";
import type { Lease, Request } from "../../kernel/contract/records.ts";
import { refuse } from "../../kernel/contract/refusals.ts";
import {
  describeOpen,
  findRecord,
  isOpen,
  leasesFor,
  namesOverlap,
  type OpenRequest,
  parseResourceName,
  type ResourceName,
  recordsOf,
} from "../../kernel/views.ts";
import type { QueryOf, QueryReply } from "../../protocol/answers/queries.ts";
import { limits } from "../../protocol/schema/limits.ts";
import type { Service } from "../service.ts";
import { cursorFor, readCursor, textBytes } from "./paging.ts";
import { answerFromStore, isRefusal, listPage, type QueryResult, read } from "./scan.ts";

/** Ended leases that are looked at for one page; where few match, a page may be short, and says how to go on. */
const endedScannedMax = 10_000;
const endedPortion = 250;

export async function getLease({ engine }: Service, query: QueryOf<"get_lease">): Promise<QueryResult> {
  const { tenant, leaseId } = query;
  const { found, now } = await read(engine, query, (state) => findRecord(state, tenant, "lease", leaseId));
  if (found !== undefined && isRefusal(found)) return { reply: found, now };
  const lease = found ?? (await endedLeases(engine.store, tenant, [leaseId]))[0];
  if (lease !== undefined) return { reply: { type: "lease", lease }, now };
  return { reply: refuse("lease_unknown", "There is no such lease.", { leaseId }), now };
}

interface LeaseFilter {
  readonly resource: ResourceName | null;
  readonly agentId: string | null;
  readonly state: Lease["state"] | null;
}

export async function listLeases({ engine }: Service, query: QueryOf<"list_leases">): Promise<QueryResult> {
  const { tenant, agentId, state } = query;
  const resource = query.resource === null ? null : parseResourceName(query.resource);
  if (resource !== null && "problem" in resource) {
    return { reply: refuse("invalid_resource", resource.problem, { field: "resource" }), now: engine.now() };
  }
  const filter: LeaseFilter = { resource, agentId, state };
  if (isEnded(state)) return answerFromStore(engine, query, () => listEnded(engine, query, filter));
  return listPage(engine, query, {
    reader: query,
    name: "leases",
    items: (live) => leasesFor(live, tenant, filter),
    find: (live, key) => findRecord(live, tenant, "lease", key),
    keyOf: ({ id }) => id,
    isWanted: (lease) => matches(lease, filter),
    bytesOf: textBytes,
    reply: pageOf,
  });
}

/** The youngest first, which is how history has them. */
async function listEnded(engine: Engine, query: QueryOf<"list_leases">, filter: LeaseFilter): Promise<QueryReply> {
  const { tenant, limit } = query;
  const leases: Lease[] = [];
  let bytes = 0;
  let before = readCursor("ended", query.cursor);
  for (let scanned = 0; scanned < endedScannedMax; scanned += endedPortion) {
    const rows = await engine.store.endedPage({ tenant, limit: endedPortion, ...(before !== null && { before }) });
    for (const { id, body } of rows) {
      const lease = readLease(body);
      before = id;
      if (!matches(lease, filter)) continue;
      bytes += body.length;
      if (leases.push(lease) === limit || bytes > limits.pageBytesMax)
        return pageOf(leases, cursorFor("ended", before));
    }
    if (rows.length < endedPortion) return pageOf(leases, null);
  }
  return pageOf(leases, before === null ? null : cursorFor("ended", before));
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

/** This many are described between two turns of the loop; each may have thousands of others in its way. */
const describedAtOnce = 16;

export async function listRequests({ engine }: Service, query: QueryOf<"list_requests">): Promise<QueryResult> {
  const { tenant, agentId } = query;
  const { reply } = await listPage(engine, query, {
    reader: query,
    name: "requests",
    items: (state) => recordsOf(state, tenant, "request"),
    // In order of arrival, which as text takes leading zeros.
    keyOf: ({ arrival }) => String(arrival).padStart(16, "0"),
    isWanted: (request) => isOpen(request) && (agentId === null || request.agentId === agentId),
    bytesOf: textBytes,
    reply: async (found, nextCursor) => {
      const requests: OpenRequest[] = [];
      for (let done = 0; done < found.length; done += describedAtOnce) {
        for (const one of await describe(engine, tenant, found.slice(done, done + describedAtOnce))) requests.push(one);
      }
      return { type: "request_page", requests, nextCursor };
    },
  });
  return { reply, now: engine.now() };
}

/** Those that were decided since they were found are left out: a granted one may only be asked for by its agent (W8). */
function describe(engine: Engine, tenant: string, requests: readonly Request[]): Promise<OpenRequest[]> {
  return engine.ask((state) => requests.flatMap(({ id }) => describeOpen(state, tenant, id) ?? []));
}
