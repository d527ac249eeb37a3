/** What the thread of heartbeats and the event loop that it stands beside agree on. */
import { uptime } from "node:os";

/** Leases that one worker process can keep at once. */
export const leasesMax = 1_024;
/** How often the event loop shows that it stirs. */
export const stirEveryMs = 50;

/** The system tells it in hundredths of a second. */
export const uptimeResolutionMs = 10;

/** The same in all threads, and it goes on while the machine sleeps; performance.now() does neither. */
export function uptimeMs(): number {
  return uptime() * 1_000;
}
