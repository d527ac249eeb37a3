/**
 * An exact copy of a kernel's state, including what is not stored: the queues and where tasks are parked. Records and
 * functions are shared, because they never change.
 */
import type { State } from "../../src/kernel/kernel.ts";
import { noRequests } from "../../src/kernel/memory/task-state.ts";

export function cloneState(state: State): State {
  const copies = new Map<object, object>([[noRequests, noRequests]]);
  const unfilled: (readonly [object, object])[] = [];
  const copyOf = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const known = copies.get(value);
    if (known !== undefined) return known;
    // Typed arrays.
    const isFull = ArrayBuffer.isView(value);
    const copy = isFull ? structuredClone(value) : emptyLike(value);
    copies.set(value, copy);
    if (!isFull) unfilled.push([value, copy]);
    return copy;
  };
  const root = copyOf(state) as State;
  // Not by recursion: leases are linked to each other in long lists.
  for (let next = unfilled.pop(); next !== undefined; next = unfilled.pop()) fill(next[0], next[1], copyOf);
  return root;
}

function emptyLike(value: object): object {
  if (Array.isArray(value)) return [];
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  return Object.create(Object.getPrototypeOf(value)) as object;
}

function fill(from: object, to: object, copyOf: (value: unknown) => unknown): void {
  if (from instanceof Map && to instanceof Map) for (const [key, value] of from) to.set(copyOf(key), copyOf(value));
  else if (from instanceof Set && to instanceof Set) for (const value of from) to.add(copyOf(value));
  else if (Array.isArray(from) && Array.isArray(to)) for (const value of from) to.push(copyOf(value));
  else {
    for (const [name, value] of Object.entries(from)) Reflect.set(to, name, name === "record" ? value : copyOf(value));
  }
}
