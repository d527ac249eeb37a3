/** Processor time of a process, thread by thread. */
import { readdirSync, readFileSync } from "node:fs";

/** In µs, by the thread's number. */
export function threadTimes(pid: number | undefined): Map<string, number> {
  const folder = `/proc/${pid}/task`;
  const times = new Map<string, number>();
  for (const id of readdirSync(folder)) {
    try {
      times.set(id, Number(readFileSync(`${folder}/${id}/schedstat`, "utf8").split(" ")[0]) / 1_000);
    } catch {
      // It has ended.
    }
  }
  return times;
}

export function threadName(pid: number | undefined, id: string): string {
  if (id === String(pid)) return "main";
  try {
    return readFileSync(`/proc/${pid}/task/${id}/comm`, "utf8").trim();
  } catch {
    return "ended";
  }
}
