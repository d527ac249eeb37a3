/**
 * The process dies and restarts: the kernel is dropped and restored from what a store would hold. The kernel's snapshot
 * must equal the stored records, or the kernel forgot to list a change.
 */

import type { StoredRecord } from "../src/kernel/contract/records.ts";
import { type EndedLeases, type Handle, jumpAhead, restore, snapshot } from "../src/kernel/kernel.ts";
import { quotaUse } from "../src/kernel/views.ts";
import { count } from "./counters.ts";
import { violated } from "./invariants/step.ts";
import { allRecords, createRecordStore, fingerprint, keep } from "./record-store.ts";
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
  for (const { id } of world.tenants) {
    const [held, counted] = [world.state, restored].map((state) => JSON.stringify(quotaUse(state, id, world.now)));
    if (held !== counted) violated("S4", `the quotas of ${id} are used otherwise after a restart`, held, counted);
  }
  world.state = restored;
  count(counters, "restored from records");
  if (isBetweenSlices) count(counters, "restored between two slices");
}

/** What the store still has of the ended leases: those that the kernel remembers. */
export function endedSince({ state, ledger }: World): EndedLeases {
  const { from } = state.past;
  return { leases: ledger.endedLeases.filter(({ endedAt }) => (endedAt ?? 0) >= from), from };
}

/**
 * Restores the backup beside the world, as into a fresh folder that knows of no other restore, and takes the next backup.
 * Every live lease must have a fence beyond those of the world and of all restores before it (L11, S6).
 */
export function restoreBackup(world: World): void {
  const { backup, fences, restores } = world.backups;
  const records = allRecords(world.store);
  world.backups.backup = records;
  if (backup.length === 0) return;
  const state = restore(backup);
  const wall = world.now + ++world.backups.restores;
  const { changes, events } = jumpAhead(state, { wall, losses: 1 }, world.now);
  if (events.length > 0) violated("L11", "a restore announces what nobody can have followed", ...events);
  const store = createRecordStore();
  keep(store, restoredHandles(backup));
  const before = new Map(store.lease);
  keep(store, changes);
  if (fingerprint(allRecords(store)) !== fingerprint(snapshot(state)))
    violated("S1", "a restore changes what it does not list");
  for (const [id, lease] of store.lease) {
    const known = Math.max(world.memory.fences.get(lease.tenant) ?? 0, fences.get(lease.tenant) ?? 0);
    if (lease.state === "CLOSING") continue;
    if (lease.fence <= known)
      violated("L11", `after restore ${restores + 1} a live lease is not above ${known}`, lease);
    if (lease.generation !== (before.get(id)?.generation ?? 0) + 1)
      violated("S6", "a live lease was not re-issued", lease);
    count(world.counters, "L11 re-issued after a restore");
  }
  for (const { tenant, fence } of store.lease.values()) fences.set(tenant, Math.max(fences.get(tenant) ?? 0, fence));
  for (const { tenant, fence } of store.counters.values())
    if (fence < (fences.get(tenant) ?? 0)) violated("L11", "the counter is behind a fence", tenant, fence);
}

function restoredHandles(records: readonly StoredRecord[]): Handle[] {
  return records.map(({ kind, record }) => ({ kind, record, alive: true, row: 0 }) as Handle);
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
