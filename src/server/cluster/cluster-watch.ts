/** Who leads which shard, and which servers are there: one statement for all shards, shared by all who ask at the same time. */
import type { Database, PgRow } from "../../store/postgres-connection.ts";
import { isKnownSql, leaderIn } from "../../store/postgres-leading.ts";
import type { Leader } from "../../store/store.ts";
import type { SignedOutSession } from "../auth/sessions.ts";
import { markOf, unfoldedSql } from "./directory.ts";
import { directoryShard } from "./shards.ts";

/** A server that did not report for this long gets no shards: sooner than it is shown as gone, because shards wait for it. */
const silentMsMax = 2_500;

/** How far back each check finds sessions that were signed out; a term that begins reads all of them. */
const signedOutMs = 10_000;

interface Watched {
  readonly leader: Leader | null;
  /** By the monotonic clock, since when it was seen without a leader. */
  readonly vacantSince: number | null;
  readonly resignEpoch: number;
}

/** What comes with a check of the shards. */
export interface Seen {
  /** Another one after each commit of shard 0. */
  readonly directoryMark: string;
  /** Sessions that were signed out lately. */
  readonly signedOut: readonly SignedOutSession[];
}

export class ClusterWatch {
  readonly #db: Database;
  readonly #leaseMs: number;
  readonly #onRead: (seen: Seen) => void;
  #reading: Promise<void> | null = null;
  #shards: readonly Watched[] = [];
  #servers: readonly string[] = [];

  constructor(db: Database, leaseMs: number, onRead: (seen: Seen) => void) {
    this.#db = db;
    this.#leaseMs = leaseMs;
    this.#onRead = onRead;
  }

  /** Those that may lead, have reported lately, and were not asked to resign a moment ago. */
  get servers(): readonly string[] {
    return this.#servers;
  }

  get shards(): readonly Watched[] {
    return this.#shards;
  }

  leaderOf(shard: number): Leader | null {
    return this.#shards[shard]?.leader ?? null;
  }

  /** Every part of it is conditional where it is acted on, so that an answer may be a little old. */
  async watch(shard: number): Promise<Leader | null> {
    await this.read();
    return this.leaderOf(shard);
  }

  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { schema } = this.#db;
    const rows = await this.#db.read(
      `SELECT shard, server, url, epoch, number, restores, resign_epoch, ${isKnownSql}::int AS is_known,
         ${millis("lease_until - clock_timestamp()")} AS left_ms, ${millis("led_since")} AS since,
         CASE WHEN shard = ${directoryShard} THEN ${unfoldedSql(schema)} ELSE 0 END AS unfolded
       FROM ${schema}.shards
       UNION ALL
       SELECT -1, server, url, 0, 0, 0, 0, 0, 0, 0, 0 FROM ${schema}.servers
       WHERE may_lead = 1 AND rests_until < clock_timestamp()
         AND seen_at > clock_timestamp() - ${silentMsMax} * interval '1 millisecond'
       UNION ALL
       SELECT -2, id, key_id, 0, 0, 0, 0, 0, until, 0, 0 FROM ${schema}.signed_out
       WHERE at > clock_timestamp() - ${signedOutMs} * interval '1 millisecond'
       ORDER BY 1, 2`,
      [],
      this.#leaseMs,
    );
    const isShard = ({ shard }: PgRow): boolean => Number(shard) >= 0;
    const before = this.#shards;
    this.#shards = rows.filter(isShard).map((row, shard) => watchedFrom(row, before[shard]));
    this.#servers = rows.filter(({ shard }) => Number(shard) === -1).map(({ server }) => String(server));
    const directory = rows.find(({ shard }) => Number(shard) === directoryShard);
    if (directory !== undefined) this.#onRead({ directoryMark: markOf(directory), signedOut: signedOutIn(rows) });
  }
}

function watchedFrom(row: PgRow, before: Watched | undefined): Watched {
  const leader = leaderIn(row);
  const vacantSince = leader === null ? (before?.vacantSince ?? performance.now()) : null;
  return { leader, vacantSince, resignEpoch: Number(row["resign_epoch"]) };
}

/** For a term that begins. */
export async function readSignedOut(db: Database): Promise<readonly SignedOutSession[]> {
  const rows = await db.read(`SELECT id, key_id, until FROM ${db.schema}.signed_out ORDER BY at`);
  return rows.map((row) => ({ id: String(row["id"]), keyId: String(row["key_id"]), until: Number(row["until"]) }));
}

function signedOutIn(rows: readonly PgRow[]): readonly SignedOutSession[] {
  return rows
    .filter(({ shard }) => Number(shard) === -2)
    .map((row) => ({ id: String(row["server"]), keyId: String(row["url"]), until: Number(row["left_ms"]) }));
}

function millis(time: string): string {
  return `floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}
