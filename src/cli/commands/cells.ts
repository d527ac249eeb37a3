/** Cells: their state, and what they host. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Cell, CellView } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { limitFlag, limitOf, listAll, listText } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";
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
  { title: "RESOURCE", cell: ({ resource }) => resource, gives: "middle" },
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

export const commands: readonly Command[] = [
  {
    name: "cells",
    summary: "lists cells, or shows what one hosts",
    names: "cell",
    usage: "[ID] [--watch]",
    about:
      "`leasehold cell` runs one. With --watch it shows them again whenever something has changed, until it is stopped.",
    flags: {
      watch: { short: "w", words: "keep running, and show changes" },
      interval: { sign: "TIME", words: "with --watch, how often the server is polled [1s]" },
      limit: limitFlag,
    },
    examples: [
      ["leasehold cells", "are all of them connected?"],
      ["leasehold cells lab-1", "what does this one host?"],
      ["leasehold cells --watch --json", "a line whenever something changes"],
    ],
    run: async (call) => {
      const { out } = call;
      const intervalMs = Math.max(100, call.durationMs("interval") ?? intervalMsDefault);
      const poll = () => (call.word === "" ? allCells(call) : oneCell(call));
      if (!call.isSet("watch")) {
        const { body, words } = await poll();
        return void out.show(body, words);
      }
      await untilStopped(async (signal) => {
        let before = "";
        while (!signal.aborted) {
          const { body, words } = await poll();
          const text = JSON.stringify(body);
          // On a terminal the ages advance; for a program that is not a change.
          if (out.isTerminal) out.print(`${clearScreen}${words()}`);
          else if (text !== before) out.show(body, words);
          before = text;
          await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
        }
      });
      return undefined;
    },
  },
  {
    name: "cells withdraw",
    summary: "withdraws a cell: no new leases on what it hosts",
    names: "cell",
    usage: "ID [--revoke]",
    about: "Live leases run out, or are revoked with --revoke. `leasehold cells readmit` undoes this.",
    flags: { revoke: { words: "revoke its live leases" } },
    examples: [
      ["leasehold cells withdraw lab-1", "let it drain, for instance before a restart"],
      ["leasehold cells withdraw lab-1 --revoke", "now"],
    ],
    run: async (call) => {
      const answer = await call.ask("withdraw_resource", { cell: call.word, revoke: call.isSet("revoke") });
      if (!("enrolled_at" in answer)) throw new TypeError("the server's answer does not describe a cell");
      call.out.row(answer, stateColumns);
    },
  },
  {
    name: "cells readmit",
    summary: "undoes the withdrawal of a cell",
    usage: "ID",
    names: "cell",
    examples: [["leasehold cells readmit lab-1", "what it hosts can be leased again"]],
    run: async (call) => call.out.row(await call.ask("readmit_cell", { cell: call.word }), stateColumns),
  },
];

interface CellsView {
  readonly body: object;
  readonly words: () => string;
}

async function allCells(call: Call): Promise<CellsView> {
  const listed = await listAll("cells", limitOf(call), (page) => call.ask("list_cells", page));
  const { items, hasMore } = listed;
  return {
    body: { cells: items, has_more: hasMore },
    words: () => listText(call, listed, listColumns, "There are no cells."),
  };
}

async function oneCell({ word, out, ask }: Call): Promise<CellsView> {
  const { items } = await listAll("cells", Number.MAX_SAFE_INTEGER, (page) => ask("list_cells", page));
  const found = items.find(({ cell }) => cell === word);
  if (found === undefined) throw new UsageProblem(`unknown cell ${word}; \`leasehold cells\` lists them`);
  const head = (): string => (out.isTerminal ? `${out.table([found], listColumns, "")}\n` : "");
  return { body: found, words: () => `${head()}${out.table(found.resources, hostedColumns, "It hosts nothing.")}` };
}
