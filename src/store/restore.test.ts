import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { batch, endedLease, liveRows, packedEvents, row } from "./contract-fixture.ts";
import { StoreFault } from "./faults.ts";
import { restore } from "./restore.ts";
import { createSqliteStore } from "./sqlite.ts";
import { dataFiles } from "./sqlite-files.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-restore-"));
let names = 0;
const newPath = (): string => join(scratch, String(++names));
after(() => rmSync(scratch, { recursive: true }));

/** Backs up data with one row, and returns the file. */
async function backupOf(n: number): Promise<string> {
  const store = createSqliteStore(newPath());
  await store.open();
  await store.commit(batch({ now: 10, puts: [row(n)], ended: [endedLease(1)] }));
  const file = newPath();
  await store.backup(file);
  await store.close();
  return file;
}

test("a backup taken during writes is one moment of the data, and the writes continue (S6)", async () => {
  const store = createSqliteStore(newPath());
  await store.open();
  const batchOf = (number: number) => {
    const puts = Array.from({ length: 100 }, (_, index) => {
      return { n: index + 1, kind: "lease", body: JSON.stringify({ number, filler: "x".repeat(300) }) };
    });
    return batch({ now: number, puts, events: packedEvents(number, 1) });
  };
  for (let number = 1; number <= 100; number += 1) await store.commit(batchOf(number));
  const file = newPath();
  let isDone = false;
  const backup = store.backup(file).then(() => {
    isDone = true;
  });
  let last = 100;
  while (!isDone) await store.commit(batchOf(++last));
  await backup;
  await store.close();
  assert.ok(last > 105, "commits continued while it ran");

  const folder = newPath();
  const { now } = restore(file, folder, { at: 1 });
  const restored = createSqliteStore(folder);
  assert.equal((await restored.open()).lastSeq, now);
  const numbers = new Set((await liveRows(restored)).map(({ body }) => Number(JSON.parse(body).number)));
  assert.deepEqual([...numbers], [now]);
  assert.ok(now >= 100 && now <= last);
  assert.equal((await restored.eventsAfter({ tenant: "t", seq: 0, limit: 10_000 })).seqs.length, now);
  await restored.close();
});

test("restored data records the restore, and continues from the backup's time", async () => {
  const folder = newPath();
  assert.deepEqual(restore(await backupOf(1), folder, { at: 777 }), { restores: 1, now: 10 });
  const store = createSqliteStore(folder);
  const { restores, restoredAt, now, lastN } = await store.open();
  assert.deepEqual({ restores, restoredAt, now, lastN }, { restores: 1, restoredAt: 777, now: 10, lastN: 1 });
  assert.deepEqual(await liveRows(store), [row(1)]);
  assert.deepEqual(await store.endedLease("t", [endedLease(1).id]), [endedLease(1)]);
  await store.close();
});

test("existing data is replaced only by force, and data in use never", async () => {
  const file = await backupOf(1);
  const folder = newPath();
  const store = createSqliteStore(folder);
  await store.open();
  await store.commit(batch({ now: 5, puts: [row(2)] }));
  assert.throws(() => restore(file, folder, { at: 1, force: true }), { code: "store_locked" });
  await store.close();
  assert.throws(() => restore(file, folder, { at: 1 }), /exists already/);
  await store.open();
  assert.deepEqual(await liveRows(store), [row(2)]);
  await store.close();
  restore(file, folder, { at: 1, force: true });
  await store.open();
  assert.deepEqual(await liveRows(store), [row(1)]);
  await store.close();
});

test("two restores of one backup can be told apart, so that no fence is given twice (L11)", async () => {
  const file = await backupOf(1);
  const folder = newPath();
  assert.equal(restore(file, folder, { at: 1 }).restores, 1);
  assert.equal(restore(file, folder, { at: 2, force: true }).restores, 2);
});

test("damaged data is replaced by force; its log is not mistaken for that of the backup", async () => {
  const folder = newPath();
  const { database } = dataFiles(folder);
  restore(await backupOf(1), folder, { at: 1 });
  writeFileSync(database, "not a database".repeat(1_000));
  writeFileSync(`${database}-wal`, "nor is this its log".repeat(1_000));
  restore(await backupOf(2), folder, { at: 2, force: true });
  const store = createSqliteStore(folder);
  await store.open();
  assert.deepEqual(await liveRows(store), [row(2)]);
  await store.close();
});

test("a damaged backup, or a file that is not a backup, is refused, and the data is unchanged", async () => {
  const folder = newPath();
  restore(await backupOf(1), folder, { at: 1 });
  const before = readFileSync(dataFiles(folder).database);
  const cut = await backupOf(2);
  truncateSync(cut, 12_288);
  const none = newPath();
  writeFileSync(none, "no database at all, by far");
  const empty = newPath();
  writeFileSync(empty, "");
  for (const file of [cut, none, empty, newPath()]) {
    assert.throws(() => restore(file, folder, { at: 1, force: true }), StoreFault);
  }
  assert.deepEqual(readFileSync(dataFiles(folder).database), before);
  assert.equal(existsSync(`${dataFiles(folder).database}.copy`), false);
});

test("a folder whose restore was interrupted is not opened until the restore is run again", async () => {
  const folder = newPath();
  const file = await backupOf(1);
  restore(file, folder, { at: 1 });
  writeFileSync(dataFiles(folder).restoring, "");
  const store = createSqliteStore(folder);
  await assert.rejects(store.open(), /was interrupted: run it again/);
  restore(file, folder, { at: 1, force: true });
  await store.open();
  await store.close();
});

test("a backup does not go into the data folder, where it could hit the data itself", async () => {
  const folder = newPath();
  const store = createSqliteStore(folder);
  await store.open();
  await assert.rejects(store.backup(dataFiles(folder).database), /data folder/);
  await store.commit(batch({ now: 1, puts: [row(1)] }));
  await store.close();
});
