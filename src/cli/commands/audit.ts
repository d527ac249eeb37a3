/** The audit log: what operators and supervisors changed (S7). */
import { emptyAuditLog, hashOfShown } from "../../ledger/audit.ts";
import type { OperationAnswers } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, listAll, showList } from "../pages.ts";
import type { Column } from "../table.ts";

type Entry = OperationAnswers["list_audit"]["entries"][number];

const columns: readonly Column<Entry>[] = [
  { title: "AT", cell: ({ at }) => at },
  { title: "ACTOR", cell: ({ actor }) => actor },
  { title: "FROM", cell: ({ address }) => address ?? "" },
  { title: "ACTION", cell: ({ action }) => action },
  { title: "TARGET", cell: ({ target }) => target ?? "" },
  { title: "DETAIL", cell: ({ detail }) => JSON.stringify(detail), gives: "end" },
];

export const commands: readonly Command[] = [
  {
    name: "audit",
    summary: "shows what operators and supervisors changed",
    usage: "[--since TIME] [--actor KEY_ID] [--action NAME] [--directory] [--limit N]",
    about: `Keys, tenants, quotas, settings, revocations, fences, resets and the like, oldest first, with who did it and from
where. Each entry holds the hash of the one before; \`leasehold audit verify\` checks them all.`,
    flags: {
      since: { sign: "TIME", words: "only at this time or later, such as 2026-11-15T12:00:00Z" },
      actor: { sign: "KEY_ID", words: "only by this key" },
      action: { sign: "NAME", words: "only this operation, such as revoke" },
      directory: {
        words: "of a cluster's directory, where keys, policies and new tenants are if there are several shards",
      },
      limit: limitFlag,
    },
    examples: [
      ["leasehold audit --since 2026-11-15T00:00:00Z", "what was changed since then"],
      ["leasehold audit --action create_key --tenant acme", "who made which keys"],
    ],
    run: (call) => {
      const texts = { since: call.text("since"), actor: call.text("actor"), action: call.text("action") };
      const filter = { ...texts, ...directoryOf(call) };
      return showList(call, "entries", columns, "Nothing was changed.", (page) =>
        call.ask("list_audit", { ...page, ...filter }),
      );
    },
  },
  {
    name: "audit verify",
    summary: "checks that no entry was changed, removed or swapped",
    usage: "[--directory]",
    flags: { directory: { words: "the log of a cluster's directory" } },
    examples: [["leasehold audit verify", "exit code 7 where something is wrong"]],
    run: async (call) => {
      const { items } = await listAll("entries", Number.MAX_SAFE_INTEGER, (page) =>
        call.ask("list_audit", { ...page, ...directoryOf(call) }),
      );
      const fault = findFault(items);
      const found = { entries: items.length, head: items.at(-1)?.hash ?? emptyAuditLog.hash, fault };
      call.out.show(found, () => describe(found));
      return fault === null ? exitCodes.done : exitCodes.notSo;
    },
  },
];

function directoryOf(call: Call): { readonly directory?: true } {
  return call.isSet("directory") ? { directory: true } : {};
}

/** The first entry that does not follow from the one before, in words. */
export function findFault(entries: readonly Entry[]): string | null {
  let before = emptyAuditLog;
  for (const entry of entries) {
    const { sequence, previous_hash: previous, hash } = entry;
    if (sequence !== before.sequence + 1) return `entry ${before.sequence + 1} is missing`;
    if (previous !== before.hash) return `entry ${sequence} does not follow from the one before`;
    if (hashOfShown({ ...entry }) !== hash) return `entry ${sequence} was changed`;
    before = { sequence, hash };
  }
  return null;
}

function describe({ entries, head, fault }: { entries: number; head: string; fault: string | null }) {
  if (fault !== null) return `The audit log is not whole: ${fault}.`;
  return `${entries} entries, whole. The last one's hash is ${head}.`;
}
