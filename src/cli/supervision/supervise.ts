/**
 * Runs a command while leases are held, and ends it before they can have ended (A7): SIGTERM, a time to tidy up, SIGKILL.
 * A watchdog process stands by for the case that this one cannot.
 */
import type { Child } from "./child.ts";
import { endGroup, isGroupRunning } from "./process-group.ts";
import type { Watchdog } from "./watchdog-link.ts";

export interface Supervised {
  readonly watchdog: Watchdog;
  /** Fires when the command has to end. */
  readonly signal: AbortSignal;
  /** In how many ms SIGTERM is due, and how long after it SIGKILL, as of now. */
  readonly limits: () => { readonly termInMs: number; readonly graceMs: number };
  /** How often the watchdog gets new limits. */
  readonly everyMs: number;
  /** Starts the command; calls back with its group before it begins. */
  readonly start: (onGroup: (group: number) => void) => Promise<Child>;
}

/** Returns once nothing of its group runs any more. */
export async function supervise({
  watchdog,
  signal,
  limits,
  everyMs,
  start,
}: Supervised): Promise<{ readonly code: number; readonly child: Child }> {
  let group = 0;
  let ending: Promise<void> | null = null;
  const tell = (): void => {
    const { termInMs, graceMs } = limits();
    if (ending === null) watchdog.tell(group, termInMs, termInMs + graceMs, false);
  };
  const stop = (): void => {
    const { graceMs } = limits();
    watchdog.tell(group, 0, graceMs, true);
    ending = endGroup(group, graceMs);
  };
  tell();
  const child = await start((started) => {
    group = started;
    tell();
  });
  const telling = setInterval(tell, everyMs);
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  try {
    const code = await child.ended;
    await ending;
    // What the command left running in its group would go on without a lease.
    if (ending === null && isGroupRunning(group)) await endGroup(group, limits().graceMs);
    return { code, child };
  } finally {
    clearInterval(telling);
    signal.removeEventListener("abort", stop);
  }
}
