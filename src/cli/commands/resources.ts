/** Resources: declared, fenced and withdrawn. */
import { resourceStates } from "../../protocol/schema/vocabulary.ts";
import type { Resource } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<Resource>[] = [
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "front" },
  { title: "STATE", cell: ({ state }) => state, colour: ({ state }) => (state === "READY" ? "green" : "red") },
  { title: "CAPACITY", cell: ({ capacity }) => (capacity === null ? "-" : String(capacity)) },
  { title: "CELL", cell: ({ cell }) => cell ?? "-" },
  { title: "REASON", cell: ({ reason, fault }) => reason ?? fault ?? "", gives: "end" },
];

function show(call: Call, resource: Resource): number {
  call.out.show(resource, () => call.out.table([resource], columns, ""));
  return exitCodes.done;
}

export const resourcesCommand: Command = {
  name: "resources",
  summary: "lists resources that were declared, fenced or withdrawn",
  usage: "[PREFIX] [--state STATE | --fenced]",
  words: [0, 1],
  about: "Most resources need no declaration, and are not listed: `leasehold ls` shows what is leased.",
  flags: {
    state: { sign: "STATE", words: `only in this state: ${resourceStates.join(", ")}` },
    fenced: { words: "only what is fenced, and why" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold resources", "all of them"],
    ["leasehold resources --fenced", "what waits for somebody to look at it?"],
    ["leasehold resources GPU:/ --json", "by the beginning of their names"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const [prefix] = words;
    const chosen = call.choice("state", resourceStates);
    const isFenced = call.isSet("fenced");
    if (isFenced && chosen !== null) throw new UsageProblem("--fenced is a state already; leave --state out");
    const state = isFenced ? "FENCED" : chosen;
    const limit = limitOf(call);
    const client = await call.connect();
    const { items, hasMore } = await listAll(
      limit,
      (page) =>
        client.call("list_resources", {
          ...page,
          ...(prefix !== undefined && { prefix }),
          ...(state !== null && { state }),
        }),
      (page) => page.resources,
    );
    out.show(
      { resources: items, has_more: hasMore },
      () => `${out.table(items, columns, "There are none.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};

export const resourcesDeclareCommand: Command = {
  name: "resources declare",
  summary: "declares a resource, with a capacity in units",
  usage: "RES [--capacity N] [--cell ID]",
  words: [1, 1],
  flags: {
    capacity: { sign: "N", words: "how many units there are" },
    cell: { sign: "ID", words: "the cell that hosts it" },
  },
  examples: [["leasehold resources declare GPU:/rack-1/a100 --capacity 4", "four at a time"]],
  run: async (call) => {
    const capacity = call.integer("capacity", 1);
    const cell = call.text("cell");
    const resource = call.resource(call.words[0] ?? "");
    const client = await call.connect();
    const wanted = { resource, ...(capacity !== null && { capacity }), ...(cell !== null && { cell }) };
    return show(call, await client.call("declare_resource", wanted));
  },
};

export const resourcesFenceCommand: Command = {
  name: "resources fence",
  summary: "fences a resource: what is live on it is revoked, and nothing is leased",
  usage: "RES --reason TEXT",
  words: [1, 1],
  flags: { reason: { sign: "TEXT", words: "why, for the holders" } },
  examples: [["leasehold resources fence GPU:/rack-1/a100 --reason 'ECC errors'", "until it was reset"]],
  run: async (call) => {
    const reason = call.text("reason");
    if (reason === null) throw new UsageProblem("say why with --reason: the holders are told");
    const resource = call.resource(call.words[0] ?? "");
    return show(call, await (await call.connect()).call("fence_resource", { resource, reason }));
  },
};

export const resourcesResetCommand: Command = {
  name: "resources reset",
  summary: "frees a fenced resource, once it is clean",
  usage: "RES",
  words: [1, 1],
  about:
    "One that a cell hosts is reset by its driver and then probed, and stays fenced unless the probe has seen it clean.",
  flags: {},
  examples: [["leasehold resources reset GPU:/rack-1/a100", "it can be leased again"]],
  run: async (call) => {
    const resource = call.resource(call.words[0] ?? "");
    return show(call, await (await call.connect()).call("reset_resource", { resource }));
  },
};

export const resourcesWithdrawCommand: Command = {
  name: "resources withdraw",
  summary: "withdraws a resource, or all of a cell: no new leases",
  usage: "RES | --cell ID [--revoke]",
  words: [0, 1],
  about: "What is live runs out, or is taken away with --revoke. Declaring it again undoes this; a cell is readmitted.",
  flags: {
    cell: { sign: "ID", words: "all that this cell hosts" },
    revoke: { words: "take away what is live" },
  },
  examples: [
    ["leasehold resources withdraw GPU:/rack-1/a100", "let it drain"],
    ["leasehold resources withdraw --cell build-3 --revoke", "a whole machine, now"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const [name] = words;
    const cell = call.text("cell");
    if ((name === undefined) === (cell === null)) throw new UsageProblem("name a resource, or a cell with --cell");
    const target = name === undefined ? { cell } : { resource: call.resource(name) };
    const answer = await (await call.connect()).call("withdraw_resource", { ...target, revoke: call.isSet("revoke") });
    if ("resource" in answer) out.show(answer, () => out.table([answer], columns, "There is none."));
    else out.show(answer, () => `${answer.cell} is withdrawn, and with it all that it hosts.`);
    return exitCodes.done;
  },
};
