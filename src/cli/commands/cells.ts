/** Cells: which there are, how they are, and what they host. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../sdk/client.ts";
import type { Cell, CellView } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { untilTold } from "../ending-signals.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

type Hosted = CellView["resources"][number];

const intervalMsDefault = 1_000;
const clearScreen = "\u001b[H\u001b[2J";

const isWell = ({ state, withdrawn }: Cell): boolean => state === "READY" && !withdrawn;
const stateWords = ({ state, withdrawn }: Cell): string => (withdrawn ? `${state}, withdrawn` : state);
const liveLeases = ({ resources }: CellView): number => resources.reduce((sum, { leases }) => sum + leases, 0);

const stateColumns: readonly Column<Cell>[] = [
  { title: "CELL", cell: ({ cell }) => cell, gives: "end" },
  { title: "STATE", cell: stateWords, colour: (cell) => (isWell(cell) ? "green" : "red") },
  { title: "SINCE", cell: ({ since }) => showDuration(Math.max(0, Date.now() - Date.parse(since))) },
];

const listColumns: readonly Column<CellView>[] = [
  ...stateColumns,
  {
    title: "RESOURCES",
    cell: ({ resources }) => `${resources.filter(isReady).length}/${resources.length} ready`,
    colour: ({ resources }) => (resources.every(isReady) ? null : "yellow"),
  },
  { title: "BINDINGS", cell: (cell) => String(liveLeases(cell)) },
  { title: "VERSION", cell: ({ version }) => version ?? "-" },
  { title: "REASON", cell: ({ reason }) => reason ?? "", gives: "end" },
];

const hostedColumns: readonly Column<Hosted>[] = [
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "front" },
  { title: "DRIVER", cell: ({ driver }) => driver ?? "-" },
  { title: "STATE", cell: hostedState, colour: (hosted) => (hostedState(hosted) === "READY" ? "green" : "red") },
  { title: "CAPACITY", cell: ({ capacity }) => (capacity === null ? "-" : String(capacity)) },
  { title: "LEASES", cell: ({ leases }) => String(leases) },
  { title: "HARDWARE", cell: ({ hardware }) => hardware.join(","), gives: "end" },
  { title: "REASON", cell: ({ fenced, fault }) => fenced ?? fault ?? "", gives: "end" },
];

function isReady(hosted: Hosted): boolean {
  return hostedState(hosted) === "READY";
}

function hostedState({ ready, fenced, withdrawn }: Hosted): string {
  if (fenced !== null) return "FENCED";
  if (withdrawn) return "WITHDRAWN";
  return ready ? "READY" : "NOT READY";
}

export const cellsCommand: Command = {
  name: "cells",
  summary: "lists cells, or shows what one hosts",
  usage: "[ID] [--watch]",
  words: [0, 1],
  about:
    "`leasehold cell` runs one. With --watch it shows them again whenever something has changed, until it is told to end.",
  flags: {
    watch: { short: "w", words: "go on, and show what changes" },
    interval: { sign: "TIME", words: "with --watch, ask the server so often [1s]" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold cells", "are all of them there?"],
    ["leasehold cells lab-1", "what does this one host, and how is it?"],
    ["leasehold cells --watch --json", "a line whenever something changes"],
  ],
  run: async (call) => {
    const [id] = call.words;
    const limit = limitOf(call);
    const intervalMs = Math.max(100, call.durationMs("interval") ?? intervalMsDefault);
    const client = await call.connect();
    const look = async (): Promise<Shown> =>
      id === undefined ? await all(call, client, limit) : await one(call, client, id);
    if (!call.isSet("watch")) {
      const { body, words } = await look();
      call.out.show(body, words);
      return exitCodes.done;
    }
    await untilTold(async (signal) => {
      let before = "";
      while (!signal.aborted) {
        const { body, words } = await look();
        const text = JSON.stringify(body);
        // Times that have passed move on in the table of a terminal, and are no change for a program.
        if (call.out.isTerminal) call.out.print(`${clearScreen}${words()}`);
        else if (text !== before) call.out.show(body, words);
        before = text;
        await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
      }
    });
    return exitCodes.done;
  },
};

interface Shown {
  readonly body: object;
  readonly words: () => string;
}

async function all({ out }: Call, client: Client, limit: number): Promise<Shown> {
  const { items, hasMore } = await list(client, limit);
  return {
    body: { cells: items, has_more: hasMore },
    words: () => `${out.table(items, listColumns, "There are no cells.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
  };
}

async function one({ out }: Call, client: Client, id: string): Promise<Shown> {
  const { items } = await list(client, Number.MAX_SAFE_INTEGER);
  const found = items.find(({ cell }) => cell === id);
  if (found === undefined) throw new UsageProblem(`there is no cell ${id}; \`leasehold cells\` lists them`);
  const head = (): string => (out.isTerminal ? `${out.table([found], listColumns, "")}\n` : "");
  return { body: found, words: () => `${head()}${out.table(found.resources, hostedColumns, "It hosts nothing.")}` };
}

function list(client: Client, limit: number) {
  return listAll(
    limit,
    (page) => client.call("list_cells", page),
    (page) => page.cells,
  );
}

function show({ out }: Call, cell: Cell): number {
  out.show(cell, () => out.table([cell], stateColumns, ""));
  return exitCodes.done;
}

export const cellsWithdrawCommand: Command = {
  name: "cells withdraw",
  summary: "withdraws a cell: no new leases on what it hosts",
  usage: "ID [--revoke]",
  words: [1, 1],
  about: "What is live runs out, or is taken away with --revoke. `leasehold cells readmit` undoes this.",
  flags: { revoke: { words: "take away what is live" } },
  examples: [
    ["leasehold cells withdraw lab-1", "let it drain, for instance before a restart"],
    ["leasehold cells withdraw lab-1 --revoke", "now"],
  ],
  run: async (call) => {
    const client = await call.connect();
    const cell = call.words[0] ?? "";
    const answer = await client.call("withdraw_resource", { cell, revoke: call.isSet("revoke") });
    if (!("enrolled_at" in answer)) throw new TypeError("the server has withdrawn something else than a cell");
    return show(call, answer);
  },
};

export const cellsReadmitCommand: Command = {
  name: "cells readmit",
  summary: "undoes the withdrawal of a cell",
  usage: "ID",
  words: [1, 1],
  flags: {},
  examples: [["leasehold cells readmit lab-1", "what it hosts can be leased again"]],
  run: async (call) => show(call, await (await call.connect()).call("readmit_cell", { cell: call.words[0] ?? "" })),
};
