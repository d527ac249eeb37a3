/** Live leases and waiting requests. */
import { leaseStates } from "../../protocol/schema/vocabulary.ts";
import type { OpenRequest } from "../../sdk/wire.ts";
import type { Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { blockedWords, leaseColumns, leaseColumnsLong, longFlag } from "../lease-words.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import type { Column } from "../table.ts";

export const waiterColumns: readonly Column<OpenRequest>[] = [
  {
    title: "WANTS",
    cell: ({ intents }) => intents.map(({ predicate, resource }) => `${predicate} ${resource}`).join(", "),
    gives: "end",
    last: true,
  },
  { title: "AGENT", cell: ({ agent_id: agent }) => agent, gives: "end" },
  // A request that stands by has no place: it is asked again for it when its turn may have come (W14).
  { title: "PLACE", cell: ({ position }) => (position === undefined ? "by" : String(position)) },
  { title: "LEFT", cell: ({ times_out_in_ms: left }) => showDuration(left) },
  { title: "BEHIND", cell: ({ blocked_by: by, blocked_by_total: total }) => blockedWords(by, total), gives: "end" },
];
const waiterColumnsLong: readonly Column<OpenRequest>[] = [
  ...waiterColumns,
  { title: "REQUEST", cell: ({ request_id: id }) => id },
];

const lsCommand: Command = {
  name: "ls",
  summary: "lists leases, and requests that wait",
  usage: "[RES] [--agent ID] [--state STATE] [--waiters|--leases] [-l]",
  about: "RES finds what overlaps with it: `ls src/` shows all leases in that folder, and on folders above it.",
  flags: {
    agent: { sign: "ID", words: "only of this agent" },
    state: { sign: "STATE", words: `only leases in this state: ${leaseStates.join(", ")}`, choices: leaseStates },
    long: longFlag,
    leases: { words: "only leases" },
    waiters: { words: "only requests that wait" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold ls", "everything that is live"],
    ["leasehold ls src/", "who is in this folder?"],
    ["leasehold ls --agent refactorer-7 --json", "for a script"],
    ["leasehold ls --state REVOKED --limit 20", "the last that were revoked"],
  ],
  run: async (call) => {
    const { out } = call;
    const resource = call.word === "" ? null : call.resource(call.word);
    const agent = call.text("agent");
    const state = call.choice("state", leaseStates);
    const limit = limitOf(call);
    const onlyLeases = call.isSet("leases") || state !== null;
    const onlyWaiters = call.isSet("waiters") && !onlyLeases;
    const nothing = { items: [], hasMore: false };
    const leases = onlyWaiters
      ? nothing
      : await listAll("leases", limit, (page) =>
          call.ask("list_leases", { ...page, resource, agent_id: agent, state }),
        );
    const all = onlyLeases
      ? nothing
      : await listAll("requests", limit, (page) => call.ask("list_requests", { ...page, agent_id: agent }));
    const waiters = { ...all, items: resource === null ? all.items : all.items.filter((one) => wants(one, resource)) };
    const isLong = call.isSet("long") || !out.isTerminal;
    const hasMore = leases.hasMore || waiters.hasMore;
    // A pipe gets no rows then, which could mean anything.
    if (!out.isTerminal && !out.isJson && leases.items.length + waiters.items.length === 0) {
      out.note(`nothing is leased${resource === null ? "" : ` at ${resource}`}, and no request waits`);
    }
    out.show({ leases: leases.items, waiters: waiters.items, has_more: hasMore }, () => {
      const held = onlyWaiters
        ? ""
        : out.table(leases.items, isLong ? leaseColumnsLong : leaseColumns, "Nothing is leased.");
      const waiting =
        waiters.items.length === 0 && !onlyWaiters
          ? ""
          : out.table(waiters.items, isLong ? waiterColumnsLong : waiterColumns, "No request waits.");
      const between = held !== "" && waiting !== "" && out.isTerminal ? "\n" : "";
      const more = out.isTerminal && hasMore ? moreLine : "";
      return `${held}${between}${waiting}${more}`;
    });
  },
};

/** The server has no such filter: requests at the name or below it, or with a pattern over it, judged by the names. */
function wants({ intents }: OpenRequest, resource: string): boolean {
  const base = (name: string) => name.replace(/\/?[^/]*[*?].*$/, "");
  const wanted = base(resource);
  return intents.some(({ resource: name }) => base(name).startsWith(wanted) || wanted.startsWith(base(name)));
}

export const commands: readonly Command[] = [lsCommand];
