/**
 * What a store would hold: every record that an outcome listed as changed, written or deleted. The simulation restores
 * from here and not from a snapshot, so a change that the kernel forgot to list is found.
 */

import type { Policy } from "../src/kernel/contract/policy-records.ts";
import type {
  Agent,
  Cell,
  Counters,
  Digest,
  Key,
  Lease,
  RecordKind,
  RecordOf,
  Request,
  Resource,
  StoredRecord,
  Tenant,
} from "../src/kernel/contract/records.ts";
import type { ForeignObligation, Payload, Task, TaskType, Worker } from "../src/kernel/contract/task-records.ts";
import type { Write } from "../src/kernel/contract/write-records.ts";
import type { Handle } from "../src/kernel/kernel.ts";

export interface RecordStore {
  readonly tenant: Map<string, Tenant>;
  readonly counters: Map<string, Counters>;
  readonly agent: Map<string, Agent>;
  readonly digest: Map<string, Digest>;
  readonly resource: Map<string, Resource>;
  readonly cell: Map<string, Cell>;
  readonly request: Map<string, Request>;
  readonly lease: Map<string, Lease>;
  readonly key: Map<string, Key>;
  readonly task: Map<string, Task>;
  readonly payload: Map<string, Payload>;
  readonly task_type: Map<string, TaskType>;
  readonly worker: Map<string, Worker>;
  readonly foreign_obligation: Map<string, ForeignObligation>;
  readonly write: Map<string, Write>;
  readonly policy: Map<string, Policy>;
}

/** One record before and after a step; null where there was none, or is none any more. */
export type Change = {
  [K in RecordKind]: { readonly kind: K; readonly before: RecordOf[K] | null; readonly after: RecordOf[K] | null };
}[RecordKind];

export function createRecordStore(): RecordStore {
  return {
    tenant: new Map(),
    counters: new Map(),
    agent: new Map(),
    digest: new Map(),
    resource: new Map(),
    cell: new Map(),
    request: new Map(),
    lease: new Map(),
    key: new Map(),
    task: new Map(),
    payload: new Map(),
    task_type: new Map(),
    worker: new Map(),
    foreign_obligation: new Map(),
    write: new Map(),
    policy: new Map(),
  };
}

/** Stores what a step changed, each record once, and returns the changes. */
export function keep(store: RecordStore, handles: Iterable<Handle>): Change[] {
  const changes: Change[] = [];
  for (const handle of new Set(handles)) {
    // A handle's kind and record belong together, which its type does not express.
    const { kind, record } = handle as StoredRecord;
    const records = store[kind] as Map<string, typeof record>;
    const id = storedAs({ kind, record } as StoredRecord);
    const before = records.get(id) ?? null;
    if (handle.alive) records.set(id, record);
    else records.delete(id);
    changes.push({ kind, before, after: handle.alive ? record : null } as Change);
  }
  return changes;
}

export function allRecords(store: RecordStore): StoredRecord[] {
  const kinds = Object.keys(store) as RecordKind[];
  return kinds.flatMap((kind) => [...store[kind].values()].map((record) => ({ kind, record }) as StoredRecord));
}

/** Text by which two sets of records can be compared, whatever their order. */
export function fingerprint(records: readonly StoredRecord[]): string {
  return records
    .map((one) => `${one.kind} ${storedAs(one)} ${JSON.stringify(one.record)}`)
    .sort()
    .join("\n");
}

/** Ids are unique within a tenant; two tenants may well use the same. */
function storedAs({ kind, record }: StoredRecord): string {
  switch (kind) {
    case "tenant":
    case "key":
    case "policy":
      return record.id;
    case "counters":
      return record.tenant;
    case "digest":
      return `${record.tenant} ${record.agentId}`;
    case "resource":
      return `${record.tenant} ${record.name}`;
    case "write":
      return `${record.tenant} ${record.resource} ${record.at} ${record.fence} ${record.predicate}`;
    case "payload":
    case "foreign_obligation":
      return `${record.tenant} ${record.taskId}`;
    case "task_type":
      return `${record.tenant} ${record.taskType}`;
    case "agent":
    case "cell":
    case "request":
    case "lease":
    case "task":
    case "worker":
      return `${record.tenant} ${record.id}`;
  }
}
