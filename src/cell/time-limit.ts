import { setTimeout as sleep } from "node:timers/promises";

/** No driver is waited for without end. */

export class TookTooLong extends Error {
  constructor(ms: number) {
    super(`it took longer than ${ms} ms`);
    this.name = "TookTooLong";
  }
}

/** How long aborted work may take to stop, so that the next step does not overlap with it. */
const letGoMs = 1_000;

/** The work's own result, or its failure, or ours when the time is up; the signal then tells the work to let go. */
export async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const begun = work(stop.signal);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, ms, "late");
  });
  const first = await Promise.race([begun.then((result) => ({ result })), late]).finally(() => clearTimeout(timer));
  if (first !== "late") return first.result;
  const error = new TookTooLong(ms);
  stop.abort(error);
  const settled = begun.then(
    () => {},
    () => {},
  );
  await Promise.race([settled, sleep(letGoMs, undefined, { ref: false })]);
  throw error;
}
