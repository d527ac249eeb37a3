import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { readEndedTask, readRecord } from "../engine/codec/record-text.ts";
import { liveRows } from "./contract-fixture.ts";
import { migrations } from "./migrations.ts";
import { createSqliteStore } from "./sqlite.ts";
import { dataFiles } from "./sqlite-files.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-migrations-"));
after(() => rmSync(scratch, { recursive: true }));
let folders = 0;
const newFolder = (): string => join(scratch, String(++folders));

test("T12: idempotency keys that were live rows move to their tasks, live or ended, and leave the live rows", async () => {
  const folder = newFolder();
  mkdirSync(folder, { recursive: true });
  change(folder, `BEGIN; ${migrations.slice(0, 3).join(";")}; PRAGMA user_version = 3; COMMIT`);
  const task = (id: string) =>
    `["t","${id}","queued","build","lead",0,0,1,2,3,10,900000,30000,{"idempotencyKey":"k ${id}"}]`;
  const key = (id: string) =>
    JSON.stringify({ tenant: "t", key: `k ${id}`, taskId: id, fingerprint: `f ${id}`, forgetAt: 9 });
  change(
    folder,
    `INSERT INTO live VALUES (1, 'task', '${task("T-1")}'), (2, 'task_key', '${key("T-1")}'), (3, 'task_key', '${key("T-2")}'),
      (4, 'task_key', '${key("T-gone")}'), (5, 'lease', '[]');
    INSERT INTO ended_tasks VALUES (1, 5, 't', 'T-2', 'build', 'succeeded', 5, '[${task("T-2")},null]'),
      (2, 5, 't', 'T-3', 'build', 'succeeded', 5, '[${task("T-3")},null]');
    UPDATE meta SET last_n = 5, now = 5`,
  );
  const store = createSqliteStore(folder);
  await store.open();
  const rows = await liveRows(store);
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ["task", "lease"],
  );
  const live = readRecord("task", rows[0]?.body ?? "", 1).record;
  assert.equal("fingerprint" in live && live.fingerprint, "f T-1");
  const [ended, ...others] = await store.endedTasksByKey("t", ["k T-1", "k T-2", "k T-3", "k T-gone"]);
  assert.deepEqual([ended?.id, others.length], ["T-2", 0]);
  assert.equal(readEndedTask(ended?.body ?? "").fingerprint, "f T-2");
  await store.close();
});

test("S4: payloads and digests that were live rows are stored apart, and their owners know the size", async () => {
  const folder = newFolder();
  mkdirSync(folder, { recursive: true });
  const version = 6;
  change(folder, `BEGIN; ${migrations.slice(0, version).join(";")}; PRAGMA user_version = ${version}; COMMIT`);
  const task = (id: string) => `["t","${id}","queued","build","lead",0,0,1,2,3,10,900000,30000,{}]`;
  const payload = (id: string) => `["t","${id}","é",{"a":1}]`;
  const agent = {
    tenant: "t",
    id: "a",
    state: "PLANNING",
    priority: 1,
    attempts: 0,
    epoch: 1,
    registeredAt: 1,
    idleSince: 1,
  };
  const digest = {
    tenant: "t",
    agentId: "a",
    checkpointId: "c",
    resumePoint: "p",
    context: { big: "x" },
    intentBacklog: [],
  };
  const whole = JSON.stringify({ ...digest, resolutionStrategy: "RETRY", priority: 1, savedAt: 4 });
  change(
    folder,
    `INSERT INTO live VALUES (1, 'payload', '${payload("T-1")}'), (2, 'task', '${task("T-1")}'), (3, 'task', '${task("T-2")}'),
      (4, 'agent', '${JSON.stringify(agent)}'), (5, 'digest', '${whole}'), (6, 'payload', '["t","T-3",null,null]'),
      (7, 'task', '${task("T-3")}');
    INSERT INTO ended_tasks (at, tenant, id, task_type, status, ended_at, body)
      VALUES (5, 't', 'T-0', 'build', 'succeeded', 5, '[${task("T-0")},${payload("T-0")}]');
    UPDATE meta SET last_n = 7, now = 5`,
  );
  const store = createSqliteStore(folder);
  await store.open();
  const records = new Map((await liveRows(store)).map(({ n, kind, body }) => [n, readRecord(kind, body, n).record]));
  assert.deepEqual([...records.keys()], [2, 3, 4, 5, 7]);
  const sizes = [2, 3, 7].map((n) => (records.get(n) as { readonly payloadBytes?: number }).payloadBytes);
  assert.deepEqual(sizes, [2 + '{"a":1}'.length, 0, 0]);
  assert.equal((records.get(4) as { readonly digestBytes?: number }).digestBytes, whole.length);
  const [own] = await store.payloads([2]);
  assert.equal(own?.body, payload("T-1"));
  const [context] = await store.payloads([5]);
  assert.equal(context?.body, '{"big":"x"}');
  const [ended] = await store.endedTasks("t", ["T-0"]);
  assert.deepEqual([ended?.payload, readEndedTask(ended?.body ?? "").payload?.taskBody], [null, "é"]);
  await store.close();
});

function change(folder: string, sql: string): void {
  const db = new DatabaseSync(dataFiles(folder).database);
  db.exec(sql);
  db.close();
}
