/**
 * The schema of the PostgreSQL store, as numbered steps; new ones are only appended. They run in one transaction, under a
 * lock of that transaction, so that servers that start together take turns. Plain SQL: no functions, triggers or extensions.
 */
import { createHash } from "node:crypto";
import type pg from "pg";
import { snakeCase } from "../kernel/contract/field.ts";
import { StoreFault } from "./faults.ts";
import { described, listRows, viewNames } from "./migrations.ts";
import type { Database } from "./postgres-connection.ts";

/** "LSHD": so that no other program's lock is waited for. */
const migrationLock = 0x4c534844;
const versionMin = 140_000;

/**
 * Brings the schema up to date, and refuses a database that cannot carry it. Changes nothing where nothing is to do. A new
 * database gets `shards` shards, for good.
 */
export async function migratePostgres(db: Database, shards = 1): Promise<void> {
  const { schema } = db;
  const [server] = await db.read("SELECT current_setting('server_version_num')::int AS version, version() AS words");
  const version = Number(server?.["version"]);
  if (version < versionMin) {
    const text = `PostgreSQL ${Math.floor(version / 10_000)} is too old; Leasehold needs ${versionMin / 10_000} or newer`;
    throw new StoreFault(text, { code: "store_refused" });
  }
  const views = viewsOf(schema);
  if (await isCurrent(db, views.digest)) return;
  await db.transaction(async (client) => {
    await client.query("SET LOCAL lock_timeout = '20s'; SET LOCAL idle_in_transaction_session_timeout = '60s'");
    await client.query(`SELECT pg_advisory_xact_lock(${migrationLock}, hashtext('${schema}'))`);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query(`CREATE TABLE IF NOT EXISTS ${schema}.schema_steps (
      step int PRIMARY KEY, taken_at timestamptz NOT NULL DEFAULT now())`);
    await client.query(`CREATE TABLE IF NOT EXISTS ${schema}.settings (name text PRIMARY KEY, value text NOT NULL)`);
    const taken = await client.query<{ step: number }>(
      `SELECT coalesce(max(step), 0) AS step FROM ${schema}.schema_steps`,
    );
    const from = checked(Number(taken.rows[0]?.step ?? 0));
    for (const [index, step] of steps.entries()) {
      if (index < from) continue;
      await client.query(step(schema));
      await client.query(`INSERT INTO ${schema}.schema_steps (step) VALUES (${index + 1})`);
    }
    if (from === 0 && shards > 1) await client.query(shardsText(schema, shards));
    await client.query(views.text);
    await putSetting(client, schema, "views", views.digest);
  });
}

/** How many shards the database was set up with. */
export async function readShards(db: Database): Promise<number> {
  const [row] = await db.read(`SELECT value FROM ${db.schema}.settings WHERE name = 'shards'`);
  return Number(row?.["value"] ?? 1);
}

/** The other shards read the directory of shard 0 often, and must not search all that is alive for it. */
function shardsText(schema: string, shards: number): string {
  return `
    UPDATE ${schema}.settings SET value = '${Math.floor(shards)}' WHERE name = 'shards';
    INSERT INTO ${schema}.shards (shard, system, timeline) SELECT n, '', '' FROM generate_series(1, ${Math.floor(shards) - 1}) AS n;
    CREATE INDEX live_directory ON ${schema}.live (shard, kind) WHERE kind IN ('tenant', 'key', 'policy', 'engine')`;
}

async function isCurrent(db: Database, digest: string): Promise<boolean> {
  const [found] = await db.read("SELECT to_regclass($1)::text AS name", [`${db.schema}.settings`]);
  if (found?.["name"] == null) return false;
  const [row] = await db.read(`SELECT (SELECT max(step) FROM ${db.schema}.schema_steps) AS step,
    (SELECT value FROM ${db.schema}.settings WHERE name = 'views') AS views`);
  return checked(Number(row?.["step"] ?? 0)) === steps.length && row?.["views"] === digest;
}

function checked(step: number): number {
  if (step <= steps.length) return step;
  const message = `the database has schema ${step}, written by a newer Leasehold; this one knows up to ${steps.length}. Upgrade it`;
  throw new StoreFault(message, { code: "schema_too_new" });
}

function putSetting(client: pg.Client, schema: string, name: string, value: string) {
  return client.query(
    `INSERT INTO ${schema}.settings VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [name, value],
  );
}

/** All that belongs to a shard has its number first in the key: a shard is a part of each table. */
const steps: readonly ((schema: string) => string)[] = [
  (schema) => `
  -- One row a shard. Every commit updates it, on condition of epoch, number and timeline; a campaign raises the epoch.
  CREATE TABLE ${schema}.shards (
    shard int PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL DEFAULT 0,     -- of the last commit
    server text,                          -- the process that leads; null: nobody
    url text,
    led_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL DEFAULT 'epoch',
    now bigint NOT NULL DEFAULT 0,        -- the engine's time, and the database's when that was stored
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seq bigint NOT NULL DEFAULT 0,
    last_n bigint NOT NULL DEFAULT 0,
    last_ended bigint NOT NULL DEFAULT 0,
    last_task bigint NOT NULL DEFAULT 0,
    ended_from bigint NOT NULL DEFAULT 0,
    restores bigint NOT NULL DEFAULT 0,
    restored_at bigint NOT NULL DEFAULT 0,
    system text NOT NULL,                 -- the database cluster and its timeline; others mean that history may be lost
    timeline text NOT NULL
  ) WITH (fillfactor = 10);

  -- Rows are updated in place most of the time, so pages keep room for it.
  CREATE TABLE ${schema}.live (
    shard int, n bigint, kind text COLLATE "C" NOT NULL, body text NOT NULL, PRIMARY KEY (shard, n)
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
  CREATE TABLE ${schema}.payloads (shard int, n bigint, body text NOT NULL, PRIMARY KEY (shard, n));
  CREATE TABLE ${schema}.events (
    shard int, first_seq bigint, count int NOT NULL, at bigint NOT NULL, body text NOT NULL,
    PRIMARY KEY (shard, first_seq));
  CREATE TABLE ${schema}.ended (
    shard int, key bigint, at bigint NOT NULL, tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    agent_id text NOT NULL, resource text NOT NULL, predicate text NOT NULL, writes smallint NOT NULL,
    ended_at bigint NOT NULL, body text NOT NULL, PRIMARY KEY (shard, key));
  CREATE INDEX ended_by_id ON ${schema}.ended (shard, tenant, id);
  CREATE TABLE ${schema}.ended_tasks (
    shard int, key bigint, at bigint NOT NULL, tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    task_type text NOT NULL, status text NOT NULL, ended_at bigint NOT NULL, idempotency_key text COLLATE "C",
    payload bigint, body text NOT NULL, PRIMARY KEY (shard, key));
  CREATE INDEX ended_tasks_by_id ON ${schema}.ended_tasks (shard, tenant, id);
  CREATE INDEX ended_tasks_by_key ON ${schema}.ended_tasks (shard, tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE TABLE ${schema}.ended_requests (
    shard int, number bigint GENERATED ALWAYS AS IDENTITY, at bigint NOT NULL, tenant text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, fingerprint text NOT NULL, lease_id text NOT NULL,
    ended_as text NOT NULL, end_reason text, PRIMARY KEY (shard, number));
  CREATE INDEX ended_requests_by_key ON ${schema}.ended_requests (shard, tenant, agent_id, key);

  -- The ledger (R1, R6): two receipts at one place would contradict each other.
  CREATE TABLE ${schema}.receipts (
    shard int, tenant text COLLATE "C", sequence bigint, id text COLLATE "C" NOT NULL, task_id text COLLATE "C" NOT NULL,
    phase text NOT NULL, recipient_ai text NOT NULL, source_system text NOT NULL, dedupe text COLLATE "C",
    stored_at bigint NOT NULL, hash text NOT NULL, body text NOT NULL, PRIMARY KEY (shard, tenant, sequence));
  CREATE INDEX receipts_by_id ON ${schema}.receipts (shard, tenant, id);
  CREATE INDEX receipts_by_task ON ${schema}.receipts (shard, tenant, task_id, sequence);
  CREATE INDEX receipts_by_dedupe ON ${schema}.receipts (shard, tenant, dedupe) WHERE dedupe IS NOT NULL;
  CREATE TABLE ${schema}.heads (
    shard int, key bigint GENERATED ALWAYS AS IDENTITY, tenant text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
    hash text NOT NULL, at bigint NOT NULL, key_id text NOT NULL, signature text NOT NULL, PRIMARY KEY (shard, key));
  CREATE INDEX heads_by_sequence ON ${schema}.heads (shard, tenant, sequence, key);
  CREATE TABLE ${schema}.audit (
    shard int, tenant text COLLATE "C", sequence bigint, at bigint NOT NULL, actor text NOT NULL, action text NOT NULL,
    hash text NOT NULL, body text NOT NULL, PRIMARY KEY (shard, tenant, sequence));

  -- Secrets of the service, encrypted under the operator's master key.
  CREATE TABLE ${schema}.secrets (name text PRIMARY KEY, sealed bytea NOT NULL);
  INSERT INTO ${schema}.settings VALUES ('shards', '1');
  INSERT INTO ${schema}.shards (shard, system, timeline) SELECT 0, '', '';
  `,
  (schema) => `
  -- The servers that are there, by their own reports.
  CREATE TABLE ${schema}.servers (
    server text PRIMARY KEY,
    url text NOT NULL,
    version text NOT NULL,
    may_lead int NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
  ) WITH (fillfactor = 50);
  `,
  // Events may be lists from here on. A version that would send those as they are must not open them.
  () => "SELECT 1",
  (schema) => `
  -- What of a commit is not in its tables yet, one row a commit (postgres-fold.ts). It is compressed already, or short.
  CREATE TABLE ${schema}.journal (shard int, number bigint, body bytea NOT NULL, PRIMARY KEY (shard, number));
  ALTER TABLE ${schema}.journal ALTER COLUMN body SET STORAGE EXTERNAL;
  -- Longer rows are compressed by the server that writes them: they have no body.
  ALTER TABLE ${schema}.events ADD COLUMN packed bytea, ALTER COLUMN body DROP NOT NULL;
  ALTER TABLE ${schema}.events ALTER COLUMN packed SET STORAGE EXTERNAL;
  -- A server that does not know the journal raises the epoch alone, and must not lead: it would not load what is there.
  ALTER TABLE ${schema}.shards ADD COLUMN journal_epoch bigint NOT NULL DEFAULT 0;
  UPDATE ${schema}.shards SET journal_epoch = epoch;
  ALTER TABLE ${schema}.shards ADD CONSTRAINT knows_journal CHECK (epoch <= journal_epoch);
  `,
  (schema) => `
  -- The epoch of a leader that was asked to resign; 0: none was.
  ALTER TABLE ${schema}.shards ADD COLUMN resign_epoch bigint NOT NULL DEFAULT 0;
  -- Until then a server that was asked to resign is not given shards.
  ALTER TABLE ${schema}.servers ADD COLUMN rests_until timestamptz NOT NULL DEFAULT 'epoch';
  -- What servers tell the leader of shard 0, where there are several: when keys were used, and sessions that were signed out.
  CREATE TABLE ${schema}.key_uses (key_id text COLLATE "C" PRIMARY KEY, at bigint NOT NULL) WITH (fillfactor = 50);
  CREATE TABLE ${schema}.signed_out (
    id text COLLATE "C" PRIMARY KEY, key_id text NOT NULL, until bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
  CREATE INDEX signed_out_by_at ON ${schema}.signed_out (at);
  `,
];

/** For people and dashboards. Nothing in the program reads them. */
function viewsOf(schema: string): { readonly text: string; readonly digest: string } {
  const views = Object.entries(viewNames).map(([kind, name]) => [name, viewText(schema, kind)] as const);
  const all: (readonly [string, string])[] = [
    ...views,
    [
      "leaders",
      `SELECT shard, server, url, epoch, led_since, lease_until, lease_until > clock_timestamp() AS leads, number AS commits,
       ${isoTime("now")} AS service_time FROM ${schema}.shards`,
    ],
    [
      "ledger",
      `SELECT shard, tenant, sequence, id, task_id, phase, body::json ->> 'status' AS status, recipient_ai, source_system,
       ${isoTime("stored_at")} AS stored_at, hash, body FROM ${schema}.receipts`,
    ],
  ];
  const text = all
    .map(([name, select]) => `DROP VIEW IF EXISTS ${schema}.${name}; CREATE VIEW ${schema}.${name} AS ${select};`)
    .join("\n");
  return { text, digest: createHash("sha256").update(text).digest("hex") };
}

/** A column for each field of the contract, with what is usual where the stored body leaves it out. */
function viewText(schema: string, kind: string): string {
  const fields = described[kind] ?? {};
  const list = listRows[kind];
  const flat = Object.values(fields).flatMap((field) => Object.entries((field.flat && field.fields) || {}));
  const columns = new Map([...Object.entries(fields).filter(([, field]) => !field.flat), ...flat]);
  const pathTo = (key: string): string => {
    if (list === undefined) return `->> '${key}'`;
    const place = list.indexOf(key);
    return place >= 0 ? `->> ${place}` : `-> ${list.length} ->> '${key}'`;
  };
  const columnValue = (key: string): string => {
    const { like, usual = null } = columns.get(key) ?? {};
    const value = `b.j ${pathTo(key)}`;
    if (like !== undefined) return `coalesce(${value}, ${columnValue(like)})`;
    return usual === null
      ? value
      : `coalesce(${value}, '${typeof usual === "string" ? usual : JSON.stringify(usual)}')`;
  };
  const shown = [...columns].map(([key, field]) => {
    const value = columnValue(key);
    return `${field.kind === "time" ? isoTime(`(${value})::bigint`) : value} AS ${snakeCase(key)}`;
  });
  return `SELECT ${["l.shard", "l.n", ...shown, "l.body"].join(", ")} FROM ${schema}.live AS l,
    LATERAL (SELECT l.body::json AS j) AS b WHERE l.kind = '${kind}'`;
}

function isoTime(millis: string): string {
  return `to_timestamp((${millis}) / 1000.0)`;
}
