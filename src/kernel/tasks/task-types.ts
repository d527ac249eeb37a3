/** T6: what a tenant has set for a type of task, and how long such tasks usually take (T8). */

import type { TaskType } from "../contract/task-records.ts";
import { createTaskTypeEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { TaskTypeEntry } from "../memory/task-state.ts";

export function placeTaskType({ book }: TenantEntry, record: TaskType): TaskTypeEntry {
  const entry = createTaskTypeEntry(record);
  book.types.set(record.taskType, entry);
  return entry;
}

/** How much the newest duration weighs. */
const durationShare = 0.1;

/** Kept only for types that have settings, because each change is a row: who wants speculation sets its share. */
export function noteDuration(turn: Turn, { book }: TenantEntry, taskType: string, ms: number): void {
  const entry = book.types.get(taskType);
  if (entry === undefined || entry.record.speculateShare === null) return;
  const { usualDuration, samples } = entry.record;
  const usual = usualDuration === null ? ms : usualDuration + (ms - usualDuration) * durationShare;
  entry.record = { ...entry.record, usualDuration: usual, samples: samples + 1 };
  changed(turn, entry);
}
