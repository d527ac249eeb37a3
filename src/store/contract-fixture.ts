/** What the contract suite runs on, and sample rows. */
import type {
  Batch,
  EndedLease,
  EndedRequestRow,
  EndedTaskRow,
  LiveRow,
  PackedEvents,
  SignedHead,
  Store,
  StoredReceipt,
} from "./store.ts";

/** Data on which store objects are created, one after the other or side by side. */
export interface StoreFixture {
  readonly store: () => Store;
  /** Makes another writer take over from an open store. */
  readonly moveEpoch: () => void | Promise<void>;
  /** Lets the lease of a writer that is gone run out; nothing to do where one process owns the data. */
  readonly endLease?: () => Promise<void>;
  readonly dispose: () => Promise<void>;
}

/** Tests a claim on new data, with a store that is closed afterwards. */
export type Check = (claim: string, body: (fixture: StoreFixture, store: Store) => Promise<void>) => void;

export function batch(parts: Partial<Batch> & Pick<Batch, "now">): Batch {
  const history = { events: null, ended: [], endedTasks: [], endedRequests: [] };
  return {
    puts: [],
    removes: [],
    payloads: [],
    payloadRemoves: [],
    ...history,
    receipts: [],
    heads: [],
    audits: [],
    ...parts,
  };
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

/** Events of tenant t that hold their numbers. */
export function packedEvents(firstSeq: number, count: number, filler = ""): PackedEvents {
  const events = Array.from({ length: count }, (_, index) => ["t", { n: firstSeq + index, filler }]);
  return { firstSeq, count, body: JSON.stringify(events) };
}

/** A task that ended at the time `number`. */
export function endedTask(number: number, other: Partial<EndedTaskRow> = {}): EndedTaskRow {
  const id = `T-${String(number).padStart(10, "0")}`;
  const body = JSON.stringify({ number });
  return {
    tenant: "t",
    id,
    taskType: "code.review",
    status: "succeeded",
    endedAt: number,
    idempotencyKey: null,
    payload: null,
    body,
    ...other,
  };
}

/** A request whose key memory has forgotten. */
export function endedRequest(agentId: string, key: string, other: Partial<EndedRequestRow> = {}): EndedRequestRow {
  const end = { leaseId: "lse_1", endedAs: "RELEASED", endReason: null };
  return { tenant: "t", agentId, key, fingerprint: "a.b", ...end, ...other };
}

/** A receipt with the fields that the store interprets; it was stored at the time `sequence`. */
export function receipt(sequence: number, other: Partial<StoredReceipt> = {}): StoredReceipt {
  return {
    tenant: "t",
    sequence,
    id: `rcp_${sequence.toString(32).padStart(10, "0")}`,
    taskId: endedTask(Math.ceil(sequence / 2)).id,
    phase: "complete",
    recipientAi: "planner",
    sourceSystem: "code.1",
    dedupe: null,
    storedAt: sequence,
    hash: sequence.toString(16).padStart(64, "0"),
    body: JSON.stringify({ sequence, status: "success" }),
    ...other,
  };
}

export function signedHead(sequence: number, other: Partial<SignedHead> = {}): SignedHead {
  const { tenant, hash } = receipt(sequence);
  return { tenant, sequence, hash, at: sequence, keyId: "0123456789abcdef", signature: "c2lnbmVk", ...other };
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
