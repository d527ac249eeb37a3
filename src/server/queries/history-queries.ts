/**
 * What was held and who waited at a moment, in four steps, each of which a page may end in: live leases, ended ones, open
 * requests, and those that ended since. Live ones come before ended ones, so what ends meanwhile may be seen twice, and
 * is never missed.
 */
import { readLease } from "../../engine/codec/record-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { firstLeaseIdAt } from "../../kernel/contract/ids.ts";
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import { findRecord, isOpen, leasesFor, namesOverlap, parseResourceName, recordsOf } from "../../kernel/views.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import type { HistoryPage, HistoryWait, QueryOf, QueryReply } from "../../protocol/answers/queries.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { Refused } from "../answering/faults.ts";
import type { Service } from "../service.ts";
import { eventsReachBackTo, findEndedWaits, type HistoryFilter, isAskedFor, waitOf } from "./history-waits.ts";
import { cursorFor, readCursor, textBytes } from "./paging.ts";
import { isRefusal, listPage, type QueryResult, read } from "./scan.ts";

/** Ended leases that are looked at for one page. */
const endedScannedMax = 10_000;
const endedPortion = 250;

const steps = ["live", "ended", "open", "events"] as const;
type Step = (typeof steps)[number];

/** Where a step goes on; null: at its beginning, or, once it is done, nowhere. */
type Position = string | null;

interface Found extends Pick<HistoryPage, "leases" | "waits"> {
  readonly next: Position;
}

export async function getHistory(service: Service, query: QueryOf<"get_history">): Promise<QueryResult> {
  const { engine } = service;
  const { at, limit } = query;
  const resource = query.resource === null ? null : parseResourceName(query.resource);
  if (resource !== null && "problem" in resource) {
    throw new Refused(errorAnswer("invalid_resource", resource.problem, { field: "resource" }));
  }
  const filter: HistoryFilter = { at, resource, agentId: query.agentId };
  const { found: refusal, now } = await read(engine, query, () => null);
  if (refusal !== null) return { reply: refusal, now };
  if (at > now) throw new Refused(errorAnswer("invalid_request", "at lies in the future.", { field: "at" }));
  const list = `history@${at}`;
  let [step, position] = readPosition(readCursor(list, query.cursor));
  const leases: Lease[] = [];
  const waits: HistoryWait[] = [];
  let bytes = 0;
  const reply = async (next: string | null): Promise<QueryResult> => {
    const nextCursor = next === null ? null : cursorFor(list, next);
    const complete = await isKept(engine, query.tenant, at);
    return { reply: { type: "history_page", at, complete, leases, waits, nextCursor }, now };
  };
  for (;;) {
    const room = limit - leases.length - waits.length;
    if (room === 0) return reply(`${step} ${position ?? ""}`);
    const found = await take[step](service, query, filter, room, position);
    if ("type" in found) return { reply: found, now };
    for (const lease of found.leases) leases.push(lease);
    for (const wait of found.waits) waits.push(wait);
    bytes += textBytes(found.leases) + textBytes(found.waits);
    if (found.next !== null) return reply(`${step} ${found.next}`);
    const following = steps[steps.indexOf(step) + 1];
    if (following === undefined) return reply(null);
    // Each step ends at a page's bytes by itself.
    if (bytes > limits.pageBytesMax / 2) return reply(`${following} `);
    [step, position] = [following, null];
  }
}

const none: readonly never[] = [];

/** Asked after the page is read: what was pruned meanwhile counts too. */
async function isKept(engine: Engine, tenant: string, at: Millis): Promise<boolean> {
  return (await engine.store.earliestEnded()) <= at && (await eventsReachBackTo(engine, tenant, at));
}

function readPosition(key: string | null): [Step, Position] {
  const [name = "", position = ""] = key?.split(" ", 2) ?? [];
  const step = steps.find((one) => one === name) ?? steps[0];
  return [step, position === "" ? null : position];
}

type Take = (
  service: Service,
  query: QueryOf<"get_history">,
  filter: HistoryFilter,
  room: number,
  position: Position,
) => Promise<Found | QueryReply>;

const take: Readonly<Record<Step, Take>> = {
  live: async ({ engine }, query, filter, limit, cursor) => {
    const { tenant } = query;
    const { reply } = await listPage(
      engine,
      { ...query, limit, cursor },
      {
        reader: query,
        name: "history-leases",
        items: (state) => leasesFor(state, tenant, filter),
        find: (state, key) => findRecord(state, tenant, "lease", key),
        keyOf: ({ id }) => id,
        isWanted: (lease) => isHeldThen(lease, filter),
        bytesOf: textBytes,
        reply: (leases, nextCursor) => pageOf(query.at, { leases, waits: none, nextCursor }),
      },
    );
    return foundIn(reply);
  },

  /** The youngest first; those that were asked for later are passed over by their ids. */
  ended: async ({ engine }, { tenant, at }, filter, room, position) => {
    const leases: Lease[] = [];
    let bytes = 0;
    let before = position ?? firstLeaseIdAt(at + 1);
    for (let scanned = 0; scanned < endedScannedMax; scanned += endedPortion) {
      const rows = await engine.store.endedPage({ tenant, limit: endedPortion, before });
      for (const { id, endedAt, body } of rows) {
        before = id;
        if (endedAt <= at) continue;
        const lease = readLease(body);
        if (!isHeldThen(lease, filter)) continue;
        bytes += body.length;
        if (leases.push(lease) === room || bytes > limits.pageBytesMax) return { leases, waits: none, next: before };
      }
      if (rows.length < endedPortion) return { leases, waits: none, next: null };
    }
    return { leases, waits: none, next: before };
  },

  open: async ({ engine }, query, filter, limit, cursor) => {
    const { reply } = await listPage(
      engine,
      { ...query, limit, cursor },
      {
        reader: query,
        name: "history-requests",
        items: (state) => recordsOf(state, query.tenant, "request"),
        keyOf: ({ arrival }) => String(arrival).padStart(16, "0"),
        isWanted: (request) => isOpen(request) && request.submittedAt <= query.at && isAskedFor(request, filter),
        // Names are shown twice: as intents, and as resources.
        bytesOf: (request) => 2 * textBytes(request),
        reply: (requests, nextCursor) => pageOf(query.at, { leases: none, waits: requests.map(waitOf), nextCursor }),
      },
    );
    return foundIn(reply);
  },

  events: async (service, { tenant }, filter, room, position) => {
    const { waits, next } = await findEndedWaits(service, { tenant, filter, room, position });
    return { leases: none, waits, next };
  },
};

/** Of one that had not ended by then. Its record is as of now. */
function isHeldThen({ agentId, resource, acquiredAt }: Lease, filter: HistoryFilter): boolean {
  if (acquiredAt > filter.at) return false;
  if (filter.agentId !== null && agentId !== filter.agentId) return false;
  if (filter.resource === null) return true;
  const name = parseResourceName(resource);
  return !("problem" in name) && namesOverlap(filter.resource, name);
}

function pageOf(at: number, found: Pick<HistoryPage, "leases" | "waits" | "nextCursor">): HistoryPage {
  return { type: "history_page", at, complete: true, ...found };
}

function foundIn(reply: QueryReply): Found | QueryReply {
  if (isRefusal(reply) || reply.type !== "history_page") return reply;
  return { leases: reply.leases, waits: reply.waits, next: reply.nextCursor };
}
