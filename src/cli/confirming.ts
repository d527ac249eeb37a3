/**
 * Without keys everybody is the operator. What would lock others out, such as the first key, is then asked about before it
 * is done (M6): by a person at a terminal, or with --yes.
 */
import { createInterface } from "node:readline/promises";
import type { Call, Flag } from "./command.ts";
import { UsageProblem } from "./problem.ts";

export const yesFlag: Flag = { words: "do not ask, where no key is in use" };

/** Throws unless it is meant. `effect` says what happens to others. */
export async function confirmWithoutKey(call: Call, effect: string): Promise<void> {
  if (call.key !== null || call.isSet("yes")) return;
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
    throw new UsageProblem(`${effect}; say that this is meant with --yes`);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`leasehold: ${effect}. Go on? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageProblem("nothing was done");
  } finally {
    terminal.close();
  }
}
