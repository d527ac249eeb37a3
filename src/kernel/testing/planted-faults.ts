/** A kernel that throws in the middle of a step, as a bug in it would (S2). */
import type { State } from "../kernel.ts";

export class PlantedFault extends Error {
  override readonly name = "PlantedFault";
}

/**
 * The nth change that is recorded from now on, in whichever step, throws; what came before it in that step is done.
 * Returns what takes the fault out again.
 */
export function throwAtChange(state: State, nth: number): () => void {
  let changes = state.changes;
  let left = nth;
  Object.defineProperty(state, "changes", {
    configurable: true,
    enumerable: true,
    get: () => changes,
    set(list: State["changes"]) {
      list.push = (...added) => {
        left -= added.length;
        if (left <= 0) throw new PlantedFault(`planted at change ${nth}`);
        return Array.prototype.push.apply(list, added);
      };
      changes = list;
    },
  });
  return () =>
    Object.defineProperty(state, "changes", { configurable: true, enumerable: true, writable: true, value: [] });
}

export function isPlanted(fault: unknown): boolean {
  return fault instanceof Error && (fault instanceof PlantedFault || isPlanted(fault.cause));
}
