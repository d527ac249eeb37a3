/** What the thread of heartbeats and the event loop that it stands beside agree on. */
import { uptime } from "node:os";

/** Leases that one worker process can keep at once: tasks that run, and as many whose receipts are on their way. */
export const leasesMax = 2_048;
/** How often the event loop shows that it stirs. */
export const stirEveryMs = 50;
/** How often the thread reads the table of leases. One whose first heartbeat is due sooner is announced. */
export const readEveryMs = 1_000;
export const announcedMsMax = 20_000;

/** The system tells it in hundredths of a second. */
export const uptimeResolutionMs = 10;

/** The same in all threads, and it goes on while the machine sleeps; performance.now() does neither. */
export function uptimeMs(): number {
  return uptime() * 1_000;
}
