/** What there is. */
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";

/** The line's reader answers it before any command is run; this entry is for the list and for completion. */
export const helpCommand: Command = {
  name: "help",
  summary: "shows this, or the help of one command",
  usage: "[COMMAND]",
  words: [0, 2],
  flags: {},
  examples: [["leasehold help run", "the same as `leasehold run --help`"]],
  run: () => Promise.resolve(exitCodes.done),
};
