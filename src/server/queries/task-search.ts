/**
 * Whether a text is in what a task says: its id, its summary, its body or its inputs. Bodies and inputs may be in the store alone,
 * and are large: a page reads a bounded number of bytes, with turns of the loop for everything else (S4, S8).
 */
import { setImmediate } from "node:timers/promises";
import type { Payload, Task } from "../../kernel/contract/task-records.ts";
import { limits } from "../../protocol/schema/limits.ts";

/** Read in one turn. */
const bytesPerTurn = 256 * 1_024;

export interface TaskSearch {
  readonly found: readonly Task[];
  /** The last one that was read, where the others would have been too many bytes for a page. */
  readonly stoppedAt: Task | null;
}

export async function searchTasks(
  tasks: readonly Task[],
  search: string | null,
  payloadOf: (task: Task) => Promise<Payload | null>,
): Promise<TaskSearch> {
  if (search === null) return { found: tasks, stoppedAt: null };
  const found: Task[] = [];
  let bytes = 0;
  let inTurn = 0;
  let last: Task | null = null;
  for (const task of tasks) {
    const isFound = containsText(task, null, search);
    const reads = isFound ? 0 : task.payloadBytes;
    if (last !== null && bytes + reads > limits.searchBytesMax) return { found, stoppedAt: last };
    bytes += reads;
    inTurn += reads;
    if (isFound || (reads > 0 && containsText(task, await payloadOf(task), search))) found.push(task);
    last = task;
    if (inTurn < bytesPerTurn) continue;
    inTurn = 0;
    await setImmediate();
  }
  return { found, stoppedAt: null };
}

export function containsText({ id, spec }: Task, payload: Payload | null, search: string): boolean {
  const wanted = search.toLowerCase();
  const isIn = (text: string | null | undefined): boolean => text?.toLowerCase().includes(wanted) ?? false;
  if (isIn(id) || isIn(spec.taskSummary) || isIn(payload?.taskBody)) return true;
  return payload?.inputs != null && isIn(JSON.stringify(payload.inputs));
}
