/**
 * The servers of a cluster, as they report themselves: a row each in the database, written again every second. Elections
 * do not depend on it; it says who is there.
 */

import type { Database, PgRow } from "../../store/postgres-connection.ts";
import { leaderIn } from "../../store/postgres-leading.ts";
import type { ClusterServerRow, ClusterShardRow, ClusterView } from "./cluster.ts";

export interface OwnReport {
  readonly server: string;
  readonly url: string;
  readonly version: string;
  readonly mayLead: boolean;
}

const reportEveryMs = 1_000;
/** A server that was silent for this long is shown as gone. */
const aliveMs = 5_000;
/** And after this it is not shown any more. */
const forgetMs = 60_000;

export class ServerRegistry {
  readonly #db: Database;
  readonly #own: OwnReport;
  #timer: NodeJS.Timeout | undefined;
  #reporting: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(db: Database, own: OwnReport) {
    this.#db = db;
    this.#own = own;
  }

  /** The first report, whose failure is the operator's to know. */
  async start(): Promise<void> {
    await this.#report();
    this.#reportAgain();
  }

  /** One statement, so that leaders and servers are of the same moment. */
  async view(): Promise<ClusterView> {
    const { schema } = this.#db;
    const rows = await this.#db.read(
      `SELECT 'server' AS what, 0 AS shard, server, url, version, may_lead, ${millis("started_at")} AS since,
         ${millis("seen_at")} AS seen_at, ${millis("clock_timestamp() - seen_at")} AS silent_ms, 0 AS epoch, 0 AS left_ms
       FROM ${schema}.servers
       UNION ALL
       SELECT 'shard', shard, server, url, '', 0, ${millis("led_since")}, 0, 0, epoch,
         ${millis("lease_until - clock_timestamp()")} FROM ${schema}.shards
       ORDER BY 1, 2, 7, 3`,
    );
    const isServer = ({ what }: PgRow): boolean => what === "server";
    return {
      servers: rows.filter(isServer).map(serverOf),
      shards: rows.filter((row) => !isServer(row)).map(shardOf),
    };
  }

  /** For that time the others do not give it shards. */
  async rest(ms: number): Promise<void> {
    const { schema } = this.#db;
    await this.#db.read(
      `UPDATE ${schema}.servers SET rests_until = clock_timestamp() + $2 * interval '1 millisecond' WHERE server = $1`,
      [this.#own.server, ms],
      aliveMs,
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#reporting;
    // If that fails it is shown as gone soon.
    await this.#db
      .read(`DELETE FROM ${this.#db.schema}.servers WHERE server = $1`, [this.#own.server], aliveMs)
      .catch(() => undefined);
  }

  #reportAgain(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      // One that fails is not repeated at once: the next comes soon, and what is shown says how old it is.
      this.#reporting = this.#report().catch(() => undefined);
      void this.#reporting.then(() => this.#reportAgain());
    }, reportEveryMs);
    this.#timer.unref();
  }

  async #report(): Promise<void> {
    const { schema } = this.#db;
    const { server, url, version, mayLead } = this.#own;
    await this.#db.read(
      `WITH gone AS (DELETE FROM ${schema}.servers
         WHERE server <> $1 AND seen_at < clock_timestamp() - ${forgetMs} * interval '1 millisecond')
       INSERT INTO ${schema}.servers (server, url, version, may_lead) VALUES ($1, $2, $3, $4)
       ON CONFLICT (server) DO UPDATE SET seen_at = clock_timestamp()`,
      [server, url, version, mayLead ? 1 : 0],
      aliveMs,
    );
  }
}

function serverOf(row: PgRow): ClusterServerRow {
  return {
    server: String(row["server"]),
    url: String(row["url"]),
    version: String(row["version"]),
    isAlive: Number(row["silent_ms"]) < aliveMs,
    mayLead: row["may_lead"] === 1,
    startedAt: Number(row["since"]),
    seenAt: Number(row["seen_at"]),
  };
}

function shardOf(row: PgRow): ClusterShardRow {
  const leader = leaderIn(row);
  return {
    shard: Number(row["shard"]),
    server: leader?.server ?? null,
    url: leader?.url ?? null,
    epoch: Number(row["epoch"]),
    since: leader?.since ?? null,
    leftMs: leader?.leftMs ?? null,
  };
}

function millis(time: string): string {
  return `floor(extract(epoch FROM ${time}) * 1000)::bigint`;
}
