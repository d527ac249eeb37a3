/**
 * Looks at every item of a large collection, a slice at a time, so that commands go on in between. What is there from
 * beginning to end is seen once; what comes or goes meanwhile may be seen or not.
 */
import type { Engine } from "../../engine/engine.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";

/** How long others wait at most, and how many items are looked at between two looks at the clock. */
const sliceMs = 2;
const stride = 64;

export interface Scanned {
  readonly refusal: Refusal | null;
  readonly now: Millis;
}

/** `begin` is called again, for a fresh start, if the engine has started over from what is stored (S2). */
export async function scan<T>(
  engine: Engine,
  begin: (state: State) => Iterable<T> | Refusal,
  look: (item: T) => void,
): Promise<Scanned> {
  let scanned: State | null = null;
  let items: Iterator<T> | null = null;
  for (;;) {
    const { isDone, refusal, now } = await engine.ask((state, at) => {
      if (state !== scanned) {
        const begun = begin(state);
        if (isRefusal(begun)) return { isDone: true, refusal: begun, now: at };
        scanned = state;
        items = begun[Symbol.iterator]();
      }
      return { isDone: items === null || lookAtSlice(items, look), refusal: null, now: at };
    });
    if (isDone) return { refusal, now };
  }
}

/** True when it was the last one. */
function lookAtSlice<T>(items: Iterator<T>, look: (item: T) => void): boolean {
  const end = performance.now() + sliceMs;
  do {
    for (let count = 0; count < stride; count++) {
      const next = items.next();
      if (next.done === true) return true;
      look(next.value);
    }
  } while (performance.now() < end);
  return false;
}

export function isRefusal(found: object): found is Refusal {
  return "type" in found && found.type === "refused";
}
