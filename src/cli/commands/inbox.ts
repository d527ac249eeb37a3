/** What somebody answers for. */
import { obligationStates } from "../../protocol/schema/vocabulary.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import { obligationColumns } from "../receipt-words.ts";

export const inboxCommand: Command = {
  name: "inbox",
  summary: "shows what a principal answers for, or all obligations",
  usage: "AI | --all [--state STATE]",
  words: [0, 1],
  flags: {
    all: { words: "of everybody" },
    state: { sign: "STATE", words: `with --all: only in this state: ${obligationStates.join(", ")}` },
    limit: limitFlag,
  },
  examples: [
    ["leasehold inbox delegate.root", "its own tasks, and those that were escalated to it"],
    ["leasehold inbox --all --state OVERDUE", "promises whose worker was lost"],
  ],
  run: async (call) => {
    const { out, words } = call;
    const [recipient] = words;
    const state = call.choice("state", obligationStates);
    const limit = limitOf(call);
    if (call.isSet("all") === (recipient !== undefined)) throw new UsageProblem("name a principal, or give --all");
    const client = await call.connect();
    const { items, hasMore } = await listAll(
      limit,
      (page) =>
        recipient === undefined
          ? client.call("list_obligations", { ...page, state })
          : client.call("get_inbox", { ...page, recipient_ai: recipient }),
      (page) => page.obligations,
    );
    out.show(
      { obligations: items, has_more: hasMore },
      () => `${out.table(items, obligationColumns, "Nothing is open.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};
