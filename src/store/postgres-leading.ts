/** Elections, in the shard's row: who leads, in which epoch, until when by the database's clock (spec/leader.tla). */
import { StoreFault } from "./faults.ts";
import { timelineSql } from "./postgres-commit.ts";
import type { Database, PgRow } from "./postgres-connection.ts";
import type { Leader, Opened } from "./store.ts";

export interface Candidate {
  readonly db: Database;
  readonly shard: number;
  /** The process: it may take over from itself. */
  readonly server: string;
  readonly url: string | null;
  /** Nothing of an election is waited for longer: a connection that hangs would hide that nobody leads. */
  readonly leaseMs: number;
}

export const systemSql = "(SELECT system_identifier::text FROM pg_control_system())";
export const isKnownSql = `(timeline = '' OR (timeline = ${timelineSql} AND system = ${systemSql}))`;

/** Only past the lease of another server, and only on the timeline that is stored; null: lost. */
export async function campaign({ db, shard, server, url, leaseMs }: Candidate): Promise<PgRow | null> {
  const rows = await db.read(
    `UPDATE ${db.schema}.shards SET epoch = epoch + 1, journal_epoch = epoch + 1, server = $2, url = $3,
       led_since = clock_timestamp(),
       lease_until = clock_timestamp() + $4 * interval '1 millisecond', system = ${systemSql}, timeline = ${timelineSql}
     WHERE shard = $1 AND (server = $2 OR lease_until <= clock_timestamp()) AND ${isKnownSql}
     RETURNING *, ${millis("clock_timestamp() - stored_at")} AS passed_ms`,
    [shard, server, url, leaseMs],
    leaseMs,
  );
  return rows[0] ?? null;
}

/** Also moves to a new timeline, where that is what was in the way. */
export async function whyLost(candidate: Candidate): Promise<StoreFault> {
  const row = await shardRow(candidate);
  if (row === undefined)
    return new StoreFault(`the database has no shard ${candidate.shard}`, { code: "store_refused" });
  if (row["is_known"] === 0) await adopt(candidate);
  const leader = leaderIn(row);
  const who = leader === null ? "nobody may lead yet" : `the server ${leader.url ?? leader.server} leads this data`;
  return new StoreFault(`${who}, in epoch ${row["epoch"]}`, { code: "store_locked" });
}

/**
 * The database is another one than it was, or on another timeline: history may have been lost. The epoch jumps to a number
 * that grows with the clock, so that no commit of the lost history is taken, and a full lease passes before anybody is
 * elected, because the last leader may still answer until its own ends (spec/leader.tla, Adopt). Fences and event numbers
 * jump when it is loaded, as after a restore (L11).
 */
async function adopt({ db, shard, leaseMs }: Candidate): Promise<void> {
  await db.read(
    `UPDATE ${db.schema}.shards SET epoch = ${jumped}, journal_epoch = ${jumped}, server = NULL, url = NULL,
       lease_until = clock_timestamp() + $2 * interval '1 millisecond', restores = restores + 1,
       restored_at = ${millis("clock_timestamp()")}, system = ${systemSql}, timeline = ${timelineSql}
     WHERE shard = $1 AND NOT ${isKnownSql}`,
    [shard, leaseMs],
    leaseMs,
  );
}

/** The same wherever it stands in a statement. */
const jumped = `greatest(epoch + 1, ${millis("now()")})`;

export async function shardRow({ db, shard, leaseMs }: Candidate): Promise<PgRow | undefined> {
  const [row] = await db.read(
    `SELECT *, ${millis("lease_until - clock_timestamp()")} AS left_ms, ${millis("led_since")} AS since,
       ${isKnownSql}::int AS is_known FROM ${db.schema}.shards WHERE shard = $1`,
    [shard],
    leaseMs,
  );
  return row;
}

/** Named by its epoch: a resignation that arrives late does not end the lease of another. */
export async function resignFrom({ db, shard, server, leaseMs }: Candidate, epoch: number): Promise<void> {
  await db.read(
    `UPDATE ${db.schema}.shards SET lease_until = clock_timestamp(), server = NULL, url = NULL
     WHERE shard = $1 AND epoch = $2 AND server = $3`,
    [shard, epoch, server],
    leaseMs,
  );
}

export function leaderIn(row: PgRow | undefined): Leader | null {
  if (row === undefined || row["server"] == null || Number(row["left_ms"]) <= 0) return null;
  return {
    epoch: Number(row["epoch"]),
    server: String(row["server"]),
    url: row["url"] === null ? null : String(row["url"]),
    leftMs: Number(row["left_ms"]),
    since: Number(row["since"]),
  };
}

export function openedFrom(row: PgRow): Omit<Opened, "epoch" | "liveCount" | "lease"> {
  return {
    now: Number(row["now"]),
    lastSeq: Number(row["last_seq"]),
    lastN: Number(row["last_n"]),
    restores: Number(row["restores"]),
    restoredAt: Number(row["restored_at"]),
    passedMs: Math.max(Number(row["passed_ms"]), 0),
  };
}

function millis(interval: string): string {
  return `floor(extract(epoch FROM ${interval}) * 1000)::bigint`;
}
