import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { dataFiles, whyNoRoom } from "./sqlite-files.ts";

test("S2, S8: an open that finds the disk full says how much room it needs, with the log that it has to copy", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-full-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = dataFiles(folder);
  const db = new DatabaseSync(files.database);
  t.after(() => db.close());
  db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (body BLOB)");
  for (let n = 0; n < 4; n++) db.exec("INSERT INTO t VALUES (zeroblob(1000000))");
  // SQLite's own answer of a full disk.
  db.exec("PRAGMA max_page_count = 1");
  const full = fault(() => db.exec("INSERT INTO t VALUES (zeroblob(9000000))"));
  const needed = Math.ceil((statSync(`${files.database}-wal`).size + 2 ** 20) / 2 ** 20);
  assert.ok(needed >= 5);
  const { message = "" } = whyNoRoom(files, full) ?? {};
  assert.match(message, new RegExp(`the disk is full: opening ${folder} needs ${needed} MB free, and \\d+ MB are`));
  assert.equal(
    whyNoRoom(
      files,
      fault(() => db.exec("not SQL")),
    ),
    null,
  );
  assert.equal(whyNoRoom(files, new Error("another fault")), null);
});

function fault(run: () => void): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return assert.fail("it went well");
}
