/**
 * S4: about what memory keeps of each tenant's live records, in bytes. It is brought up to date at the end of each step
 * from what the step has changed, in one place, so that no kind of record is left out. Fixed parts stand for a record, its
 * entry and its places in indexes. Texts count by their length, and free JSON as objects, which take a multiple of it.
 */
import type { Policy } from "../contract/policy-records.ts";
import type { Agent, Intent, Lease, RecordKind, RecordOf, Request, Resource, Tenant } from "../contract/records.ts";
import type { DedupeMark, ForeignObligation, Task, Worker } from "../contract/task-records.ts";
import type { Write } from "../contract/write-records.ts";
import type { AgentEntry, Entry, Handle, State, TenantEntry } from "./state.ts";

/** A number of bytes for each record of the kind; what it holds of texts comes on top. */
const fixedBytes: Readonly<Record<RecordKind, number>> = {
  tenant: 4_096,
  counters: 256,
  agent: 1_024,
  digest: 256,
  resource: 768,
  cell: 512,
  request: 1_024,
  lease: 768,
  key: 512,
  task: 1_536,
  payload: 128,
  task_type: 512,
  worker: 1_536,
  foreign_obligation: 1_024,
  write: 384,
  // The operator's own, in number and size limited for all tenants together.
  policy: 0,
};

/** What a text takes besides its characters, and an object in a list. */
const textBytes = 24;
const itemBytes = 64;
/** How much larger JSON is as objects than as text, at worst about. */
const jsonFactor = 8;

/** Brings the counts up to date with these records: at the end of a step what it changed, or what was restored. */
export function countMemory({ tenants }: Pick<State, "tenants">, handles: readonly Handle[]): void {
  // A step mostly changes records of one tenant.
  let tenantId = "";
  let tenant: TenantEntry | undefined;
  for (const handle of handles) {
    // Handles are the kernel's own entries.
    const entry = handle as Entry<RecordKind>;
    const { kind, record } = entry;
    let bytes = 0;
    // One function for what most steps change.
    if (entry.alive) {
      bytes = fixedBytes[kind];
      if (kind === "lease") {
        const { resource, purpose, requestKey } = record as Lease;
        bytes += resource.length + (purpose?.length ?? 0) + (requestKey?.length ?? 0);
      } else if (kind === "agent") {
        const { labels, concerns } = record as Agent;
        for (const label in labels) bytes += 2 * textBytes + label.length + (labels[label]?.length ?? 0);
        const { concernNames: known } = entry as unknown as AgentEntry;
        if (known?.of === concerns) bytes += concerns.length * itemBytes + known.chars;
        else for (const { resource } of concerns) bytes += itemBytes + resource.length;
      } else if (kind !== "counters") bytes += textsOf(kind, record);
    }
    if (bytes === entry.bytes) continue;
    const id = kind === "tenant" ? (record as Tenant).id : (record as OfTenant).tenant;
    if (tenant === undefined || id !== tenantId) tenant = tenants.get(id);
    tenantId = id;
    if (tenant !== undefined) tenant.memoryBytes += bytes - entry.bytes;
    entry.bytes = bytes;
  }
}

type OfTenant = Exclude<RecordOf[RecordKind], Tenant | Policy>;

function textsOf(kind: Exclude<RecordKind, "lease" | "agent" | "counters">, record: RecordOf[RecordKind]): number {
  switch (kind) {
    case "request":
      return requestTexts(record as Request);
    case "task":
      return taskTexts(record as Task);
    case "worker":
      return workerTexts(record as Worker);
    case "resource":
      return resourceTexts(record as Resource);
    case "foreign_obligation":
      return marksSize((record as ForeignObligation).dedupes);
    case "write":
      return sizeOf((record as Write).resource) + sizeOf((record as Write).version);
    case "tenant":
    case "digest":
    case "cell":
    case "key":
    case "payload":
    case "task_type":
    case "policy":
      return 0;
  }
}

function requestTexts({ intents, picked, key, purpose, warnings, leaseIds, ended }: Request): number {
  let size = sizeOf(key) + sizeOf(purpose) + intentsSize(intents) + sizeOfAll(picked) + sizeOfAll(warnings);
  size += leaseIds.length * itemBytes;
  for (const lease of ended) size += fixedBytes.lease / 2 + sizeOf(lease.resource) + sizeOf(lease.purpose);
  return size;
}

function taskTexts({ spec, past, waitingOn, dedupes, progress }: Task): number {
  const { taskSummary, payloadPointer, requires, intents, dependsOn, concurrencyKey, idempotencyKey } = spec;
  return (
    sizeOf(taskSummary) +
    sizeOf(payloadPointer) +
    sizeOf(concurrencyKey) +
    sizeOf(idempotencyKey) +
    sizeOfAll(requires) +
    sizeOfAll(dependsOn) +
    sizeOfAll(waitingOn) +
    intentsSize(intents) +
    marksSize(dedupes) +
    past.length * 4 * itemBytes +
    (progress === null || progress === undefined ? 0 : JSON.stringify(progress).length * jsonFactor)
  );
}

function workerTexts({ capabilities, polls }: Worker): number {
  let size = sizeOfAll(capabilities);
  for (const { leaseIds } of polls) size += itemBytes + leaseIds.length * itemBytes;
  return size;
}

function resourceTexts({ name, driver, hardware, fault, fenceReason: why, spent: { length } }: Resource): number {
  return sizeOf(name) + sizeOf(driver) + sizeOfAll(hardware) + sizeOf(fault) + sizeOf(why) + length * itemBytes;
}

function intentsSize(intents: readonly Intent[]): number {
  let size = 0;
  for (const { resource, to } of intents) size += itemBytes + sizeOf(resource) + sizeOf(to);
  return size;
}

function marksSize(marks: readonly DedupeMark[]): number {
  let size = 0;
  for (const { key, receiptId } of marks) size += 3 * itemBytes + key.length + receiptId.length;
  return size;
}

function sizeOfAll(texts: readonly string[]): number {
  let size = 0;
  for (const text of texts) size += sizeOf(text);
  return size;
}

function sizeOf(text: string | null | undefined): number {
  return text === null || text === undefined ? 0 : textBytes + text.length;
}
