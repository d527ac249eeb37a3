/**
 * The leases that a worker keeps, in memory that the event loop and the thread of heartbeats share. Most tasks are over long
 * before their first heartbeat is due; a message to the thread for each would cost more than all else that a worker does.
 *
 *   slot:  version (odd: kept)  │  the lease's id  │  lasts, ms  │  until, by uptime, of this version
 */
import { leasesMax } from "./shared-time.ts";

/** Lease ids have some 30 characters of ASCII. */
const idBytesMax = 64;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface LeaseTable {
  readonly versions: Int32Array<SharedArrayBuffer>;
  readonly lasts: Float64Array<SharedArrayBuffer>;
  readonly untils: Float64Array<SharedArrayBuffer>;
  readonly untilVersions: Int32Array<SharedArrayBuffer>;
  readonly ids: Uint8Array<SharedArrayBuffer>;
}

export function createLeaseTable(): LeaseTable {
  return {
    versions: new Int32Array(new SharedArrayBuffer(4 * leasesMax)),
    lasts: new Float64Array(new SharedArrayBuffer(8 * leasesMax)),
    untils: new Float64Array(new SharedArrayBuffer(8 * leasesMax)),
    untilVersions: new Int32Array(new SharedArrayBuffer(4 * leasesMax)),
    ids: new Uint8Array(new SharedArrayBuffer(idBytesMax * leasesMax)),
  };
}

/** Written by the event loop alone. Returns the slot's version; null: the id is too long for a slot. */
export function writeLease(table: LeaseTable, slot: number, leaseId: string, lastsMs: number): number | null {
  const { versions, lasts, ids } = table;
  const bytes = encoder.encode(leaseId);
  if (bytes.length >= idBytesMax) return null;
  ids.set(bytes, slot * idBytesMax);
  ids[slot * idBytesMax + bytes.length] = 0;
  lasts[slot] = lastsMs;
  return Atomics.add(versions, slot, 1) + 1;
}

export function eraseLease({ versions }: LeaseTable, slot: number): void {
  Atomics.add(versions, slot, 1);
}

/** A heartbeat was answered. Written by the thread alone: what it says of an earlier lease of the slot has another version. */
export function writeUntil({ untils, untilVersions }: LeaseTable, slot: number, version: number, until: number): void {
  untils[slot] = until;
  Atomics.store(untilVersions, slot, version);
}

/** Until when the lease lasts; null: no heartbeat has been answered yet. */
export function readUntil({ untils, untilVersions }: LeaseTable, slot: number, version: number): number | null {
  return Atomics.load(untilVersions, slot) === version ? (untils[slot] ?? 0) : null;
}

/** What is in a slot, as the thread reads it; null: nothing, or it changed meanwhile. */
export function readLease(
  { versions, lasts, ids }: LeaseTable,
  slot: number,
): { readonly version: number; readonly leaseId: string; readonly lastsMs: number } | null {
  const version = Atomics.load(versions, slot);
  if (version % 2 === 0) return null;
  const bytes = ids.slice(slot * idBytesMax, (slot + 1) * idBytesMax);
  const lastsMs = lasts[slot] ?? 0;
  if (Atomics.load(versions, slot) !== version) return null;
  return { version, leaseId: decoder.decode(bytes.subarray(0, bytes.indexOf(0))), lastsMs };
}
