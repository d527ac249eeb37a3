/** What the contract suite is run on, and made of. */
import type { Batch, EndedLease, EndedSinceQuery, LiveRow, Store } from "./store.ts";

/** Data that store objects are made for, one after the other or side by side. */
export interface StoreFixture {
  readonly store: () => Store;
  /** Makes another the writer behind the back of an open store. */
  readonly moveEpoch: () => void;
  readonly dispose: () => Promise<void>;
}

/** Tries a claim on new data, with a store that is closed afterwards. */
export type Check = (claim: string, body: (fixture: StoreFixture, store: Store) => Promise<void>) => void;

export function batch(parts: Partial<Batch> & Pick<Batch, "now">): Batch {
  return { puts: [], removes: [], events: null, ended: [], ...parts };
}

export function row(n: number, kind = "lease"): LiveRow {
  return { n, kind, body: JSON.stringify({ id: `lse_${n}`, tenant: "t" }) };
}

/** A lease that ended at the time `number`. */
export function endedLease(number: number, other: Partial<EndedLease> = {}): EndedLease {
  return {
    tenant: "t",
    id: `lse_${String(number).padStart(10, "0")}`,
    agentId: "agt_1",
    resource: `FILE:/${number}`,
    predicate: "MUTATES",
    writes: true,
    endedAt: number,
    body: JSON.stringify({ number }),
    ...other,
  };
}

export async function liveRows(store: Store): Promise<readonly LiveRow[]> {
  const rows: LiveRow[] = [];
  await store.load({
    onRows: (chunk) => rows.push(...chunk),
    lists: { kind: "none", repeating: [] },
    onLists: () => undefined,
  });
  return rows;
}

export async function observed(store: Store, query: EndedSinceQuery): Promise<readonly EndedLease[]> {
  const rows: EndedLease[] = [];
  for await (const portion of store.endedSince(query)) rows.push(...portion);
  return rows;
}
