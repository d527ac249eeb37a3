/** Queries on history, on connections of their own to the primary: each sees what was committed before it. */
import { type StoreFault, storeClosed } from "./faults.ts";
import { ownReceiptIds } from "./migrations.ts";
import { collectEvents } from "./packed-events.ts";
import { eventsText } from "./postgres-commit.ts";
import type { Database, PgRow } from "./postgres-connection.ts";
import type { Folder } from "./postgres-fold.ts";
import { auditRow, endedLeaseRow, endedRequestRow, endedTaskRow, headRow, receiptRow } from "./rows.ts";
import { receiptsPerPage, sequenceIn } from "./sqlite-ledger.ts";
import {
  type History,
  type LedgerHead,
  type Millis,
  type PackedEvents,
  receiptBytesPerPage,
  type StoredReceipt,
} from "./store.ts";

/** How many rows a page of ended tasks examines while it searches by status or type. */
const tasksPerPage = 20_000;
const eventRowsPerQuery = 64;
const bytesPerAnswer = 8 * 1024 * 1024;

export class PostgresHistory implements History {
  protected readonly db: Database;
  protected readonly shard: number;
  /** Why it refuses: not yet opened, closed, or failed. */
  protected refusal: StoreFault | null = storeClosed();
  /** While it leads. */
  protected folder: Folder | null = null;

  constructor(db: Database, shard: number) {
    this.db = db;
    this.shard = shard;
  }

  protected table(name: string): string {
    return `${this.db.schema}.${name}`;
  }

  /** $1 is the shard. */
  protected async ask(text: string, values: readonly unknown[] = []): Promise<readonly PgRow[]> {
    if (this.refusal !== null) throw this.refusal;
    return await this.db.read(text, [this.shard, ...values]);
  }

  /** For tables that are behind the journal. */
  protected async askFolded(text: string, values: readonly unknown[] = []): Promise<readonly PgRow[]> {
    await this.folder?.folded();
    return await this.ask(text, values);
  }

  async endedLease(tenant: string, ids: readonly string[]) {
    const from = `SELECT * FROM ${this.table("ended")} WHERE shard = $1 AND tenant = $2`;
    return (await this.askFolded(`${from} AND id = ANY ($3)`, [tenant, ids])).map(endedLeaseRow.read);
  }

  readonly endedGrant: History["endedGrant"] = async (tenant, firstId) => {
    // A dash sorts before a full stop, and nothing else that an id may have does.
    const from = `SELECT * FROM ${this.table("ended")} WHERE shard = $1 AND tenant = $2`;
    const rows = await this.askFolded(`${from} AND id >= $3 AND id < $3 || '.' ORDER BY key`, [tenant, firstId]);
    return rows.map(endedLeaseRow.read);
  };

  readonly endedPage: History["endedPage"] = async ({ tenant, limit, before = null }) => {
    const from = `SELECT * FROM ${this.table("ended")} WHERE shard = $1 AND tenant = $2`;
    const rows = await this.askFolded(
      `${from} ${olderThan(before, "$4")} ORDER BY id DESC LIMIT $3`,
      values(tenant, limit, before),
    );
    return rows.map(endedLeaseRow.read);
  };

  readonly endedRequests: History["endedRequests"] = async (tenant, keys) => {
    const rows = await this.askFolded(
      `SELECT r.* FROM unnest($3::text[], $4::text[]) AS asked (agent_id, key)
       JOIN ${this.table("ended_requests")} AS r ON r.agent_id = asked.agent_id AND r.key = asked.key
       WHERE r.shard = $1 AND r.tenant = $2 ORDER BY r.number`,
      [tenant, keys.map(([agentId]) => agentId), keys.map(([, key]) => key)],
    );
    return rows.map(endedRequestRow.read);
  };

  readonly youngestEnded: History["youngestEnded"] = async (limit) => {
    const from = `SELECT body FROM ${this.table("ended")} WHERE shard = $1`;
    return (await this.askFolded(`${from} ORDER BY key DESC LIMIT $2`, [limit])).map(({ body }) => String(body));
  };

  readonly earliestEnded = async (): Promise<Millis> => this.#number("ended_from");
  readonly earliestSeq = async (): Promise<number> => this.#number(this.#earliest);

  get #earliest(): string {
    return `coalesce((SELECT min(first_seq) FROM ${this.table("events")} WHERE shard = $1), last_seq + 1)`;
  }

  async #number(expression: string): Promise<number> {
    const [row] = await this.ask(`SELECT ${expression} AS value FROM ${this.table("shards")} WHERE shard = $1`);
    return Number(row?.["value"]);
  }

  readonly eventsAfter: History["eventsAfter"] = async (query) => {
    const { seq, limit } = query;
    const events = this.table("events");
    const [known] = await this.ask(
      `SELECT ${this.#earliest} AS earliest, last_seq,
         coalesce((SELECT first_seq + count > $2 FROM ${events} WHERE shard = $1 AND first_seq <= $2
           ORDER BY first_seq DESC LIMIT 1), false)::int AS is_kept
       FROM ${this.table("shards")} WHERE shard = $1`,
      [seq],
    );
    const rows: PgRow[] = [];
    let [from, examined] = [seq + 1, 0];
    while (examined < limit) {
      // The row before the first wanted number may contain it, because rows are packed.
      const found = await this.ask(
        `SELECT first_seq, count, body, packed FROM ${events} WHERE shard = $1 AND first_seq + count > $2 AND first_seq >=
           coalesce((SELECT max(first_seq) FROM ${events} WHERE shard = $1 AND first_seq <= $2), 0)
         ORDER BY first_seq LIMIT ${eventRowsPerQuery}`,
        [from],
      );
      for (const row of found) {
        const [firstSeq, count] = [Number(row["first_seq"]), Number(row["count"])];
        rows.push(row);
        examined += firstSeq + count - Math.max(from, firstSeq);
        from = firstSeq + count;
      }
      if (found.length < eventRowsPerQuery) break;
    }
    const { earliest, last_seq: lastSeq, is_kept: isKept } = known ?? {};
    return collectEvents(query, unpacked(rows), {
      earliest: Number(earliest),
      lastSeq: Number(lastSeq),
      isKept: isKept === 1,
    });
  };

  async endedTasks(tenant: string, ids: readonly string[]) {
    const from = `SELECT * FROM ${this.table("ended_tasks")} WHERE shard = $1 AND tenant = $2`;
    return (await this.askFolded(`${from} AND id = ANY ($3)`, [tenant, ids])).map(endedTaskRow.read);
  }

  readonly endedTasksByKey: History["endedTasksByKey"] = async (tenant, keys) => {
    const from = `SELECT * FROM ${this.table("ended_tasks")} WHERE shard = $1 AND tenant = $2`;
    return (await this.askFolded(`${from} AND idempotency_key = ANY ($3) ORDER BY key`, [tenant, keys])).map(
      endedTaskRow.read,
    );
  };

  readonly endedTaskPage: History["endedTaskPage"] = async (query) => {
    const { tenant, limit, before = null, status = null, taskType = null } = query;
    const tasks = this.table("ended_tasks");
    const examined = `SELECT key, id, status, task_type FROM ${tasks} WHERE shard = $1 AND tenant = $2
      ${olderThan(before, "$6")} ORDER BY id DESC LIMIT ${tasksPerPage}`;
    const rows = await this.askFolded(
      `SELECT t.* FROM (SELECT key, id FROM (${examined}) AS examined
         WHERE ($4::text IS NULL OR status = $4) AND ($5::text IS NULL OR task_type = $5) ORDER BY id DESC LIMIT $3) AS found
       JOIN ${tasks} AS t ON t.shard = $1 AND t.key = found.key ORDER BY t.id DESC`,
      [tenant, limit, status, taskType, ...(before === null ? [] : [before])],
    );
    const found = rows.map(endedTaskRow.read);
    const last = found.at(-1);
    if (found.length >= limit && last !== undefined) return { tasks: found, next: last.id };
    const [edge] = await this.askFolded(
      `SELECT id FROM ${tasks} WHERE shard = $1 AND tenant = $2 ${olderThan(before, "$3")}
       ORDER BY id DESC LIMIT 1 OFFSET ${tasksPerPage - 1}`,
      [tenant, ...(before === null ? [] : [before])],
    );
    return { tasks: found, next: edge === undefined ? null : String(edge["id"]) };
  };

  readonly payloads: History["payloads"] = async (keys) => {
    const from = `SELECT n, body FROM ${this.table("payloads")} WHERE shard = $1`;
    const rows = await this.ask(`${from} AND n = ANY ($2::bigint[])`, [keys]);
    return rows.map(({ n, body }) => ({ n: Number(n), body: String(body) }));
  };

  readonly receiptsById: History["receiptsById"] = async (tenant, ids) => {
    // Ids that the ledger assigns are made of the sequence number.
    const own = ids.filter((id) => id.startsWith(ownReceiptIds)).map(sequenceIn);
    const rows = await this.ask(
      `SELECT * FROM ${this.table("receipts")} WHERE shard = $1 AND tenant = $2 AND id = ANY ($3)
       UNION SELECT * FROM ${this.table("receipts")} WHERE shard = $1 AND tenant = $2 AND sequence = ANY ($4::bigint[])
         AND id = ANY ($3) ORDER BY sequence`,
      [tenant, ids, own],
    );
    return rows.map(receiptRow.read);
  };

  readonly receiptsByDedupe: History["receiptsByDedupe"] = async (tenant, keys) => {
    const from = `SELECT * FROM ${this.table("receipts")} WHERE shard = $1 AND tenant = $2`;
    return (await this.ask(`${from} AND dedupe = ANY ($3) ORDER BY sequence`, [tenant, keys])).map(receiptRow.read);
  };

  readonly receiptsPage: History["receiptsPage"] = async (query) => {
    const { tenant, limit, after = 0, taskId = null, phase = null, recipientAi = null, sourceSystem = null } = query;
    const receipts = this.table("receipts");
    const [last] = await this.ask(
      `SELECT coalesce(max(sequence), 0) AS high FROM ${receipts} WHERE shard = $1 AND tenant = $2`,
      [tenant],
    );
    const high = Number(last?.["high"]);
    // All that can match lies above `start` and up to `end`; one page examines a part of it, from its one end on.
    const start = query.since === undefined ? after : await this.#lastOld(tenant, after, high, query.since);
    const end = Math.min(high, (query.before ?? high + 1) - 1);
    const isDown = query.newestFirst === true;
    const part = taskId === null ? receiptsPerPage : high;
    const from = isDown ? Math.max(start, end - part) : start;
    const to = isDown ? end : Math.min(start + part, end);
    const rows = await this.ask(
      `SELECT * FROM ${receipts} WHERE shard = $1 AND tenant = $2 AND sequence > $3 AND sequence <= $4
         AND ($5::text IS NULL OR phase = $5) AND ($6::text IS NULL OR recipient_ai = $6)
         AND ($7::text IS NULL OR source_system = $7) ${taskId === null ? "" : "AND task_id = $9"}
       ORDER BY sequence ${isDown ? "DESC" : "ASC"} LIMIT $8`,
      [tenant, from, to, phase, recipientAi, sourceSystem, limit, ...(taskId === null ? [] : [taskId])],
    );
    const found = upToBytes(rows, receiptBytesPerPage);
    const bytes = found.reduce((sum, { body }) => sum + body.length, 0);
    const next = found.at(-1);
    if ((found.length >= limit || bytes >= receiptBytesPerPage) && next !== undefined)
      return { receipts: found, next: next.sequence };
    if (isDown) return { receipts: found, next: from > start ? from + 1 : null };
    return { receipts: found, next: to < end ? to : null };
  };

  /** The last receipt that is too old, by binary search: times grow with the numbers. */
  async #lastOld(tenant: string, low: number, high: number, since: Millis): Promise<number> {
    let [before, at] = [low, high + 1];
    while (at - before > 1) {
      const middle = Math.floor((before + at) / 2);
      const [row] = await this.ask(
        `SELECT stored_at FROM ${this.table("receipts")} WHERE shard = $1 AND tenant = $2 AND sequence = $3`,
        [tenant, middle],
      );
      if (row === undefined || Number(row["stored_at"]) < since) before = middle;
      else at = middle;
    }
    return before;
  }

  readonly receiptsAfter: History["receiptsAfter"] = async ({ tenant, sequence, limit }) => {
    const from = `SELECT * FROM ${this.table("receipts")} WHERE shard = $1 AND tenant = $2 AND sequence > $3`;
    return upToBytes(await this.ask(`${from} ORDER BY sequence LIMIT $4`, [tenant, sequence, limit]), bytesPerAnswer);
  };

  readonly signedHeads: History["signedHeads"] = async ({ tenant, sequence, limit }) => {
    const from = `SELECT * FROM ${this.table("heads")} WHERE shard = $1 AND tenant = $2 AND sequence > $3`;
    return (await this.ask(`${from} ORDER BY sequence, key LIMIT $4`, [tenant, sequence, limit])).map(headRow.read);
  };

  readonly auditPage: History["auditPage"] = async ({ tenant, after, since, actor, action, limit }) => {
    const rows = await this.ask(
      `SELECT * FROM ${this.table("audit")} WHERE shard = $1 AND tenant = $2 AND sequence > $3
         AND ($4::bigint IS NULL OR at >= $4) AND ($5::text IS NULL OR actor = $5) AND ($6::text IS NULL OR action = $6)
       ORDER BY sequence LIMIT $7`,
      [tenant, after, since, actor, action, limit],
    );
    return rows.map(auditRow.read);
  };

  readonly auditHeads: History["auditHeads"] = async () => {
    const rows = await this.ask(`
      ${this.#tenantsIn("audit")} SELECT a.* FROM tenants AS t JOIN ${this.table("audit")} AS a ON a.shard = $1
        AND a.tenant = t.tenant AND a.sequence = (SELECT max(sequence) FROM ${this.table("audit")} AS l
          WHERE l.shard = $1 AND l.tenant = t.tenant) WHERE t.tenant IS NOT NULL ORDER BY a.tenant`);
    return rows.map(auditRow.read);
  };

  protected async findLedgerHeads(): Promise<readonly LedgerHead[]> {
    const [receipts, heads] = [this.table("receipts"), this.table("heads")];
    const rows = await this.ask(`
      ${this.#tenantsIn("receipts")} SELECT r.tenant, r.sequence, r.hash, coalesce(
          (SELECT max(sequence) FROM ${heads} AS h WHERE h.shard = $1 AND h.tenant = r.tenant), 0) AS signed_sequence
      FROM tenants AS t JOIN ${receipts} AS r ON r.shard = $1 AND r.tenant = t.tenant AND r.sequence =
          (SELECT max(sequence) FROM ${receipts} AS l WHERE l.shard = $1 AND l.tenant = t.tenant)
      WHERE t.tenant IS NOT NULL ORDER BY r.tenant`);
    return rows.map(({ tenant, sequence, hash, signed_sequence: signedSequence }) => ({
      ...{ tenant: String(tenant), sequence: Number(sequence) },
      ...{ hash: String(hash), signedSequence: Number(signedSequence) },
    }));
  }

  /** Steps from tenant to tenant through the index, so that the cost depends on tenants and not on rows. */
  #tenantsIn(table: string): string {
    return `WITH RECURSIVE tenants (tenant) AS (
      (SELECT min(tenant) FROM ${this.table(table)} WHERE shard = $1)
      UNION ALL SELECT (SELECT min(tenant) FROM ${this.table(table)} AS x WHERE x.shard = $1 AND x.tenant > tenants.tenant)
      FROM tenants WHERE tenants.tenant IS NOT NULL)`;
  }
}

/** One at a time: the first few are often enough. */
function* unpacked(rows: readonly PgRow[]): Iterable<PackedEvents> {
  for (const row of rows)
    yield { firstSeq: Number(row["first_seq"]), count: Number(row["count"]), body: eventsText(row) };
}

function olderThan(before: string | null, param: string): string {
  return before === null ? "" : `AND id < ${param}`;
}

function values(tenant: string, limit: number, before: string | null): readonly unknown[] {
  return before === null ? [tenant, limit] : [tenant, limit, before];
}

/** Up to the one that passes these bytes. */
function upToBytes(rows: readonly PgRow[], bytesMax: number): StoredReceipt[] {
  const receipts: StoredReceipt[] = [];
  let bytes = 0;
  for (const row of rows) {
    const receipt = receiptRow.read(row);
    receipts.push(receipt);
    bytes += receipt.body.length;
    if (bytes >= bytesMax) break;
  }
  return receipts;
}
