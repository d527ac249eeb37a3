/** Resources: declared, fenced and withdrawn. */
import { resourceStates } from "../../protocol/schema/vocabulary.ts";
import type { Resource } from "../../sdk/wire.ts";
import type { Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { limitFlag, showList } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<Resource>[] = [
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "middle" },
  { title: "STATE", cell: ({ state }) => state, colour: ({ state }) => (state === "READY" ? "green" : "red") },
  { title: "CAPACITY", cell: capacityWords },
  { title: "CELL", cell: ({ cell }) => cell ?? "-" },
  { title: "REASON", cell: ({ reason, fault }) => reason ?? fault ?? "", gives: "end" },
];

function capacityWords({ capacity, refill_ms: refillMs }: Resource): string {
  if (capacity === null) return "-";
  return refillMs === null ? String(capacity) : `${capacity} in ${showDuration(refillMs)}`;
}

export const commands: readonly Command[] = [
  {
    name: "resources",
    summary: "lists resources that were declared, fenced or withdrawn",
    usage: "[PREFIX] [--state STATE | --fenced]",
    about: "Most resources need no declaration, and are not listed: `leasehold ls` shows what is leased.",
    flags: {
      state: { sign: "STATE", words: `only in this state: ${resourceStates.join(", ")}`, choices: resourceStates },
      fenced: { words: "only what is fenced, and why" },
      limit: limitFlag,
    },
    examples: [
      ["leasehold resources", "all of them"],
      ["leasehold resources --fenced", "which wait for an operator?"],
      ["leasehold resources GPU:/ --json", "by the beginning of their names"],
    ],
    run: async (call) => {
      const chosen = call.choice("state", resourceStates);
      const isFenced = call.isSet("fenced");
      if (isFenced && chosen !== null) throw new UsageProblem("--fenced is a state already; leave --state out");
      const filter = { prefix: call.word || null, state: isFenced ? ("FENCED" as const) : chosen };
      return showList(call, "resources", columns, "There are no resources.", (page) =>
        call.ask("list_resources", { ...page, ...filter }),
      );
    },
  },
  {
    name: "resources declare",
    summary: "declares a resource, with a capacity in units",
    usage: "RES [--capacity N [--refill TIME]] [--cell ID]",
    flags: {
      capacity: { sign: "N", words: "how many units there are" },
      refill: { sign: "TIME", words: "units come back this long after they were granted, not with the lease" },
      cell: { sign: "ID", names: "cell", words: "the cell that hosts it" },
    },
    examples: [
      ["leasehold resources declare GPU:/rack-1/a100 --capacity 4", "four at a time"],
      ["leasehold resources declare LIMIT:/openai --capacity 60 --refill 1m", "60 a minute"],
    ],
    run: async (call) => {
      const resource = call.resource(call.word);
      const [capacity, refillMs] = [call.integer("capacity", 1), call.durationMs("refill")];
      const input = { resource, capacity, refill_ms: refillMs, cell: call.text("cell") };
      call.out.row(await call.ask("declare_resource", input), columns);
    },
  },
  {
    name: "resources fence",
    summary: "fences a resource: its live leases are revoked, and no new ones granted",
    usage: "RES --reason TEXT",
    flags: { reason: { sign: "TEXT", words: "why, for the holders" } },
    examples: [["leasehold resources fence GPU:/rack-1/a100 --reason 'ECC errors'", "until it was reset"]],
    run: async (call) => {
      const reason = call.text("reason");
      if (reason === null) throw new UsageProblem("give the reason with --reason: the holders get it");
      call.out.row(await call.ask("fence_resource", { resource: call.resource(call.word), reason }), columns);
    },
  },
  {
    name: "resources reset",
    summary: "frees a fenced resource, once it is clean",
    usage: "RES",
    about:
      "One that a cell hosts is reset by its driver and then probed, and stays fenced unless the probe finds it clean.",
    examples: [["leasehold resources reset GPU:/rack-1/a100", "it can be leased again"]],
    run: async (call) =>
      call.out.row(await call.ask("reset_resource", { resource: call.resource(call.word) }), columns),
  },
  {
    name: "resources withdraw",
    summary: "withdraws a resource, or all of a cell: no new leases",
    usage: "RES | --cell ID [--revoke]",
    about: "Live leases run out, or are revoked with --revoke. Declaring it again undoes this; a cell is readmitted.",
    flags: {
      cell: { sign: "ID", names: "cell", words: "all that this cell hosts" },
      revoke: { words: "revoke its live leases" },
    },
    examples: [
      ["leasehold resources withdraw GPU:/rack-1/a100", "let it drain"],
      ["leasehold resources withdraw --cell build-3 --revoke", "a whole machine, now"],
    ],
    run: async (call) => {
      const { word: name, out } = call;
      const cell = call.text("cell");
      if ((name === "") === (cell === null)) throw new UsageProblem("name a resource, or a cell with --cell");
      const target = name === "" ? { cell } : { resource: call.resource(name) };
      const answer = await call.ask("withdraw_resource", { ...target, revoke: call.isSet("revoke") });
      if ("resource" in answer) out.row(answer, columns);
      else out.show(answer, () => `${answer.cell} is withdrawn, with all that it hosts.`);
    },
  },
];
