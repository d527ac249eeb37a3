/** The ledger's receipts. */
import { receiptPhases } from "../../protocol/schema/vocabulary.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { receiptColumns } from "../receipt-words.ts";

export const receiptsCommand: Command = {
  name: "receipts",
  summary: "searches the ledger, or shows one receipt with its causes and effects",
  usage: "[RECEIPT] [--task TASK] [--phase PHASE] [--by WORKER] [--for AI] [--since TIME]",
  words: [0, 1],
  flags: {
    task: { sign: "TASK", words: "only of this task" },
    phase: { sign: "PHASE", words: `only of this phase: ${receiptPhases.join(", ")}` },
    by: { sign: "WORKER", words: "only of this worker" },
    for: { sign: "AI", words: "only for this recipient" },
    since: { sign: "TIME", words: "only stored at this time or later, such as 2026-11-15T12:00:00Z" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold receipts --task T-01m7gwjckrcqwzyjd2r67n", "a task's whole story"],
    ["leasehold receipts rcp_7 --json", "one, with what led to it and what followed"],
    ["leasehold receipts --phase escalate --since 2026-11-15T00:00:00Z", "what went wrong since then"],
  ],
  run: async (call) => {
    const { out, words } = call;
    const [id] = words;
    const phase = call.choice("phase", receiptPhases);
    const filters = { task_id: call.text("task"), source_system: call.text("by"), recipient_ai: call.text("for") };
    const since = call.text("since");
    const limit = limitOf(call);
    const client = await call.connect();
    if (id !== undefined) {
      const chain = await client.call("get_receipt_chain", { receipt_id: id });
      out.show(chain, () => out.table([...chain.causes, chain.receipt, ...chain.effects], receiptColumns, ""));
      return exitCodes.done;
    }
    const { items, hasMore } = await listAll(
      limit,
      (page) => client.call("list_receipts", { ...page, ...filters, phase, since }),
      (page) => page.receipts,
    );
    out.show(
      { receipts: items, has_more: hasMore },
      () => `${out.table(items, receiptColumns, "There are none.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};
