/**
 * Records as they are stored: JSON with what is null, false or usual left out, because most of a lease is. How each
 * kind is written and read is generated from its description.
 *
 * Leases and tasks are lists: what every one has by position, and after it an object of what only some have. Without
 * names a list is parsed in half the time, which a million leases at a restart feel, and is a third smaller; the
 * store's views `leases` and `tasks` put the names back for people. Measured: through one list and the language's own
 * routine it takes half as long as put together from pieces, which are joined only when they are sent.
 */
import { leaseRepeating, leaseRow, type RecordKind } from "../../kernel/contract/records.ts";
import type { EndedTask } from "../../kernel/contract/task-records.ts";
import type { RestoredRecord } from "../../kernel/kernel.ts";
import { type PayloadRow, payloadOf, readers, type TaskRow, taskFrom } from "./records.gen.ts";

export { leaseText, readLease, readLeases, recordText } from "./records.gen.ts";

export function readRecord(kind: string, text: string, row: number): RestoredRecord {
  return { kind, record: readers[kind as RecordKind](text), row } as RestoredRecord;
}

/** How the store loads leases: the columns in which values are few. */
export const leaseLists = { kind: "lease", repeating: leaseRepeating.map((key) => leaseRow.indexOf(key)) } as const;

/** A task of history, with its payload. */
export function readEndedTask(text: string): EndedTask {
  const [task, payload] = JSON.parse(text) as [TaskRow, PayloadRow | null];
  return { ...taskFrom(task), payload: payload === null ? null : payloadOf(payload) };
}
