/** Who holds what, and who waits. */

import { leaseStates } from "../../protocol/schema/vocabulary.ts";
import type { OpenRequest } from "../../sdk/wire.ts";
import type { Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { exitCodes } from "../exit-codes.ts";
import { blockedWords, leaseColumns } from "../lease-words.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import type { Column } from "../table.ts";

export const waiterColumns: readonly Column<OpenRequest>[] = [
  { title: "REQUEST", cell: ({ request_id: id }) => id },
  { title: "AGENT", cell: ({ agent_id: agent }) => agent, gives: "end" },
  {
    title: "WANTS",
    cell: ({ intents }) => intents.map(({ predicate, resource }) => `${predicate} ${resource}`).join(", "),
    gives: "end",
  },
  { title: "PLACE", cell: ({ position }) => String(position) },
  { title: "LEFT", cell: ({ times_out_in_ms: left }) => showDuration(left) },
  { title: "BEHIND", cell: ({ blocked_by: by, blocked_by_total: total }) => blockedWords(by, total), gives: "end" },
];

export const lsCommand: Command = {
  name: "ls",
  summary: "lists leases, and requests that wait",
  usage: "[RES] [--agent ID] [--state STATE] [--waiters|--leases]",
  words: [0, 1],
  about: "RES finds whatever overlaps with it: `ls src/` shows all that is leased in that folder, and above it.",
  flags: {
    agent: { sign: "ID", words: "only of this agent" },
    state: { sign: "STATE", words: `only leases in this state: ${leaseStates.join(", ")}` },
    leases: { words: "only leases" },
    waiters: { words: "only requests that wait" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold ls", "everything that is alive"],
    ["leasehold ls src/", "who is in this folder?"],
    ["leasehold ls --agent refactorer-7 --json", "for a script"],
    ["leasehold ls --state REVOKED --limit 20", "the last that were taken away"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const resource = words[0] === undefined ? null : call.resource(words[0]);
    const agent = call.text("agent");
    const state = call.choice("state", leaseStates);
    const limit = limitOf(call);
    const client = await call.connect();
    const onlyLeases = call.isSet("leases") || state !== null;
    const onlyWaiters = call.isSet("waiters") && !onlyLeases;
    const nothing = { items: [], hasMore: false };
    const leases = onlyWaiters
      ? nothing
      : await listAll(
          limit,
          (page) =>
            client.call("list_leases", {
              ...page,
              ...(resource !== null && { resource }),
              ...(agent !== null && { agent_id: agent }),
              ...(state !== null && { state }),
            }),
          (page) => page.leases,
        );
    const all = onlyLeases
      ? nothing
      : await listAll(
          limit,
          (page) => client.call("list_requests", { ...page, ...(agent !== null && { agent_id: agent }) }),
          (page) => page.requests,
        );
    const waiters = { ...all, items: resource === null ? all.items : all.items.filter((one) => wants(one, resource)) };
    out.show({ leases: leases.items, waiters: waiters.items, has_more: leases.hasMore || waiters.hasMore }, () => {
      const held = onlyWaiters ? "" : out.table(leases.items, leaseColumns, "Nothing is leased.");
      const waiting =
        waiters.items.length === 0 && !onlyWaiters ? "" : out.table(waiters.items, waiterColumns, "Nobody waits.");
      const between = held !== "" && waiting !== "" && out.isTerminal ? "\n" : "";
      const more = out.isTerminal ? moreLine(leases.hasMore || waiters.hasMore) : "";
      return `${held}${between}${waiting}${more}`;
    });
    return exitCodes.done;
  },
};

/** The server has no filter for it: what is wanted there or below, or is a pattern over it, as far as names tell. */
function wants({ intents }: OpenRequest, resource: string): boolean {
  const base = (name: string) => name.replace(/\/?[^/]*[*?].*$/, "");
  const wanted = base(resource);
  return intents.some(({ resource: name }) => base(name).startsWith(wanted) || wanted.startsWith(base(name)));
}
