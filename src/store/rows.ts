/** The rows of history and ledger, each described once: its columns in their order, and how each is read. */
import type { SQLOutputValue } from "node:sqlite";
import { snakeCase } from "../kernel/contract/field.ts";
import { StoreFault } from "./faults.ts";
import type { AuditRow, EndedLease, EndedRequestRow, EndedTaskRow, SignedHead, StoredReceipt } from "./store.ts";

export type Row = Readonly<Record<string, SQLOutputValue>>;

export function textOf(row: Row | undefined, column: string): string {
  const value = row?.[column];
  if (typeof value !== "string") throw new StoreFault(`column ${column} holds ${typeof value}, not text`);
  return value;
}

export function numberOf(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== "number") throw new StoreFault(`column ${column} holds ${typeof value}, not a number`);
  return value;
}

export function bytesOf(row: Row | undefined, column: string): Uint8Array {
  const value = row?.[column];
  if (!(value instanceof Uint8Array)) throw new StoreFault(`column ${column} holds ${typeof value}, not bytes`);
  return value;
}

const textOrNull = (row: Row, column: string): string | null => (row[column] === null ? null : textOf(row, column));
const numberOrNull = (row: Row, column: string): number | null => (row[column] === null ? null : numberOf(row, column));
const flag = (row: Row, column: string): boolean => numberOf(row, column) === 1;

export const endedLeaseRow = describe<EndedLease>({
  tenant: textOf,
  id: textOf,
  agentId: textOf,
  resource: textOf,
  predicate: textOf,
  writes: flag,
  endedAt: numberOf,
  body: textOf,
});

export const endedTaskRow = describe<EndedTaskRow>({
  tenant: textOf,
  id: textOf,
  taskType: textOf,
  status: textOf,
  endedAt: numberOf,
  idempotencyKey: textOrNull,
  payload: numberOrNull,
  body: textOf,
});

export const endedRequestRow = describe<EndedRequestRow>({
  tenant: textOf,
  agentId: textOf,
  key: textOf,
  fingerprint: textOf,
  leaseId: textOf,
  endedAs: textOf,
  endReason: textOrNull,
});

export const receiptRow = describe<StoredReceipt>({
  tenant: textOf,
  sequence: numberOf,
  id: textOf,
  taskId: textOf,
  phase: textOf,
  recipientAi: textOf,
  sourceSystem: textOf,
  dedupe: textOrNull,
  storedAt: numberOf,
  hash: textOf,
  body: textOf,
});

export const auditRow = describe<AuditRow>({
  tenant: textOf,
  sequence: numberOf,
  at: numberOf,
  actor: textOf,
  action: textOf,
  hash: textOf,
  body: textOf,
});

export const headRow = describe<SignedHead>({
  tenant: textOf,
  sequence: numberOf,
  hash: textOf,
  at: numberOf,
  keyId: textOf,
  signature: textOf,
});

/** Its names in SQL, and what reads a row; a column that does not hold what it must is a StoreFault. */
function describe<T>(fields: { readonly [Key in keyof T]: (row: Row, column: string) => T[Key] }) {
  const readers = Object.entries<(row: Row, column: string) => unknown>(fields).map(
    ([key, read]) => [key, snakeCase(key), read] as const,
  );
  return {
    columns: readers.map(([, column]) => column),
    read: (row: Row): T => {
      const found: Record<string, unknown> = {};
      for (const [key, column, read] of readers) found[key] = read(row, column);
      return found as T;
    },
  };
}
