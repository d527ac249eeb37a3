/** Asks the person at the terminal. Without one there is nobody to ask, and nothing is done. */
import { createInterface } from "node:readline/promises";
import type { Call, Flag } from "./command.ts";
import { UsageProblem } from "./problem.ts";

export const yesFlag: Flag = { words: "do not ask, where no key is in use" };

/** `without` says what is to be done where there is no terminal. */
export async function confirmAtTerminal(question: string, without: string): Promise<boolean> {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) throw new UsageProblem(without);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

/**
 * Without keys everybody is the operator. What would lock others out, such as the first key, is then asked about before it
 * is done (M6): by a person at a terminal, or with --yes. Throws unless it is meant; `effect` says what happens to others.
 */
export async function confirmWithoutKey(call: Call, effect: string): Promise<void> {
  if (call.key !== null || call.isSet("yes")) return;
  const isMeant = await confirmAtTerminal(
    `leasehold: ${effect}. Go on?`,
    `${effect}; say that this is meant with --yes`,
  );
  if (!isMeant) throw new UsageProblem("nothing was done");
}
