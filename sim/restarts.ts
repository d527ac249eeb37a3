/**
 * The process dies and restarts: the kernel is dropped and restored from what a store would hold. The kernel's snapshot
 * must equal the stored records, or the kernel forgot to list a change.
 */

import type { StoredRecord } from "../src/kernel/contract/records.ts";
import { type EndedLeases, restore, snapshot } from "../src/kernel/kernel.ts";
import { count } from "./counters.ts";
import { violated } from "./invariants/step.ts";
import { allRecords, fingerprint } from "./record-store.ts";
import { settleSlice } from "./send.ts";
import type { World } from "./world.ts";

export function compareWithStore(world: World): void {
  const stored = fingerprint(allRecords(world.store));
  const held = fingerprint(snapshot(world.state));
  if (stored !== held)
    violated("S1", "the records listed as changed are not what is alive", ...differences(stored, held));
}

export function restart(world: World): void {
  const { random, counters } = world;
  const isBetweenSlices = random.chance(0.5) && settleSlice(world, random.between(1, 3));
  compareWithStore(world);
  const records = allRecords(world.store);
  const throughText: StoredRecord[] = random.chance(0.5) ? JSON.parse(JSON.stringify(records)) : records;
  // A store gives its records back in no particular order.
  for (let at = throughText.length - 1; at > 0; at--) swap(throughText, at, random.below(at + 1));
  const restored = restore(throughText, endedSince(world));
  if (fingerprint(snapshot(restored)) !== fingerprint(records)) violated("S1", "restore and snapshot are not inverses");
  world.state = restored;
  count(counters, "restored from records");
  if (isBetweenSlices) count(counters, "restored between two slices");
}

/** What the store still has of the ended leases: those that the kernel remembers. */
export function endedSince({ state, ledger }: World): EndedLeases {
  const { from } = state.past;
  return { leases: ledger.endedLeases.filter(({ endedAt }) => (endedAt ?? 0) >= from), from };
}

function swap<T>(list: T[], a: number, b: number): void {
  const [x, y] = [list[a], list[b]];
  if (x === undefined || y === undefined) return;
  list[a] = y;
  list[b] = x;
}

function differences(stored: string, held: string): string[] {
  const [inStore, inKernel] = [stored.split("\n"), held.split("\n")];
  const onlyInStore = inStore.filter((line) => !inKernel.includes(line)).map((line) => `store only: ${line}`);
  const onlyInKernel = inKernel.filter((line) => !inStore.includes(line)).map((line) => `kernel only: ${line}`);
  return [...onlyInStore, ...onlyInKernel].slice(0, 6);
}
