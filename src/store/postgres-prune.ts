/** Deletes old history in slices, each a statement of its own; commits continue in between. Live rows are never named (L16). */
import { excessOf, halves, type Share } from "./fair-share.ts";
import { staleEpoch } from "./faults.ts";
import type { Database } from "./postgres-connection.ts";
import type { Pruned, PruneLimits } from "./store.ts";

export interface PruneTarget {
  readonly db: Database;
  readonly shard: number;
  readonly epoch: number;
}

const rowsPerSlice = 2_000;
const keepAll = 2 ** 50;
/** Rows whose mean size stands for all. */
const sampleRows = 500;
/** What a row takes besides its body: columns, indexes, pages that are not full. */
const rowBytes = 350;

export async function prunePostgres(target: PruneTarget, limits: PruneLimits): Promise<Pruned> {
  const { db, shard, epoch } = target;
  const { eventsBefore, endedBefore, endedKeep, endedTasksBefore = 0, endedTasksKeep, endedTasksBytes } = limits;
  const [ours] = await db.read(`SELECT 1 FROM ${db.schema}.shards WHERE shard = $1 AND epoch = $2`, [shard, epoch]);
  if (ours === undefined) throw staleEpoch(epoch);
  const throughSeq = await eventsThrough(target, limits);
  const isOldEvent = "at < $2 OR first_seq <= $3";
  const events = await slices(target, oldest("events", "first_seq", isOldEvent), [eventsBefore, throughSeq]);
  const ended =
    (await slices(target, oldest("ended", "key", "at < $2"), [endedBefore])) +
    (await pruneShares(target, "ended", endedKeep));
  const endedTasks =
    (await slices(target, oldest("ended_tasks", "key", "at < $2"), [endedTasksBefore])) +
    (await pruneShares(target, "ended_tasks", endedTasksKeep, endedTasksBytes));
  await slices(target, oldest("ended_requests", "number", "at < $2"), [limits.endedRequestsBefore ?? 0]);
  return { events, ended, endedTasks };
}

type Table = "events" | "ended" | "ended_tasks" | "ended_requests";

/** A slice of rows: where they are, and which. */
interface Slice {
  readonly table: Table;
  readonly key: string;
  /** A query for the keys; $1 is the shard. */
  readonly keys: (schema: string) => string;
}

/** `at` grows with the key, so only the old end is examined. */
function oldest(table: Table, key: string, isOld: string): Slice {
  const keys = (schema: string): string => `
    SELECT ${key} FROM (SELECT ${key}, at FROM ${schema}.${table} WHERE shard = $1 ORDER BY ${key} LIMIT ${rowsPerSlice})
    AS oldest WHERE ${isOld}`;
  return { table, key, keys };
}

/** What goes with the rows: a task takes its payload along, and since when ended leases are all there is stored. */
function tail(schema: string, table: Table, epoch: string): string {
  if (table === "ended")
    return `, moved AS (UPDATE ${schema}.shards SET ended_from = greatest(ended_from, (SELECT max(at) + 1 FROM gone))
      WHERE shard = $1 AND epoch = ${epoch} AND EXISTS (SELECT 1 FROM gone))`;
  if (table !== "ended_tasks") return "";
  return `, payload AS (DELETE FROM ${schema}.payloads AS p USING gone WHERE p.shard = $1 AND p.n = gone.payload)`;
}

async function slices(
  { db, shard, epoch }: PruneTarget,
  { table, key, keys }: Slice,
  values: readonly unknown[],
): Promise<number> {
  const { schema } = db;
  const own = String(Number(epoch));
  const shown = table === "ended_tasks" ? "t.at, t.payload" : "t.at";
  for (let sum = 0; ; ) {
    const [row] = await db.read(
      `WITH gone AS (DELETE FROM ${schema}.${table} AS t USING (${keys(schema)}) AS old
         WHERE t.shard = $1 AND t.${key} = old.${key}
           AND EXISTS (SELECT 1 FROM ${schema}.shards WHERE shard = $1 AND epoch = ${own}) RETURNING ${shown})
       ${tail(schema, table, own)} SELECT count(*) AS count FROM gone`,
      [shard, ...values],
    );
    const count = Number(row?.["count"]);
    sum += count;
    if (count < rowsPerSlice) return sum;
  }
}

/** S4: of what is too much, the tenants with the most rows lose the most (fair-share.ts); the lowest ids go first. */
async function pruneShares(
  target: PruneTarget,
  table: "ended" | "ended_tasks",
  keep = keepAll,
  bytesMax?: number,
): Promise<number> {
  const { db, shard } = target;
  const from = `${db.schema}.${table} AS t WHERE t.shard = $1`;
  const [range] = await db.read(`SELECT min(key) AS first, max(key) AS last FROM ${from}`, [shard]);
  if (range === undefined || range["last"] === null) return 0;
  const last = Number(range["last"]);
  const size = async (where: string, values: readonly unknown[]): Promise<number> => {
    const payload = `SELECT octet_length(p.body) FROM ${db.schema}.payloads AS p WHERE p.shard = $1 AND p.n = t.payload`;
    const bytes = table === "ended" ? "octet_length(t.body)" : `octet_length(t.body) + coalesce((${payload}), 0)`;
    const [row] = await db.read(
      `SELECT coalesce(avg(bytes), 0)::bigint AS bytes FROM (SELECT ${bytes} AS bytes FROM ${from} ${where}
       ORDER BY t.key DESC LIMIT ${sampleRows}) AS sample`,
      [shard, ...values],
    );
    return rowBytes + Number(row?.["bytes"]);
  };
  const most = bytesMax === undefined ? keep : Math.min(keep, Math.floor(bytesMax / (await size("", []))));
  if (last - Number(range["first"]) < most) return 0;
  const throughKey = last - halves(most).youngest;
  const counted = await db.read(
    `SELECT tenant, count(*) AS rows FROM ${from} AND key <= $2 GROUP BY tenant ORDER BY tenant`,
    [shard, throughKey],
  );
  const shares: Share[] = [];
  for (const { tenant, rows } of counted) {
    const each = bytesMax === undefined ? 1 : await size("AND t.tenant = $2", [tenant]);
    shares.push({ tenant: String(tenant), rows: Number(rows), rowBytes: each });
  }
  let sum = 0;
  for (const [tenant, rows] of excessOf(
    shares,
    halves(keep).shared,
    bytesMax === undefined ? undefined : bytesMax / 2,
  )) {
    const [edge] = await db.read(
      `SELECT id FROM ${from} AND tenant = $2 AND key <= $3 ORDER BY id LIMIT 1 OFFSET ${rows - 1}`,
      [shard, tenant, throughKey],
    );
    const keys = (schema: string): string => `
      SELECT key FROM ${schema}.${table} WHERE shard = $1 AND tenant = $2 AND key <= $3 AND id <= $4
      ORDER BY id LIMIT ${rowsPerSlice}`;
    sum += await slices(target, { table, key: "key", keys }, [tenant, throughKey, edge?.["id"]]);
  }
  return sum;
}

/** The last row of events that is to go because of the number or the bytes; 0: none. */
async function eventsThrough({ db, shard }: PruneTarget, { eventsKeep, eventsBytes }: PruneLimits): Promise<number> {
  if (eventsKeep === undefined && eventsBytes === undefined) return 0;
  const [row] = await db.read(
    `SELECT coalesce(max(first_seq), 0) AS through FROM (
       SELECT first_seq, sum(count) OVER newer AS kept, sum(coalesce(octet_length(packed), octet_length(body))) OVER newer AS bytes
       FROM ${db.schema}.events WHERE shard = $1 WINDOW newer AS (ORDER BY first_seq DESC)) AS sums
     WHERE kept > $2 OR bytes > $3`,
    [shard, eventsKeep ?? keepAll, eventsBytes ?? keepAll],
  );
  return Number(row?.["through"]);
}
