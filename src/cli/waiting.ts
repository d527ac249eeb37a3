/** How long a command is willing to wait for its leases, with `flock`'s flags. */
import type { Call, Flags } from "./command.ts";
import { UsageProblem } from "./problem.ts";

const waitMsDefault = 30_000;

export const waitFlags: Flags = {
  nonblock: { short: "n", words: "do not wait: fail at once where something is in the way" },
  wait: { short: "w", sign: "TIME", words: "wait this long at most [30s]; a bare number is in seconds" },
};

export function waitMsOf(call: Call): number {
  const isNow = call.isSet("nonblock");
  if (isNow && call.isSet("wait")) throw new UsageProblem("give -n (do not wait) or -w TIME, not both");
  return isNow ? 0 : (call.durationMs("wait") ?? waitMsDefault);
}
