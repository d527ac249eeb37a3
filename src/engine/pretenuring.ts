/**
 * V8 notices which literals make things that outlive a look or two of the collector, and from then on makes such things
 * among the old ones at once. Here whatever waits for a commit seems to live long, and does not. Made among the old
 * ones it stays until the whole heap is looked through, and so does all that it refers to, copied twice on its way:
 * more than half of all that was allocated for a task, and of the time of all threads nearly a third (0013).
 */
import { setFlagsFromString } from "node:v8";

/** For the whole process, and from now on: what was compiled before stays as it is. */
export function leaveThingsYoung(setFlag: (flag: string) => void = setFlagsFromString): void {
  setFlag("--no-allocation-site-pretenuring");
}
