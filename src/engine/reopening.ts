/** After a failed commit (S2): the store is opened again, with growing pauses, until that works or nobody wants it. */
import type { EngineLog } from "./terms.ts";

const waitMsMin = 50;
const waitMsMax = 5_000;

export async function reopen(open: () => Promise<void>, isWanted: () => boolean, log: EngineLog): Promise<void> {
  for (let wait = waitMsMin; isWanted(); wait = Math.min(wait * 2, waitMsMax)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (!isWanted()) return;
    try {
      await open();
      log.info({}, "the store is open again, and the service goes on from what is stored");
      return;
    } catch (fault) {
      log.warn({ err: fault, retryInMs: Math.min(wait * 2, waitMsMax) }, "the store cannot be opened yet");
    }
  }
}
