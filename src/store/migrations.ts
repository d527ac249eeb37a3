/**
 * The schema of the SQLite store, as numbered steps; new ones are only appended. `user_version` counts the steps taken;
 * a database with more steps than are known here is refused, because guessing could destroy it.
 */
import type { DatabaseSync } from "node:sqlite";
import { type Fields, snakeCase, text, time } from "../kernel/contract/field.ts";
import { recordFields } from "../kernel/contract/kinds.ts";
import { leaseRow } from "../kernel/contract/records.ts";
import { taskRow } from "../kernel/contract/task-records.ts";
import { StoreFault } from "./faults.ts";

/** Marks the file as ours ("LSHD"), so that no other program's database is ever migrated. */
export const applicationId = 0x4c534844;

export function migrate(db: DatabaseSync): void {
  const version = checkedVersion(db);
  for (const [index, step] of migrations.entries()) {
    if (index < version) continue;
    db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${index + 1}; COMMIT`);
  }
  refreshViews(db);
}

/** The number of steps taken; reading it changes nothing. An empty file counts as ours. */
export function checkedVersion(db: DatabaseSync): number {
  const id = pragma(db, "application_id");
  const version = pragma(db, "user_version");
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (id !== applicationId && !isEmpty) throw new StoreFault(`${db.location() ?? "it"} is not a Leasehold database`);
  if (version > migrations.length) {
    const message =
      `${db.location() ?? "the database"} has schema ${version}, written by a newer Leasehold; this one knows up to ` +
      `${migrations.length}. Upgrade it, or restore a backup made by this version`;
    throw new StoreFault(message, { code: "schema_too_new" });
  }
  return version;
}

function pragma(db: DatabaseSync, name: "application_id" | "user_version"): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

/** The prefix of ids that the ledger assigns. A copy, because a migration never changes; a test compares the two. */
export const ownReceiptIds = "rcp_";

/** The kinds whose bodies are lists: what is at which place. */
export const listRows: Readonly<Record<string, readonly string[]>> = { lease: leaseRow, task: taskRow };
export const described: Readonly<Record<string, Fields>> = {
  ...recordFields,
  ledger_key: { keyId: text(), publicKey: text(), firstUsedAt: time() },
};

export const migrations: readonly string[] = [
  `
  PRAGMA application_id = ${applicationId};

  -- One row. Every commit updates it on condition of its epoch, which refuses an old writer.
  CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    now INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_n INTEGER NOT NULL,
    last_ended INTEGER NOT NULL,
    ended_from INTEGER NOT NULL, -- no lease that ended since this time is missing
    restores INTEGER NOT NULL,
    restored_at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0);

  -- Growing keys, and no other index: rows with random keys cost about six times as much, and recovery reads all.
  -- No column below is NOT NULL: it makes SQLite keep a journal for each statement, a fifth of the cost of a row.
  CREATE TABLE live (n INTEGER PRIMARY KEY, kind TEXT, body TEXT) STRICT;

  -- One row a batch. The time is before the body, so that pruning by age does not read the bodies.
  CREATE TABLE events (
    first_seq INTEGER PRIMARY KEY,
    count INTEGER,
    at INTEGER,
    body TEXT
  ) STRICT;

  -- In the order of their commits, so that a time is found by binary search; "at" is the commit's time and never shrinks.
  CREATE TABLE ended (
    key INTEGER PRIMARY KEY,
    at INTEGER,
    tenant TEXT,
    id TEXT,
    agent_id TEXT,
    resource TEXT,
    predicate TEXT,
    writes INTEGER,
    ended_at INTEGER,
    body TEXT
  ) STRICT;
  -- Ids sort by time, so that this index grows at its end too. Resources have no index: their order is random.
  CREATE INDEX ended_by_id ON ended (tenant, id);
  `,
  `
  -- The ledger (R1, R6). The body is the text that was hashed, and comes last, so that a search does not read it.
  CREATE TABLE receipts (
    key INTEGER PRIMARY KEY,
    tenant TEXT,
    sequence INTEGER,
    id TEXT,
    task_id TEXT,
    phase TEXT,
    recipient_ai TEXT,
    source_system TEXT,
    dedupe TEXT,
    stored_at INTEGER,
    hash TEXT,
    body TEXT
  ) STRICT;
  -- Unique, because two receipts at one place would contradict each other. Ids are not: clients may choose them; those
  -- that the ledger assigns are made of the sequence number, and need no index.
  CREATE UNIQUE INDEX receipts_by_sequence ON receipts (tenant, sequence);
  CREATE INDEX receipts_by_id ON receipts (tenant, id) WHERE NOT id GLOB '${ownReceiptIds}*';
  CREATE INDEX receipts_by_task ON receipts (tenant, task_id);
  CREATE INDEX receipts_by_dedupe ON receipts (tenant, dedupe) WHERE dedupe IS NOT NULL;

  CREATE TABLE heads (
    key INTEGER PRIMARY KEY,
    tenant TEXT,
    sequence INTEGER,
    hash TEXT,
    at INTEGER,
    key_id TEXT,
    signature TEXT
  ) STRICT;
  CREATE INDEX heads_by_sequence ON heads (tenant, sequence);

  -- An accident at a prompt is refused here; a deliberate change is found when the chain is checked.
  ${neverChanged("receipts")}
  ${neverChanged("heads")}

  -- Like ended leases: in the order of their commits, and "at" is the commit's time.
  CREATE TABLE ended_tasks (
    key INTEGER PRIMARY KEY,
    at INTEGER,
    tenant TEXT,
    id TEXT,
    task_type TEXT,
    status TEXT,
    ended_at INTEGER,
    body TEXT
  ) STRICT;
  CREATE INDEX ended_tasks_by_id ON ended_tasks (tenant, id);
  `,
  // Had views only, which are written at every open.
  "",
  `
  -- T12: idempotency keys are found with the live task or, here, with the ended one. They were live rows of their own,
  -- kept for a day whatever became of the task. The fingerprint moves into the task.
  CREATE TEMP TABLE moved_keys (tenant TEXT, id TEXT, key TEXT, fingerprint TEXT, PRIMARY KEY (tenant, id)) WITHOUT ROWID;
  INSERT OR IGNORE INTO moved_keys
    SELECT body ->> '$.tenant', body ->> '$.taskId', body ->> '$.key', body ->> '$.fingerprint'
    FROM live WHERE kind = 'task_key';
  ALTER TABLE ended_tasks ADD COLUMN idempotency_key TEXT;
  UPDATE ended_tasks SET idempotency_key = k.key, body = json_set(body, '$[0][${taskRow.length}].fingerprint', k.fingerprint)
    FROM moved_keys AS k WHERE ended_tasks.tenant = k.tenant AND ended_tasks.id = k.id;
  UPDATE live SET body = json_set(body, '$[${taskRow.length}].fingerprint', k.fingerprint)
    FROM moved_keys AS k WHERE live.kind = 'task' AND k.tenant = live.body ->> '$[0]' AND k.id = live.body ->> '$[1]';
  DELETE FROM live WHERE kind = 'task_key';
  DROP TABLE moved_keys;
  CREATE INDEX ended_tasks_by_key ON ended_tasks (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
  `,
  `
  -- S8: the oldest rows of "events", many in one and compressed (zstd).
  CREATE TABLE event_blocks (first_seq INTEGER PRIMARY KEY, count INTEGER, at INTEGER, body BLOB) STRICT;
  `,
  `
  -- W10: keys that memory has forgotten before their time; "at" is the commit's time. Empty while memory has room.
  CREATE TABLE ended_requests (
    number INTEGER PRIMARY KEY,
    at INTEGER,
    tenant TEXT,
    agent_id TEXT,
    key TEXT,
    fingerprint TEXT,
    lease_id TEXT,
    ended_as TEXT,
    end_reason TEXT
  ) STRICT;
  CREATE INDEX ended_requests_by_key ON ended_requests (tenant, agent_id, key);
  `,
  `
  -- S4: large texts that nothing is decided with, apart from the live rows, so that a start does not load them. A task's is
  -- under the number of its row, and stays there when the task has ended; a digest's context is under that of the digest.
  CREATE TABLE payloads (n INTEGER PRIMARY KEY, body TEXT) STRICT;
  ALTER TABLE ended_tasks ADD COLUMN payload INTEGER;
  CREATE TEMP TABLE moved (tenant TEXT, id TEXT, n INTEGER, bytes INTEGER, PRIMARY KEY (tenant, id)) WITHOUT ROWID;
  INSERT OR IGNORE INTO moved
    SELECT body ->> '$[0]', body ->> '$[1]', n, coalesce(octet_length(body ->> '$[2]'), 0)
      + CASE json_type(body, '$[3]') WHEN 'null' THEN 0 ELSE coalesce(octet_length(body -> '$[3]'), 0) END
    FROM live WHERE kind = 'payload';
  INSERT OR IGNORE INTO payloads SELECT t.n, p.body FROM live AS t
    JOIN moved AS m ON m.tenant = t.body ->> '$[0]' AND m.id = t.body ->> '$[1]' JOIN live AS p ON p.n = m.n
    WHERE t.kind = 'task';
  UPDATE live SET body = json_set(body, '$[${taskRow.length}].payloadBytes', m.bytes)
    FROM moved AS m WHERE live.kind = 'task' AND m.tenant = live.body ->> '$[0]' AND m.id = live.body ->> '$[1]';
  DELETE FROM live WHERE kind = 'payload';
  DELETE FROM moved;
  INSERT OR IGNORE INTO moved SELECT body ->> '$.tenant', body ->> '$.agentId', n, octet_length(body)
    FROM live WHERE kind = 'digest';
  INSERT OR IGNORE INTO payloads SELECT n, coalesce(body -> '$.context', 'null') FROM live WHERE kind = 'digest';
  UPDATE live SET body = json_set(body, '$.context', NULL) WHERE kind = 'digest';
  UPDATE live SET body = json_set(body, '$.digestBytes', m.bytes)
    FROM moved AS m WHERE live.kind = 'agent' AND m.tenant = live.body ->> '$.tenant' AND m.id = live.body ->> '$.id';
  DROP TABLE moved;
  `,
  `
  -- S7: what operators and supervisors changed, chained by tenant.
  CREATE TABLE audit (
    key INTEGER PRIMARY KEY,
    tenant TEXT,
    sequence INTEGER,
    at INTEGER,
    actor TEXT,
    action TEXT,
    hash TEXT,
    body TEXT
  ) STRICT;
  CREATE UNIQUE INDEX audit_by_sequence ON audit (tenant, sequence);
  ${neverChanged("audit")}
  `,
  `
  -- The number of the last commit that is in these tables; later ones are in the journal. A version that does not know
  -- the journal must not open them.
  ALTER TABLE meta ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
  `,
  // Events may be lists from here on. A version that would send those as they are must not open them.
  "",
];

/** R1, for people with a shell on the database. It costs an insert nothing. */
function neverChanged(table: string): string {
  return ["UPDATE", "DELETE"]
    .map(
      (verb) => `CREATE TRIGGER ${table}_no_${verb.toLowerCase()} BEFORE ${verb} ON ${table}
        BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to (R1)'); END;`,
    )
    .join("\n");
}

/** The views for plain SQL, by the kind of record. Nothing in the program reads them. */
export const viewNames: Readonly<Record<string, string>> = {
  lease: "leases",
  agent: "agents",
  request: "requests",
  resource: "resources",
  cell: "cells",
  tenant: "tenants",
  counters: "counters",
  task: "tasks",
  worker: "workers",
  task_type: "task_types",
  ledger_key: "ledger_keys",
};

const views: ReadonlyMap<string, string> = new Map([
  ...Object.entries(viewNames).map(([kind, name]) => [name, viewText(kind, name)] as const),
  [
    "ledger",
    `CREATE VIEW ledger AS SELECT tenant, sequence, id, task_id, phase, body ->> '$.status' AS status, recipient_ai,
    source_system, ${isoTime("stored_at")} AS stored_at, hash, body FROM receipts`,
  ],
]);

/** Views hold no data: one that differs from the contract, such as one without a newer field, is written again. */
function refreshViews(db: DatabaseSync): void {
  const stored = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'view'").all();
  const current = new Map(stored.map(({ name, sql }) => [name, sql]));
  const stale = [...views].filter(([name, text]) => current.get(name) !== text);
  if (stale.length === 0) return;
  const changes = stale.map(([name, text]) => `DROP VIEW IF EXISTS ${name}; ${text};`).join("\n");
  db.exec(`BEGIN IMMEDIATE; ${changes} COMMIT`);
}

/** A column for each field, with what is usual where the stored body leaves it out. Times are shown as ISO 8601. */
function viewText(kind: string, name: string): string {
  const fields = described[kind] ?? {};
  const row = listRows[kind];
  const flat = Object.values(fields).flatMap((field) => Object.entries((field.flat && field.fields) || {}));
  const columns = new Map([...Object.entries(fields).filter(([, field]) => !field.flat), ...flat]);
  const pathOf = (key: string) => {
    if (row === undefined) return `$.${key}`;
    const place = row.indexOf(key);
    return place >= 0 ? `$[${place}]` : `$[${row.length}].${key}`;
  };
  const columnValue = (key: string): string => {
    const { like, usual = null } = columns.get(key) ?? {};
    const value = `body ->> '${pathOf(key)}'`;
    if (like !== undefined) return `coalesce(${value}, ${columnValue(like)})`;
    return usual === null ? value : `coalesce(${value}, ${sqlText(usual)})`;
  };
  const shown = [...columns].map(([key, field]) => {
    const value = columnValue(key);
    return `${field.kind === "time" ? isoTime(value) : value} AS ${snakeCase(key)}`;
  });
  return `CREATE VIEW ${name} AS SELECT ${["n", ...shown, "body"].join(", ")} FROM live WHERE kind = '${kind}'`;
}

function sqlText(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return String(Number(value));
  return `'${typeof value === "string" ? value : JSON.stringify(value)}'`;
}

function isoTime(millis: string): string {
  return `strftime('%Y-%m-%dT%H:%M:%fZ', (${millis}) / 1000.0, 'unixepoch')`;
}
