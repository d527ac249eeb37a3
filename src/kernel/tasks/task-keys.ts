/**
 * Keys of creations whose tasks have ended (T12). History has them; the filters know which it may have, so that it is not
 * asked for the others:
 *
 *   a key of the caller's own   remembered as long as history is; after a restart history is always asked
 *   a key once_…                remembered for ten minutes after its task: for a call that is sent again, as the SDK does
 */
import { limits } from "../contract/limits.ts";
import { addKey, mayHaveKey } from "../index/key-filter.ts";
import { type Turn, updateCounters } from "../memory/state.ts";

const oncePrefix = "once_";

/** Its task has ended, and memory forgets it. */
export function leaveKeyToHistory(turn: Turn, key: string): void {
  const { tenant, now } = turn;
  const { taskKeysStored, taskKeysStoredUntil } = tenant.counters.record;
  if (!key.startsWith(oncePrefix)) {
    addKey(tenant.book.endedKeys, key, Number.POSITIVE_INFINITY, now);
    if (!taskKeysStored) updateCounters(turn, { taskKeysStored: true });
    return;
  }
  const until = now + limits.onceKeyMs;
  addKey(tenant.book.endedOnceKeys, key, until, now);
  // Not with each: it is written ahead, so that a restart asks a little longer.
  if (taskKeysStoredUntil < until) updateCounters(turn, { taskKeysStoredUntil: until + limits.onceKeyMs });
}

/** Whether history has to be asked before a task with this key is created. */
export function mayHaveEnded({ tenant, now }: Turn, key: string): boolean {
  const { endedKeys, endedOnceKeys } = tenant.book;
  return mayHaveKey(key.startsWith(oncePrefix) ? endedOnceKeys : endedKeys, key, now);
}
