/**
 * Moves the data of a stopped server from SQLite to an empty schema of PostgreSQL, whole or not at all, in one transaction
 * there. Ids, fences, numbers and hashes stay as they are.
 *
 *   here:   data ──► data, mark "moving" ──────────────► data, mark "moved"
 *   there:            BEGIN … all rows, the mark's id, COMMIT
 *
 * With a mark no server opens the folder: two that go on from the same data would both give out the same fences (L11). After a
 * crash the move is run again, and the id in the database tells whether it had been done.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type pg from "pg";
import { StoreFault } from "./faults.ts";
import { readJournals } from "./journal-files.ts";
import { type MoveMark, movedWords, readMark, removeMark, writeMark } from "./move-mark.ts";
import { type MovedTable, movedTables } from "./move-rows.ts";
import { Database, placeOf, storable } from "./postgres-connection.ts";
import { migratePostgres } from "./postgres-schema.ts";
import { numberOf, type Row, textOf } from "./rows.ts";
import { type DataFiles, dataFiles, lockFolder } from "./sqlite-files.ts";
import { openWriter } from "./sqlite-writer.ts";

export interface MoveOptions {
  readonly folder: string;
  readonly url: string;
  /** Wall-clock time, in ms. */
  readonly at: number;
  /** A live row's body as the other side stores it: secrets are encrypted there. */
  readonly bodyOf: (kind: string, body: string) => string;
  /** What goes into the table of secrets. */
  readonly secrets: readonly { readonly name: string; readonly sealed: Uint8Array }[];
  /** Runs before anything is final: what else has to be in place. */
  readonly prepare: () => Promise<void>;
  readonly onProgress: (progress: MoveProgress) => void;
}

export interface MoveProgress {
  readonly table: string;
  readonly rows: number;
  readonly of: number;
}

export interface Moved {
  /** By table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly lastSeq: number;
}

const rowsPerStatement = 2_000;
const charsPerStatement = 4 * 2 ** 20;
/** Statements that are sent before the first of them is answered. */
const statementsAhead = 4;

export async function moveToPostgres(options: MoveOptions): Promise<Moved> {
  const files = dataFiles(options.folder);
  if (!existsSync(files.database)) throw refused(`there is no data in ${options.folder}; name the folder with --from`);
  const before = readMark(files);
  if (before?.state === "moved") throw refused(movedWords(files));
  fold(files);
  using _lock = lockFolder(files);
  using source = new DatabaseSync(files.database, { timeout: 0 });
  const meta = source.prepare("SELECT * FROM meta").get();
  if (readJournals(files, numberOf(meta, "folded")).length > 0) {
    throw refused(`a server has worked on ${options.folder} meanwhile; stop it, and run this again`);
  }
  const db = new Database({ url: options.url });
  const id = before?.id || randomUUID();
  const mark: MoveMark = {
    id,
    to: placeOf(options.url),
    schema: db.schema,
    at: new Date(options.at).toISOString(),
    state: "moving",
  };
  let mayBeStored = before !== null;
  try {
    await migratePostgres(db);
    const lastSeq = numberOf(meta, "last_seq");
    if (before !== null && (await isStored(db, id))) {
      writeMark(files, { ...mark, state: "moved" });
      return { rows: countsOf(source), lastSeq };
    }
    if (before !== null && isElsewhere(before, mark)) throw refused(elsewhereWords(before, files));
    mayBeStored = false;
    writeMark(files, mark);
    const rows = await db.transaction(async (client) => {
      await claimEmpty(client, db.schema);
      const copied = await copyAll(client, db.schema, source, options);
      await compare(client, db.schema, source);
      await putMeta(client, db.schema, source, meta);
      for (const { name, sealed } of options.secrets) {
        await client.query(`INSERT INTO ${db.schema}.secrets VALUES ($1, $2)`, [name, sealed]);
      }
      await client.query(`INSERT INTO ${db.schema}.settings VALUES ('moved_from', $1)`, [id]);
      await options.prepare();
      mayBeStored = true;
      return copied;
    });
    writeMark(files, { ...mark, state: "moved" });
    return { rows, lastSeq };
  } catch (error) {
    if (!mayBeStored) removeMark(files);
    throw error;
  } finally {
    await db.close();
  }
}

/** What was sent to another place before may have arrived there: moved twice, both would give out the same fences (L11). */
function isElsewhere(before: MoveMark, { to, schema }: MoveMark): boolean {
  return before.id !== "" && (before.to !== to || before.schema !== schema);
}

function elsewhereWords({ to, schema }: MoveMark, { moved }: DataFiles): string {
  return (
    `a move to ${to} (schema ${schema}) was interrupted, and the data may have arrived there: run it again with that --to; ` +
    `or, only if no server can ever run on it there, delete ${moved}, and move it here`
  );
}

async function isStored(db: Database, id: string): Promise<boolean> {
  const found = await db.read(`SELECT 1 FROM ${db.schema}.settings WHERE name = 'moved_from' AND value = $1`, [id]);
  return found.length > 0;
}

function countsOf(source: DatabaseSync): Record<string, number> {
  return Object.fromEntries(movedTables.map((table) => [table.name, table.count(source)]));
}

/** What a killed server left in its journals goes into the tables. Fails while a server runs. */
function fold(files: DataFiles): void {
  const writer = openWriter(files, true);
  writer.dropJournal();
  writer.close();
}

/** Nobody may lead the data before it is whole: a campaign waits for these rows. */
async function claimEmpty(client: pg.Client, schema: string): Promise<void> {
  await client.query("SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0");
  const { rows } = await client.query(`SELECT epoch, number FROM ${schema}.shards FOR UPDATE`);
  const wasLed = rows.some((row: Row) => Number(row["epoch"]) > 0 || Number(row["number"]) > 0);
  const tables = [...movedTables.map(({ name }) => name), "secrets"];
  const asked = tables.map((name) => `SELECT '${name}' AS name WHERE EXISTS (SELECT 1 FROM ${schema}.${name})`);
  const filled = await client.query<{ name: string }>(asked.join(" UNION ALL "));
  const isEmpty = !wasLed && filled.rows.length === 0;
  if (isEmpty && rows.length === 1) return;
  if (isEmpty) throw severalShards(schema, rows.length);
  const what = filled.rows.map(({ name }) => name).join(", ") || "a server has led there";
  throw refused(
    `the schema ${schema} is in use (${what}); name an empty one with ?schema= in --to, or drop it: DROP SCHEMA ${schema} CASCADE`,
  );
}

async function copyAll(
  client: pg.Client,
  schema: string,
  source: DatabaseSync,
  { bodyOf, onProgress }: MoveOptions,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of movedTables) {
    const of = table.count(source);
    const sending: Promise<unknown>[] = [];
    let chunk: Row[] = [];
    let [rows, chars] = [0, 0];
    const send = async (): Promise<void> => {
      if (sending.length >= statementsAhead) await sending.shift();
      const sent = client.query(...insertOf(schema, table, chunk));
      sent.catch(() => undefined);
      sending.push(sent);
      rows += chunk.length;
      [chunk, chars] = [[], 0];
      onProgress({ table: table.name, rows, of });
    };
    for (const row of table.rows(source)) {
      const body = table.name === "live" ? bodyOf(textOf(row, "kind"), textOf(row, "body")) : (row["body"] ?? "");
      chunk.push(table.name === "live" ? { ...row, body } : row);
      chars += String(body).length;
      if (chunk.length >= rowsPerStatement || chars >= charsPerStatement) await send();
    }
    if (chunk.length > 0) await send();
    await Promise.all(sending);
    counts[table.name] = rows;
  }
  return counts;
}

function insertOf(schema: string, { name, columns }: MovedTable, rows: readonly Row[]): [string, unknown[]] {
  const names = columns.map(([column]) => column).join();
  const lists = columns.map(([, type], index) => `$${index + 1}::${type}[]`).join();
  const values = columns.map(([column]) => storable(rows.map((row) => row[column] ?? null)));
  return [
    `INSERT INTO ${schema}.${name} (shard, ${names}) SELECT 0, ${names} FROM unnest(${lists}) AS u (${names})`,
    values,
  ];
}

/** Both sides have as many rows, and ledgers that end alike. A ledger's hash depends on all before it. */
async function compare(client: pg.Client, schema: string, source: DatabaseSync): Promise<void> {
  for (const table of movedTables) {
    const { rows } = await client.query<{ count: string }>(`SELECT count(*) AS count FROM ${schema}.${table.name}`);
    const [here, there] = [table.count(source), Number(rows[0]?.count)];
    if (here !== there)
      throw new StoreFault(`of ${here} rows of ${table.name} ${there} have arrived; nothing was moved`);
  }
  for (const name of ["receipts", "audit"]) {
    const heads = `SELECT tenant, hash FROM (SELECT tenant, hash, sequence, max(sequence) OVER (PARTITION BY tenant) AS last`;
    const where = "WHERE sequence = last ORDER BY tenant";
    const here = source.prepare(`${heads} FROM ${name}) ${where}`).all();
    const { rows: there } = await client.query(`${heads} FROM ${schema}.${name}) AS s ${where}`);
    const pairs = (list: readonly Row[]): string => JSON.stringify(list.map((row) => [row["tenant"], row["hash"]]));
    if (pairs(here) !== pairs(there as Row[])) throw new StoreFault(`the chains of ${name} differ; nothing was moved`);
  }
}

/**
 * Numbers go on where they are. The engine's time goes on by the database's clock, from the moment that was stored last: what
 * passed since counts for the leases, as after a restart (L7).
 */
async function putMeta(client: pg.Client, schema: string, source: DatabaseSync, meta: Row | undefined): Promise<void> {
  const lastTask = numberOf(source.prepare("SELECT coalesce(max(key), 0) AS key FROM ended_tasks").get(), "key");
  const names = ["now", "last_seq", "last_n", "last_ended", "ended_from", "restores", "restored_at"];
  await client.query(
    `UPDATE ${schema}.shards SET ${names.map((name) => `${name} = ${numberOf(meta, name)}`).join()}, last_task = ${lastTask},
       stored_at = least(clock_timestamp(), to_timestamp(${numberOf(meta, "now")} / 1000.0))`,
  );
}

function severalShards(schema: string, shards: number): StoreFault {
  return refused(`the schema ${schema} is set up with ${shards} shards; name an empty one, which then gets one shard`);
}

function refused(message: string): StoreFault {
  return new StoreFault(message, { code: "store_refused" });
}
