/** The ledger's receipts, and the obligations that they open. */
import { obligationStates, receiptPhases } from "../../protocol/schema/vocabulary.ts";
import type { Obligation, Receipt } from "../../sdk/wire.ts";
import type { Command, Flags } from "../command.ts";
import { limitFlag, showList } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

export const receiptColumns: readonly Column<Receipt>[] = [
  { title: "NO", cell: ({ sequence }) => String(sequence) },
  { title: "RECEIPT", cell: ({ receipt_id: id }) => id },
  { title: "PHASE", cell: ({ phase }) => phase },
  { title: "STATUS", cell: ({ status, escalation_class: escalated }) => (status === "NA" ? escalated : status) },
  { title: "TASK", cell: ({ task_id: task }) => task },
  { title: "BY", cell: ({ source_system: source }) => source, gives: "end" },
  { title: "STORED", cell: ({ stored_at: at }) => at },
  { title: "HASH", cell: ({ hash }) => hash.slice(0, 12) },
];

const obligationColumns: readonly Column<Obligation>[] = [
  { title: "STATE", cell: ({ state }) => state, colour: ({ state }) => (state === "OVERDUE" ? "red" : null) },
  { title: "TASK", cell: ({ task_id: task }) => task },
  { title: "TYPE", cell: ({ task_type: type }) => type, gives: "end" },
  { title: "STATUS", cell: ({ status }) => status },
  { title: "SINCE", cell: ({ opened_at: at }) => at },
  { title: "CUSTODIAN", cell: ({ custodian }) => custodian, gives: "end" },
  { title: "SUMMARY", cell: ({ task_summary: summary }) => summary ?? "", gives: "end" },
];

const searchFlags: Flags = {
  task: { sign: "TASK", words: "only of this task", field: "task_id" },
  phase: {
    sign: "PHASE",
    words: `only of this phase: ${receiptPhases.join(", ")}`,
    choices: receiptPhases,
    field: "phase",
  },
  by: { sign: "WORKER", words: "only of this worker", field: "source_system" },
  for: { sign: "AI", words: "only for this recipient", field: "recipient_ai" },
};

export const commands: readonly Command[] = [
  {
    name: "receipts",
    summary: "searches the ledger, or shows one receipt with its causes and effects",
    usage: "[RECEIPT] [--task TASK] [--phase PHASE] [--by WORKER] [--for AI] [--since TIME]",
    flags: {
      ...searchFlags,
      since: { sign: "TIME", words: "only stored at this time or later, such as 2026-11-15T12:00:00Z" },
      limit: limitFlag,
    },
    examples: [
      ["leasehold receipts --task T-01m7gwjckrcqwzyjd2r67n", "a task's whole history"],
      ["leasehold receipts rcp_7 --json", "one, with what led to it and what followed"],
      ["leasehold receipts --phase escalate --since 2026-11-15T00:00:00Z", "what went wrong since then"],
    ],
    run: async (call) => {
      const { out, word: id } = call;
      const filters = { ...call.fields(searchFlags), since: call.text("since") };
      if (id !== "") {
        const chain = await call.ask("get_receipt_chain", { receipt_id: id });
        const receipts = [...chain.causes, chain.receipt, ...chain.effects];
        return void out.show(chain, () => out.table(receipts, receiptColumns, ""));
      }
      return showList(call, "receipts", receiptColumns, "There are no receipts.", (page) =>
        call.ask("list_receipts", { ...page, ...filters }),
      );
    },
  },
  {
    name: "inbox",
    summary: "shows what a principal answers for, or all obligations",
    usage: "AI | --all [--state STATE]",
    flags: {
      all: { words: "of all principals" },
      state: {
        sign: "STATE",
        words: `with --all: only in this state: ${obligationStates.join(", ")}`,
        choices: obligationStates,
      },
      limit: limitFlag,
    },
    examples: [
      ["leasehold inbox delegate.root", "its own tasks, and those that were escalated to it"],
      ["leasehold inbox --all --state OVERDUE", "promises whose worker was lost"],
    ],
    run: async (call) => {
      const state = call.choice("state", obligationStates);
      if (call.isSet("all") === (call.word !== "")) throw new UsageProblem("name a principal, or give --all");
      return showList(call, "obligations", obligationColumns, "Nothing is open.", (page) =>
        call.word === ""
          ? call.ask("list_obligations", { ...page, state })
          : call.ask("get_inbox", { ...page, recipient_ai: call.word }),
      );
    },
  },
];
