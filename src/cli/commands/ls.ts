/** Live leases and waiting requests. */
import { eventTypes, leaseStates } from "../../protocol/schema/vocabulary.ts";
import type { LeaseholdEvent } from "../../sdk/events.ts";
import type { Lease, LeaseState } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { leaseColumns, leaseColumnsLong, longFlag } from "../lease-words.ts";
import { type ListedSince, limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { type Waiter, waiterColumns, waiterKey, waiterLater, wants } from "../waiters.ts";
import { type Effect, type Part, PartState, type WatchedList } from "../watch/part.ts";
import { watchFlag, watchLists } from "../watch/watch.ts";

const lsCommand: Command = {
  name: "ls",
  summary: "lists leases, and who waits",
  usage: "[RES] [--agent ID] [--state STATE] [--waiters|--leases] [-l] [--watch]",
  about: `RES finds what overlaps with it: \`ls src/\` shows all leases in that folder, and on folders above it. Waiters are
requests in line (with their place), requests that stand by, and agents that got DIE and are to come back.`,
  flags: {
    agent: { sign: "ID", names: "agent", words: "only of this agent" },
    state: { sign: "STATE", words: `only leases in this state: ${leaseStates.join(", ")}`, choices: leaseStates },
    long: longFlag,
    leases: { words: "only leases" },
    waiters: { words: "only who waits" },
    watch: watchFlag,
    limit: limitFlag,
  },
  examples: [
    ["leasehold ls", "everything that is live"],
    ["leasehold ls src/", "who is in this folder?"],
    ["leasehold ls --watch", "and what becomes of it"],
    ["leasehold ls --agent refactorer-7 --json", "for a script"],
    ["leasehold ls --state REVOKED --limit 20", "the last that were revoked"],
  ],
  run: async (call) => {
    const listing = listingOf(call);
    if (call.isSet("watch")) {
      const filter = { resource: listing.resource ?? undefined, agentId: listing.agent ?? undefined };
      return watchLists(call, { lists: listsOf(call, listing), filter });
    }
    await show(call, listing);
  },
};

interface Listing {
  readonly resource: string | null;
  readonly agent: string | null;
  readonly state: LeaseState | null;
  readonly limit: number;
  readonly hasLeases: boolean;
  readonly hasWaiters: boolean;
}

function listingOf(call: Call): Listing {
  const state = call.choice("state", leaseStates);
  const onlyLeases = call.isSet("leases") || state !== null;
  return {
    resource: call.word === "" ? null : call.resource(call.word),
    agent: call.text("agent"),
    state,
    limit: limitOf(call),
    hasLeases: onlyLeases || !call.isSet("waiters"),
    hasWaiters: !onlyLeases,
  };
}

function readLeases(call: Call, { resource, agent, state, limit }: Listing): Promise<ListedSince<Lease>> {
  return listAll("leases", limit, (page) => call.ask("list_leases", { ...page, resource, agent_id: agent, state }));
}

async function readWaiters(call: Call, { resource, agent, limit }: Listing): Promise<ListedSince<Waiter>> {
  const [requests, returning] = await Promise.all([
    listAll("requests", limit, (page) => call.ask("list_requests", { ...page, agent_id: agent })),
    listAll("waits", limit, (page) => call.ask("list_waits", { ...page, resource, agent_id: agent, waiter: "agent" })),
  ]);
  const open = resource === null ? requests.items : requests.items.filter((one) => wants(one, resource));
  const { sequence } = requests;
  return {
    items: [
      ...open.map((request) => ({ kind: "request" as const, request })),
      ...returning.items.map((wait) => ({ kind: "agent" as const, wait })),
    ],
    hasMore: requests.hasMore || returning.hasMore,
    sequence: sequence === null || returning.sequence === null ? null : Math.min(sequence, returning.sequence),
  };
}

async function show(call: Call, listing: Listing): Promise<void> {
  const { out } = call;
  const { resource, hasLeases, hasWaiters } = listing;
  const leases = hasLeases ? await readLeases(call, listing) : { items: [], hasMore: false };
  const waiters = hasWaiters ? await readWaiters(call, listing) : { items: [], hasMore: false };
  const isLong = call.isSet("long") || !out.isTerminal;
  const hasMore = leases.hasMore || waiters.hasMore;
  // A pipe gets no rows then, which could mean anything.
  if (!out.isTerminal && !out.isJson && leases.items.length + waiters.items.length === 0) {
    out.note(`nothing is leased${resource === null ? "" : ` at ${resource}`}, and nobody waits`);
  }
  const requests = waiters.items.flatMap((one) => (one.kind === "request" ? [one.request] : []));
  const returning = waiters.items.flatMap((one) => (one.kind === "agent" ? [one.wait] : []));
  out.show({ leases: leases.items, waiters: requests, returning, has_more: hasMore }, () => {
    const held = hasLeases
      ? out.table(leases.items, isLong ? leaseColumnsLong : leaseColumns, "Nothing is leased.")
      : "";
    const waiting =
      waiters.items.length === 0 && hasLeases ? "" : out.table(waiters.items, waiterColumns(isLong), "Nobody waits.");
    const between = held !== "" && waiting !== "" && out.isTerminal ? "\n" : "";
    const more = out.isTerminal && hasMore ? moreLine : "";
    return `${held}${between}${waiting}${more}`;
  });
}

const ofKinds = (...kinds: readonly string[]) => eventTypes.filter((type) => kinds.includes(type.split(".")[0] ?? ""));
const ended: readonly LeaseState[] = ["RELEASED", "EXPIRED", "REVOKED"];

function listsOf(call: Call, listing: Listing): readonly WatchedList[] {
  const isLong = call.isSet("long") || !call.out.isTerminal;
  const { hasLeases, hasWaiters, agent, state } = listing;
  const leases: Part<Lease> = {
    command: "ls",
    name: "lease",
    columns: isLong ? leaseColumnsLong : leaseColumns,
    none: "Nothing is leased.",
    count: (length) => `${length} ${length === 1 ? "lease" : "leases"}`,
    keyOf: ({ id }) => id,
    read: () => readLeases(call, listing),
    // Leases of tasks have no events of their own (T10).
    types: ofKinds("lease", "task"),
    effectOf: ({ lease }) => {
      if (lease === undefined) return { isStale: true };
      const isListed =
        (state === null ? !ended.includes(lease.state) : lease.state === state) &&
        (agent === null || lease.agent_id === agent);
      return isListed ? { put: [lease] } : { gone: [lease.id] };
    },
    later: (lease, agoMs) => ({ ...lease, expires_in_ms: Math.max(0, lease.expires_in_ms - agoMs) }),
    json: (lease) => ({ lease }),
  };
  const waiters: Part<Waiter> = {
    command: "ls --waiters",
    name: "waiter",
    columns: waiterColumns(isLong),
    none: hasLeases ? "" : "Nobody waits.",
    count: (length) => `${length} waiting`,
    keyOf: waiterKey,
    read: () => readWaiters(call, listing),
    types: ofKinds("request", "lease", "agent"),
    effectOf: waiterEffect,
    later: waiterLater,
    json: (waiter) => (waiter.kind === "request" ? { waiter: waiter.request } : { returning: waiter.wait }),
  };
  return [...(hasLeases ? [new PartState(leases)] : []), ...(hasWaiters ? [new PartState(waiters)] : [])];
}

/** Events say who no longer waits; places and who is in the way have to be read. */
function waiterEffect(event: LeaseholdEvent, known: ReadonlyMap<string, Waiter>): Effect<Waiter> {
  const [kind] = event.type.split(".");
  // Ends of leases move those behind them, and nobody else.
  if (kind === "lease") return { isStale: known.size > 0 };
  if (kind === "agent") return { isStale: event.type !== "agent.registered" };
  const { request_id: id } = (event["request"] ?? event) as { readonly request_id?: string };
  const isOver = !["request.waiting", "request.standing_by"].includes(event.type);
  return { isStale: true, ...(isOver && id !== undefined && { gone: [id] }) };
}

export const commands: readonly Command[] = [lsCommand];
