/**
 * The store on PostgreSQL: one shard of data that several servers may campaign for. Commits go over one connection, one
 * statement each; renewals have a connection of their own, and history a few. An answer that got lost is asked for: a
 * commit has a number, and the shard's row says which was stored last.
 *
 *   closed ── open ──► leading ── resign, close ──► closed
 *                        │  stale epoch, or an outcome that cannot be found out ──► failed: only open and close work
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { StoreFault, staleEpoch, storeClosed } from "./faults.ts";
import { positionAfter } from "./flat-batch.ts";
import { toColumns } from "./list-columns.ts";
import {
  type CommitStatement,
  type CommitTarget,
  commitStatement,
  type NumberedPosition,
  timelineSql,
} from "./postgres-commit.ts";
import { Database, destroy, type PgRow, type PostgresAddress } from "./postgres-connection.ts";
import { Folder } from "./postgres-fold.ts";
import { PostgresHistory } from "./postgres-history.ts";
import {
  type Candidate,
  campaign,
  leaderIn,
  openedFrom,
  resignFrom,
  shardRow,
  systemSql,
  whyLost,
} from "./postgres-leading.ts";
import { prunePostgres } from "./postgres-prune.ts";
import { Renewals, type SharedConnections } from "./postgres-renewals.ts";
import { migratePostgres } from "./postgres-schema.ts";
import type {
  Batch,
  Leader,
  LeaderLease,
  LedgerHead,
  Loading,
  Millis,
  Opened,
  Pruned,
  PruneLimits,
  Store,
} from "./store.ts";

export interface PostgresOptions extends PostgresAddress {
  readonly shard?: number;
  /** Connections that the stores of one server share; absent: it has its own. */
  readonly shared?: SharedConnections;
  /** The process that campaigns. It may take over from itself, so it has to be another one after each start. */
  readonly server?: string;
  readonly serverUrl?: string | null;
  readonly leaseMs?: number;
  /** How long the outcome of a commit is looked for after its connection was lost. */
  readonly outcomeMsMax?: number;
}

export const leaderLeaseMsDefault = 2_000;
const rowsPerChunk = 4_000;
const retryMs = 50;
const foldMsMax = 1_000;

export function createPostgresStore(options: PostgresOptions): Store {
  return new PostgresStore(options);
}

interface PendingCommit extends CommitStatement {
  readonly resolve: () => void;
  readonly reject: (fault: StoreFault) => void;
}

class PostgresStore extends PostgresHistory implements Store {
  readonly #candidate: Candidate;
  readonly #leaseMs: number;
  readonly #outcomeMsMax: number;
  #isMigrated = false;
  #epoch = 0;
  #position: NumberedPosition = { now: 0, lastSeq: 0, lastN: 0, lastEnded: 0, number: 0, lastTask: 0 };
  /** Sent, in order, and not known to be stored. */
  #pending: PendingCommit[] = [];
  #writer: pg.Client | null = null;
  readonly #shared: SharedConnections | null;
  readonly #renewals: Renewals;
  #recovering: Promise<void> | null = null;

  constructor(options: PostgresOptions) {
    const { server = randomUUID(), serverUrl = null, shared = null } = options;
    super(shared?.history ?? new Database(options), options.shard ?? 0);
    this.#leaseMs = options.leaseMs ?? leaderLeaseMsDefault;
    this.#shared = shared;
    this.#renewals = shared?.renewals ?? new Renewals(this.db, this.#leaseMs);
    const db = shared?.elections ?? this.db;
    this.#candidate = { db, shard: this.shard, server, url: serverUrl, leaseMs: this.#leaseMs };
    this.#outcomeMsMax = options.outcomeMsMax ?? this.#leaseMs;
  }

  async watch(): Promise<Leader | null> {
    await this.#migrate();
    return leaderIn(await shardRow(this.#candidate));
  }

  async open(): Promise<Opened> {
    if (this.refusal === null) throw new StoreFault("the store is open already");
    this.#dropConnections();
    await this.#migrate();
    const askedAt = performance.now();
    const row = await campaign(this.#candidate);
    if (row === null) throw await whyLost(this.#candidate);
    try {
      this.#writer = await this.#connectWriter();
      // Now, because the first renewal has little time for it.
      await this.#renewals.connect().catch(() => undefined);
      this.#epoch = Number(row["epoch"]);
      this.folder = new Folder(this.#target, this.db);
      await this.folder.recover();
      const [count] = await this.db.read(`SELECT count(*) AS count FROM ${this.table("live")} WHERE shard = $1`, [
        this.shard,
      ]);
      const { now, lastSeq, lastN, ...opened } = openedFrom(row);
      this.#position = {
        ...{ now, lastSeq, lastN, number: Number(row["number"]) },
        ...{ lastEnded: Number(row["last_ended"]), lastTask: Number(row["last_task"]) },
      };
      this.#pending = [];
      this.refusal = null;
      const lease = { askedAt, lastsMs: this.#leaseMs };
      return { ...opened, epoch: this.#epoch, now, lastSeq, lastN, liveCount: Number(count?.["count"]), lease };
    } catch (error) {
      this.#dropConnections();
      throw this.db.explain(error);
    }
  }

  /** Over its own connection, and given up well before the lease ends. One message, so that a pooler may be in between. */
  async renew(now: Millis | null): Promise<LeaderLease> {
    if (this.refusal !== null) throw this.refusal;
    const epoch = this.#epoch;
    const askedAt = performance.now();
    const lastsMs = this.#leaseMs;
    // The two belong together: what passed since is counted from both.
    const time = now === null ? "" : `, now = greatest(now, ${Math.floor(now)}), stored_at = clock_timestamp()`;
    const count = await this.#renewals.update(
      `UPDATE ${this.table("shards")} SET lease_until = clock_timestamp() + ${lastsMs} * interval '1 millisecond'${time}
       WHERE shard = ${this.shard} AND epoch = ${epoch} AND timeline = ${timelineSql} AND system = ${systemSql}`,
    );
    if (count !== 1) throw staleEpoch(epoch);
    return { askedAt, lastsMs };
  }

  async resign(): Promise<void> {
    const wasOpen = this.refusal === null;
    const pending = this.#pending.at(-1);
    this.refusal ??= storeClosed();
    if (wasOpen) {
      await this.#settled(pending);
      // Plain SQL sees all of it then. What is not folded in this time the next leader folds.
      await Promise.race([this.folder?.folded().catch(() => undefined), sleep(foldMsMax, undefined, { ref: false })]);
      await resignFrom(this.#candidate, this.#epoch).catch(() => undefined); // The lease ends by itself.
    }
    this.#dropConnections();
  }

  async close(): Promise<void> {
    await this.resign();
    if (this.#shared === null) await this.db.close();
  }

  async load({ onRows, lists, onLists }: Loading): Promise<void> {
    const live = this.table("live");
    await this.#loadAll(
      (after) =>
        this.askFolded(
          `SELECT n, kind, body FROM ${live} WHERE shard = $1 AND n > $2 AND kind <> $3 ORDER BY n LIMIT ${rowsPerChunk}`,
          [after, lists.kind],
        ),
      (rows) => onRows(rows.map(({ n, kind, body }) => ({ n: Number(n), kind: String(kind), body: String(body) }))),
    );
    await this.#loadAll(
      (after) =>
        this.askFolded(
          `SELECT n, body FROM ${live} WHERE shard = $1 AND n > $2 AND kind = $3 ORDER BY n LIMIT ${rowsPerChunk}`,
          [after, lists.kind],
        ),
      (rows) => {
        const parsed = JSON.parse(`[${rows.map(({ body }) => body).join()}]`) as unknown[][];
        onLists(
          toColumns(
            rows.map(({ n }) => Number(n)),
            parsed,
          ),
        );
      },
    );
  }

  async #loadAll(
    ask: (after: number) => Promise<readonly PgRow[]>,
    take: (rows: readonly PgRow[]) => void,
  ): Promise<void> {
    let next = ask(0);
    for (;;) {
      const rows = await next;
      const last = rows.at(-1);
      if (last === undefined) return;
      // Requested before this one is passed on, so that the database works meanwhile.
      next = ask(Number(last["n"]));
      next.catch(() => undefined);
      take(rows);
    }
  }

  ledgerHeads(): Promise<readonly LedgerHead[]> {
    return this.findLedgerHeads();
  }

  async commit(batch: Batch): Promise<void> {
    if (this.refusal !== null) throw this.refusal;
    const before = this.#position;
    const { lastTask, number } = before;
    const after = { ...positionAfter(before, batch), number: number + 1, lastTask: lastTask + batch.endedTasks.length };
    this.#position = after;
    const statement = commitStatement(this.#target, batch, before, after);
    return new Promise((resolve, reject) => {
      const pending = { ...statement, resolve, reject };
      this.#pending.push(pending);
      if (this.#recovering === null) this.#send(pending);
    });
  }

  get #target(): CommitTarget {
    return { schema: this.db.schema, shard: this.shard, epoch: this.#epoch };
  }

  #send(pending: PendingCommit): void {
    const writer = this.#writer;
    if (writer === null) return this.#recover(new Error("the connection was closed"));
    writer.query(pending.text, pending.values as unknown[]).then(
      (result) => {
        if (writer !== this.#writer) return;
        if (Number((result.rows[0] as PgRow | undefined)?.["stored"]) === 1) this.#acknowledge(pending.number);
        // Stored already by an attempt whose answer was lost, or refused: the shard's row says which.
        else this.#recover(new Error("the commit was not taken"));
      },
      (error: Error) => {
        if (writer === this.#writer) this.#recover(error);
      },
    );
  }

  #acknowledge(number: number): void {
    for (;;) {
      const [first] = this.#pending;
      if (first === undefined || first.number > number) return;
      this.#pending.shift();
      const behind = first.entry === null ? null : (this.folder?.add(first.entry) ?? null);
      if (behind === null) first.resolve();
      else behind.then(first.resolve, first.resolve);
    }
  }

  /** Asks what became of the commits whose answers are missing, and sends those again that are not stored. */
  #recover(reason: Error): void {
    this.#recovering ??= this.#findOutcome(reason)
      .catch((error: unknown) => this.#fail(this.db.explain(error)))
      .finally(() => {
        this.#recovering = null;
        // All of them: what came meanwhile was not sent either.
        for (const one of this.#pending) this.#send(one);
      });
  }

  async #findOutcome(reason: Error): Promise<void> {
    const deadline = performance.now() + this.#outcomeMsMax;
    // A statement that the database itself refused, such as one for a full disk, will not do better the next time.
    const isRefused = isFinal(reason);
    for (;;) {
      if (this.#writer !== null) destroy(this.#writer);
      this.#writer = null;
      let writer: pg.Client | null = null;
      try {
        writer = await this.#connectWriter();
        await this.#compareWith(writer);
        if (this.#pending.length > 0 && isRefused) throw this.db.explain(reason);
        if (this.refusal !== null) throw this.refusal;
        this.#writer = writer;
        return;
      } catch (error) {
        if (writer !== null) destroy(writer);
        if (error instanceof StoreFault && error.code === "stale_epoch") throw error;
        if (isRefused || this.refusal !== null || performance.now() > deadline) throw error;
        await sleep(retryMs);
      }
    }
  }

  /** What the shard's row says: those up to its number are stored, if the epoch is still ours. */
  async #compareWith(writer: pg.Client): Promise<void> {
    const { rows } = await writer.query(
      `SELECT epoch, number, (timeline = ${timelineSql})::int AS is_known FROM ${this.table("shards")} WHERE shard = $1`,
      [this.shard],
    );
    const row = rows[0] as PgRow | undefined;
    if (Number(row?.["epoch"]) !== this.#epoch || row?.["is_known"] !== 1) throw staleEpoch(this.#epoch);
    this.#acknowledge(Number(row?.["number"]));
  }

  async #connectWriter(): Promise<pg.Client> {
    // It may be lost before it is known here.
    let writer: pg.Client | null = null;
    writer = await this.db.connect((reason) => {
      if (writer === null || this.#writer !== writer) return;
      if (this.#pending.length > 0) this.#recover(reason);
      else this.#writer = null;
    }, this.#outcomeMsMax);
    return writer;
  }

  #fail(fault: StoreFault): void {
    this.refusal ??= fault;
    for (const { reject } of this.#pending.splice(0)) reject(fault);
    this.#dropConnections();
  }

  async #settled(last: PendingCommit | undefined): Promise<void> {
    while (last !== undefined && this.#pending.includes(last)) await sleep(5);
  }

  #dropConnections(): void {
    this.folder?.stop();
    this.folder = null;
    if (this.#writer !== null) destroy(this.#writer);
    this.#writer = null;
    if (this.#shared === null) this.#renewals.drop();
  }

  async #migrate(): Promise<void> {
    if (this.#isMigrated) return;
    await migratePostgres(this.db);
    this.#isMigrated = true;
  }

  async folded(): Promise<void> {
    await this.folder?.folded();
  }

  async prune(limits: PruneLimits): Promise<Pruned> {
    if (this.refusal !== null) throw this.refusal;
    await this.folder?.folded();
    return await prunePostgres({ db: this.db, shard: this.shard, epoch: this.#epoch }, limits);
  }

  /** Autovacuum does this. */
  async compact(): Promise<void> {
    if (this.refusal !== null) throw this.refusal;
  }

  async backup(): Promise<void> {
    throw new StoreFault("PostgreSQL has its own backups: use pg_basebackup, pg_dump or those of its operator", {
      code: "store_unsupported",
    });
  }
}

/** Whether the database itself answered that it cannot: its codes have five characters, and those of lost connections pass. */
function isFinal(error: Error): boolean {
  const { code } = error as { readonly code?: string };
  return typeof code === "string" && /^(22|23|42|53100|54)/.test(code) && code.length === 5;
}
