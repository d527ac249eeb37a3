/** Queries on the ledger by the read-only connection; and where it ends, for the writer at a start. */
import type { DatabaseSync } from "node:sqlite";
import { ownReceiptIds } from "./migrations.ts";
import { headRow, numberOf, receiptRow, textOf } from "./rows.ts";
import type { Handlers } from "./sqlite-calls.ts";
import { type LedgerHead, receiptBytesPerPage, type StoredReceipt } from "./store.ts";

/** How many receipts a page examines while it searches: some ten milliseconds, then other queries run. */
export const receiptsPerPage = 20_000;
/** Bytes that are returned at once; bodies can be large. */
const bytesPerAnswer = 8 * 1024 * 1024;

export type LedgerCalls = "receiptsById" | "receiptsByDedupe" | "receiptsPage" | "receiptsAfter" | "signedHeads";

export function prepareLedgerQueries(db: DatabaseSync): Handlers<LedgerCalls> {
  const byGivenIds = db.prepare(`
    SELECT * FROM receipts INDEXED BY receipts_by_id
    WHERE tenant = ? AND NOT id GLOB '${ownReceiptIds}*' AND id IN (SELECT value FROM json_each(?))`);
  const bySequences = db.prepare(`
    SELECT * FROM receipts INDEXED BY receipts_by_sequence
    WHERE tenant = ? AND sequence IN (SELECT value FROM json_each(?))`);
  const byDedupe = db.prepare(`
    SELECT * FROM receipts WHERE tenant = ? AND dedupe IN (SELECT value FROM json_each(?)) ORDER BY key`);
  const after = db.prepare(`
    SELECT * FROM receipts INDEXED BY receipts_by_sequence
    WHERE tenant = ? AND sequence > ? ORDER BY sequence LIMIT ?`);
  const heads = db.prepare("SELECT * FROM heads WHERE tenant = ? AND sequence > ? ORDER BY sequence, key LIMIT ?");
  return {
    receiptsById: (tenant, ids) => {
      const own = ids.filter((id) => id.startsWith(ownReceiptIds));
      const given = own.length === ids.length ? [] : ids.filter((id) => !id.startsWith(ownReceiptIds));
      const found = [
        ...(own.length === 0 ? [] : bySequences.all(tenant, JSON.stringify(own.map(sequenceIn)))),
        ...(given.length === 0 ? [] : byGivenIds.all(tenant, JSON.stringify(given))),
      ].map(receiptRow.read);
      return found.filter(({ id }) => ids.includes(id)).sort((a, b) => a.sequence - b.sequence);
    },
    receiptsByDedupe: (tenant, keys) => byDedupe.all(tenant, JSON.stringify(keys)).map(receiptRow.read),
    receiptsPage: preparePage(db),
    receiptsAfter: ({ tenant, sequence, limit }) => upToBytes(after.iterate(tenant, sequence, limit), bytesPerAnswer),
    signedHeads: ({ tenant, sequence, limit }) => heads.all(tenant, sequence, limit).map(headRow.read),
  };
}

function preparePage(db: DatabaseSync): Handlers<"receiptsPage">["receiptsPage"] {
  const last = db.prepare("SELECT coalesce(max(sequence), 0) AS value FROM receipts WHERE tenant = ?");
  const timeOf = db.prepare("SELECT stored_at FROM receipts WHERE tenant = ? AND sequence = ?");
  const oldestFirst = prepareSearch(db, "ASC");
  const newestFirst = prepareSearch(db, "DESC");

  return (query) => {
    const { tenant, limit, after = 0, taskId, phase = null, recipientAi = null, sourceSystem = null, since } = query;
    const high = numberOf(last.get(tenant), "value");
    const isOld = (sequence: number): boolean => {
      const row = timeOf.get(tenant, sequence);
      return row === undefined || numberOf(row, "stored_at") < (since ?? 0);
    };
    // All that can match lies above `start` and up to `end`; one page examines a part of it, from its one end on.
    const start = since === undefined ? after : lastOld(after, high, isOld);
    const end = Math.min(high, (query.before ?? high + 1) - 1);
    const isDown = query.newestFirst === true;
    const part = taskId === undefined ? receiptsPerPage : high;
    const from = isDown ? Math.max(start, end - part) : start;
    const to = isDown ? end : Math.min(start + part, end);
    const filters = [phase, recipientAi, sourceSystem] as const;
    const search = isDown ? newestFirst : oldestFirst;
    const rows =
      taskId === undefined
        ? search.all.iterate(tenant, from, to, ...filters, limit)
        : search.ofTask.iterate(tenant, from, to, ...filters, limit, taskId);
    const receipts = upToBytes(rows, receiptBytesPerPage);
    const found = receipts.at(-1);
    const bytes = receipts.reduce((sum, { body }) => sum + body.length, 0);
    const isCut = receipts.length >= limit || bytes >= receiptBytesPerPage;
    if (isCut && found !== undefined) return { receipts, next: found.sequence };
    if (isDown) return { receipts, next: from > start ? from + 1 : null };
    return { receipts, next: to < end ? to : null };
  };
}

function prepareSearch(db: DatabaseSync, order: "ASC" | "DESC") {
  const matching = `sequence > ?2 AND sequence <= ?3
      AND (?4 IS NULL OR phase = ?4) AND (?5 IS NULL OR recipient_ai = ?5) AND (?6 IS NULL OR source_system = ?6)`;
  return {
    all: db.prepare(`
      SELECT * FROM receipts INDEXED BY receipts_by_sequence
      WHERE tenant = ?1 AND ${matching} ORDER BY sequence ${order} LIMIT ?7`),
    // A task's receipts are adjacent in their index, so there is nothing to bound.
    ofTask: db.prepare(`
      SELECT * FROM receipts INDEXED BY receipts_by_task
      WHERE tenant = ?1 AND task_id = ?8 AND ${matching} ORDER BY key ${order} LIMIT ?7`),
  };
}

/** Up to the one that passes these bytes. */
function upToBytes(rows: Iterable<Record<string, unknown>>, bytesMax: number): StoredReceipt[] {
  const receipts: StoredReceipt[] = [];
  let bytes = 0;
  for (const row of rows) {
    const receipt = receiptRow.read(row as Parameters<typeof receiptRow.read>[0]);
    receipts.push(receipt);
    bytes += receipt.body.length;
    if (bytes >= bytesMax) break;
  }
  return receipts;
}

/** The last key that is too old, by binary search: times grow with the keys. `low` counts as too old. */
export function lastOld(low: number, high: number, isOld: (key: number) => boolean): number {
  let [before, at] = [low, high + 1];
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (isOld(middle)) before = middle;
    else at = middle;
  }
  return before;
}

/** Steps from tenant to tenant through the index, so that the cost depends on tenants and not on receipts. */
export function ledgerHeads(db: DatabaseSync): readonly LedgerHead[] {
  const rows = db.prepare(`
    WITH RECURSIVE tenants (tenant) AS (
      SELECT min(tenant) FROM receipts
      UNION ALL SELECT (SELECT min(tenant) FROM receipts WHERE tenant > tenants.tenant) FROM tenants
      WHERE tenants.tenant IS NOT NULL)
    SELECT r.tenant, r.sequence, r.hash,
      coalesce((SELECT max(sequence) FROM heads AS h WHERE h.tenant = r.tenant), 0) AS signed_sequence
    FROM tenants AS t JOIN receipts AS r ON r.tenant = t.tenant
      AND r.sequence = (SELECT max(sequence) FROM receipts AS l WHERE l.tenant = t.tenant)
    WHERE t.tenant IS NOT NULL`);
  return rows.all().map((row) => ({
    tenant: textOf(row, "tenant"),
    sequence: numberOf(row, "sequence"),
    hash: textOf(row, "hash"),
    signedSequence: numberOf(row, "signed_sequence"),
  }));
}

/** -1, which no receipt has, for text that is not a number. */
export function sequenceIn(id: string): number {
  const sequence = Number.parseInt(id.slice(ownReceiptIds.length), 32);
  return Number.isSafeInteger(sequence) ? sequence : -1;
}
