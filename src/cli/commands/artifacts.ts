/** Artifacts, and how far a tenant's quotas are used. */
import type { OperationAnswers, QuotaUse } from "../../sdk/wire.ts";
import type { Command } from "../command.ts";
import { limitFlag, showList } from "../pages.ts";
import type { Column } from "../table.ts";

type Artifact = OperationAnswers["list_artifacts"]["artifacts"][number];

const columns: readonly Column<Artifact>[] = [
  { title: "SHA256", cell: ({ sha256 }) => sha256 },
  { title: "BYTES", cell: ({ size }) => String(size) },
  { title: "STORED", cell: ({ stored_at: at }) => at ?? "" },
  { title: "KEPT", cell: ({ referenced }) => (referenced ? "a task or receipt points to it" : "until it is old") },
];

const usageColumns: readonly Column<QuotaUse>[] = [
  { title: "QUOTA", cell: ({ quota }) => quota },
  {
    title: "USED",
    cell: ({ used }) => (used === null ? "" : String(used)),
    colour: (row) => (isFull(row) ? "red" : null),
  },
  { title: "LIMIT", cell: ({ limit }) => (limit === null ? "none" : String(limit)) },
  { title: "UNIT", cell: ({ unit }) => (unit === "number" ? "" : unit) },
];

function isFull({ used, limit }: QuotaUse): boolean {
  return used !== null && limit !== null && used >= limit;
}

export const commands: readonly Command[] = [
  {
    name: "artifacts ls",
    summary: "lists the artifacts of a tenant",
    flags: { limit: limitFlag },
    examples: [["leasehold artifacts ls --tenant acme", "what acme has stored"]],
    run: (call) =>
      showList(call, "artifacts", columns, "There are no artifacts.", (page) => call.ask("list_artifacts", page)),
  },
  {
    name: "artifacts rm",
    summary: "deletes artifacts; what points to them then points to nothing",
    usage: "SHA256…",
    examples: [
      ["leasehold artifacts rm 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "make room"],
    ],
    run: async (call) => {
      for (const sha256 of call.words) {
        const deleted = await call.ask("delete_artifact", { sha256 });
        call.out.show(deleted, () => `${sha256} is deleted.`);
      }
    },
  },
  {
    name: "usage",
    summary: "shows how far the tenant's quotas are used",
    examples: [
      ["leasehold usage", "each quota, with what is used and its limit"],
      ["leasehold usage --tenant acme --json | jq '.usage[] | select(.used >= .limit)'", "what is full"],
    ],
    run: async (call) => {
      const answer = await call.ask("get_usage", {});
      call.out.show(answer, () => call.out.table(answer.usage, usageColumns, ""));
    },
  },
];
