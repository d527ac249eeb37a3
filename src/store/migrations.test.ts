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

function change(folder: string, sql: string): void {
  const db = new DatabaseSync(dataFiles(folder).database);
  db.exec(sql);
  db.close();
}
