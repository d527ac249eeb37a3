/** Many items of one call: a thousand in one turn of the loop, so that a call with very many does not stop it for others (S4). */

/** What callers send at once usually fits, and so shares one commit. */
const itemsPerTurn = 1_000;

/** `act` is called for each index in order; false ends it before the rest. The first slice is done at once. */
export function inSlices(count: number, act: (index: number) => boolean): void {
  let next = 0;
  const slice = (): void => {
    for (const end = Math.min(next + itemsPerTurn, count); next < end; next++) if (!act(next)) return;
    if (next < count) setImmediate(slice);
  };
  slice();
}
