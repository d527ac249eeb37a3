/** Whether a text is in what a task says: its id, its summary, its body or its inputs. */
import type { Payload, Task } from "../../kernel/contract/task-records.ts";

export function containsText({ id, spec }: Task, payload: Payload | null, search: string): boolean {
  const wanted = search.toLowerCase();
  const isIn = (text: string | null | undefined): boolean => text?.toLowerCase().includes(wanted) ?? false;
  if (isIn(id) || isIn(spec.taskSummary) || isIn(payload?.taskBody)) return true;
  return payload?.inputs != null && isIn(JSON.stringify(payload.inputs));
}
