import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { batch, endedLease, endedTask, liveRows, receipt, row, signedHead } from "./contract-fixture.ts";
import { StoreFault } from "./faults.ts";
import { migrations } from "./migrations.ts";
import { rowsPerBatch } from "./sqlite.child.ts";
import { createSqliteStore } from "./sqlite.ts";
import { dataFiles } from "./sqlite-files.ts";
import type { Store } from "./store.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-sqlite-"));
let folders = 0;
const newFolder = (): string => join(scratch, String(++folders));
after(() => rmSync(scratch, { recursive: true }));

const views = [
  "agents",
  "requests",
  "resources",
  "tenants",
  "counters",
  "tasks",
  "workers",
  "task_types",
  "ledger_keys",
];
const childFile = join(import.meta.dirname, "sqlite.child.ts");

describe("sqlite: processes", () => {
  test("a second server on the same data is refused, in another process too, until the first is killed", async () => {
    const folder = newFolder();
    const child = startChild([childFile, folder]);
    await child.lineThat((line) => line === "open");
    const store = createSqliteStore(folder);
    await assert.rejects(store.open(), { code: "store_locked" });
    await child.kill();
    assert.equal((await store.open()).epoch, 2);
    await store.close();
  });

  test("killed with -9 while it commits, it leaves whole batches, and everything it acknowledged", async () => {
    const folder = newFolder();
    for (let round = 1; round <= 5; round += 1) {
      const child = startChild([childFile, folder]);
      await child.lineThat((line) => Number(line) >= round * 20);
      await child.kill();
      const acknowledged = Number(child.lines.at(-1));
      const store = createSqliteStore(folder);
      const { now, lastSeq } = await store.open();
      assert.ok(now >= acknowledged, `${acknowledged} was acknowledged, ${now} is there`);
      assert.equal(lastSeq, now);
      const numbers = (await liveRows(store)).map(({ body }) => Number(JSON.parse(body).number));
      assert.deepEqual(numbers, Array(rowsPerBatch).fill(now));
      const events = await store.eventsAfter({ tenant: "t", seq: 0, limit: 1_000_000 });
      assert.deepEqual(events.seqs, oneTo(now));
      const ended = await store.endedPage({ tenant: "t", limit: 1_000_000 });
      assert.deepEqual(
        ended.map(({ endedAt }) => endedAt).sort((a, b) => a - b),
        oneTo(now),
      );
      await store.close();
    }
  });

  test("a full disk fails the commit and says so; nothing acknowledged is lost (S2)", async () => {
    const folder = newFolder();
    // A limit on the size of files: no more than 4 MiB of log. Node ignores the signal, so that the write fails.
    const limited = `ulimit -f 4096; exec "$0" "$@"`;
    const child = startChild(["-c", limited, process.execPath, childFile, folder, "5000"], "bash");
    const failed = await child.lineThat((line) => line.startsWith("store_failed"));
    assert.match(failed, /commit failed: .*(disk)/);
    assert.equal(await child.lineThat((line) => line === "refuses"), "refuses");
    await child.ended;
    const acknowledged = Number(child.lines.findLast((line) => Number(line) > 0) ?? 0);
    const store = createSqliteStore(folder);
    assert.ok((await store.open()).now >= acknowledged);
    assert.ok(acknowledged > 0);
    await store.close();
  });

  const hasStrace = spawnSync("strace", ["-V"]).status === 0;
  test("a failed fsync is not retried: the store is unusable until it is reopened (S2)", {
    skip: !hasStrace,
  }, async () => {
    const folder = newFolder();
    const injected = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"];
    const injection = ["-e", "inject=fsync,fdatasync:error=EIO:when=40+"];
    const child = startChild([...injected, ...injection, process.execPath, childFile, folder], "strace");
    const failed = await child.lineThat((line) => line.startsWith("store_failed"));
    assert.match(failed, /commit failed: the disk did not confirm the write \(fsync failed\)/);
    assert.equal(await child.lineThat((line) => line === "refuses"), "refuses");
    await child.kill();
    const acknowledged = Number(child.lines.findLast((line) => Number(line) > 0) ?? 0);
    assert.ok(acknowledged > 0);
    const store = createSqliteStore(folder);
    const { now } = await store.open();
    assert.ok(now >= acknowledged);
    const numbers = new Set((await liveRows(store)).map(({ body }) => Number(JSON.parse(body).number)));
    assert.deepEqual([...numbers], [now]);
    await store.close();
  });
});

describe("sqlite: the file", () => {
  test("S2: a reader thread that died is replaced, and history is answered again", async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): void => void threads.push(thread);
    process.on("worker", note);
    const store = createSqliteStore(newFolder());
    await store.open();
    await store.commit(batch({ now: 1, ended: [endedLease(1)] }));
    assert.equal((await store.endedPage({ tenant: "t", limit: 10 })).length, 1);
    process.off("worker", note);
    await threads.at(-1)?.terminate();
    assert.equal((await store.endedPage({ tenant: "t", limit: 10 })).length, 1);
    await store.close();
  });

  test("data of a newer schema is refused and not changed", async () => {
    const folder = newFolder();
    const store = createSqliteStore(folder);
    await store.open();
    await store.close();
    change(folder, "PRAGMA user_version = 999");
    await assert.rejects(store.open(), { code: "schema_too_new" });
    change(folder, `PRAGMA user_version = ${migrations.length}`);
    assert.equal((await store.open()).epoch, 2);
    await store.close();
  });

  test("another program's database is not touched", async () => {
    const folder = newFolder();
    const store = createSqliteStore(folder);
    await store.open();
    await store.close();
    change(folder, "PRAGMA application_id = 7");
    await assert.rejects(store.open(), /is not a Leasehold database/);
  });

  test("live records can be read with plain SQL while the server runs", async () => {
    const folder = newFolder();
    const store = createSqliteStore(folder);
    await store.open();
    // The order in which the engine writes them (see its record-text.ts).
    const lease = [
      "t",
      "lse_1",
      "FILE:/x",
      "MUTATES",
      "agt_1",
      "ACTIVE",
      7,
      1,
      1_800_000_000_000,
      1_800_000_000_123,
      60_000,
    ];
    await store.commit(
      batch({ now: 1, puts: [{ n: 1, kind: "lease", body: JSON.stringify(lease) }, row(2, "agent")] }),
    );
    await inTables(store);
    const db = new DatabaseSync(dataFiles(folder).database, { readOnly: true });
    const [found, ...others] = db
      .prepare("SELECT id, agent_id, holder, units, state, fence, expires_at FROM leases")
      .all();
    const expected = {
      id: "lse_1",
      agent_id: "agt_1",
      holder: "agt_1",
      units: 1,
      state: "ACTIVE",
      fence: 7,
      expires_at: "2027-01-15T08:00:00.123Z",
    };
    assert.deepEqual({ ...found }, expected);
    assert.equal(others.length, 0);
    for (const view of views) db.exec(`SELECT * FROM ${view}`);
    db.close();
    await store.close();
  });

  test("a view that differs from the contract is written again at open, and other views are left alone", async () => {
    const folder = newFolder();
    const store = createSqliteStore(folder);
    await store.open();
    await store.close();
    const viewsOf = (): Record<string, unknown> => {
      const db = new DatabaseSync(dataFiles(folder).database, { readOnly: true });
      const rows = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'view'").all();
      db.close();
      return Object.fromEntries(rows.map(({ name, sql }) => [String(name), sql]));
    };
    const before = viewsOf();
    change(folder, "DROP VIEW tasks; CREATE VIEW tasks AS SELECT n FROM live; CREATE VIEW mine AS SELECT 1 AS one");
    await store.open();
    await store.close();
    assert.deepEqual(viewsOf(), { ...before, mine: "CREATE VIEW mine AS SELECT 1 AS one" });
  });

  test("data of the first schema is migrated completely", async () => {
    const folder = newFolder();
    mkdirSync(folder, { recursive: true });
    const [first = ""] = migrations;
    change(folder, `BEGIN; ${first}; PRAGMA user_version = 1; COMMIT`);
    change(folder, "INSERT INTO live VALUES (1, 'lease', '[]'); UPDATE meta SET last_n = 1, now = 5");
    const store = createSqliteStore(folder);
    assert.equal((await store.open()).lastN, 1);
    await store.commit(batch({ now: 6, receipts: [receipt(1)], endedTasks: [endedTask(1)], heads: [signedHead(1)] }));
    assert.deepEqual(await liveRows(store), [{ n: 1, kind: "lease", body: "[]" }]);
    assert.deepEqual(await store.receiptsById("t", [receipt(1).id]), [receipt(1)]);
    await store.close();
  });

  test("R1: the ledger can be read with plain SQL, and cannot be changed or thinned out by accident", async () => {
    const folder = newFolder();
    const store = createSqliteStore(folder);
    await store.open();
    await store.commit(batch({ now: 1, receipts: [receipt(1), receipt(2)], heads: [signedHead(2)] }));
    await inTables(store);
    const db = new DatabaseSync(dataFiles(folder).database);
    const found = db.prepare("SELECT sequence, task_id, phase, status, stored_at FROM ledger").all();
    assert.deepEqual(
      found.map((row) => ({ ...row })),
      [1, 2].map((sequence) => ({
        sequence,
        task_id: receipt(sequence).taskId,
        phase: "complete",
        status: "success",
        stored_at: `1970-01-01T00:00:00.00${sequence}Z`,
      })),
    );
    for (const sql of [
      "DELETE FROM receipts",
      "UPDATE receipts SET hash = ''",
      "DELETE FROM heads",
      "UPDATE heads SET at = 0",
    ]) {
      assert.throws(() => db.exec(sql), /only ever added to/);
    }
    db.close();
    await store.close();
  });

  test("a search of the ledger is bounded: a page that found nothing says where to continue", async () => {
    const store = createSqliteStore(newFolder());
    await store.open();
    for (let from = 1; from < 50_000; from += 10_000) {
      const receipts = Array.from({ length: 10_000 }, (_, index) =>
        receipt(from + index, from + index === 45_678 ? { phase: "escalate" } : {}),
      );
      await store.commit(batch({ now: from, receipts }));
    }
    const query = { tenant: "t", limit: 10, phase: "escalate" };
    const first = await store.receiptsPage(query);
    assert.deepEqual(first, { receipts: [], next: 20_000 });
    const second = await store.receiptsPage({ ...query, after: first.next ?? 0 });
    assert.deepEqual(second, { receipts: [], next: 40_000 });
    const third = await store.receiptsPage({ ...query, after: second.next ?? 0 });
    assert.deepEqual(third, { receipts: [receipt(45_678, { phase: "escalate" })], next: null });
    const since = await store.receiptsPage({ ...query, since: 45_000 });
    assert.deepEqual(since, third);
    await store.close();
  });

  test("a search through ended tasks is bounded too, and misses none", async () => {
    const store = createSqliteStore(newFolder());
    await store.open();
    for (let from = 1; from < 50_000; from += 10_000) {
      const endedTasks = Array.from({ length: 10_000 }, (_, index) =>
        endedTask(from + index, from + index === 3 ? { status: "failed" } : {}),
      );
      await store.commit(batch({ now: from, endedTasks }));
    }
    const found: string[] = [];
    let pages = 0;
    for (let before: string | null = null; ; pages += 1) {
      const query = { tenant: "t", limit: 10, status: "failed" };
      const page = await store.endedTaskPage(before === null ? query : { ...query, before });
      found.push(...page.tasks.map(({ id }) => id));
      if (page.next === null) break;
      before = page.next;
    }
    assert.deepEqual({ found, pages }, { found: [endedTask(3).id], pages: 2 });
    await store.close();
  });

  async function commitsWhileForgetting(): Promise<number> {
    const store = createSqliteStore(newFolder());
    await store.open();
    for (let now = 1; now <= 20; now += 1) {
      await store.commit(batch({ now, ended: Array.from({ length: 1_000 }, (_, n) => endedLease(now * 1_000 + n)) }));
    }
    let isPruned = false;
    const pruned = store.prune({ eventsBefore: 0, endedBefore: 100, endedKeep: 1_000_000 }).then((result) => {
      isPruned = true;
      return result;
    });
    let between = 0;
    for (let now = 21; !isPruned; now += 1) {
      await store.commit(batch({ now: Math.min(now, 100), puts: [row(now)] }));
      if (!isPruned) between += 1;
    }
    assert.deepEqual(await pruned, { events: 0, ended: 20_000, endedTasks: 0 });
    await store.close();
    return between;
  }

  test("commits continue while history is pruned", async () => {
    const counts: number[] = [];
    // If this thread is blocked, the store's has nothing to commit meanwhile; that hardly happens three times in a row.
    while (counts.length < 3 && (counts.at(-1) ?? 0) < 20) counts.push(await commitsWhileForgetting());
    assert.ok((counts.at(-1) ?? 0) >= 20, `${counts.join(", ")} commits went through in between`);
  });

  test("the message for data that cannot be opened names the cause", async () => {
    const store: Store = createSqliteStore("/dev/null/data");
    await assert.rejects(store.open(), (error: unknown) => error instanceof StoreFault && /data/.test(error.message));
  });
});

/** Commits reach the tables a moment after they are durable; every query waits for that. */
async function inTables(store: Store): Promise<void> {
  await store.earliestSeq();
}

function change(folder: string, sql: string): void {
  const db = new DatabaseSync(dataFiles(folder).database);
  db.exec(sql);
  db.close();
}

function oneTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

interface Child {
  readonly lines: readonly string[];
  readonly lineThat: (test: (line: string) => boolean) => Promise<string>;
  readonly ended: Promise<unknown>;
  readonly kill: () => Promise<void>;
}

function startChild(args: readonly string[], program = process.execPath): Child {
  const child: ChildProcess = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], detached: true });
  const ended = once(child, "close");
  const lines: string[] = [];
  const watchers = new Set<() => void>();
  const reader = createInterface({ input: child.stdout ?? process.stdin });
  reader.on("line", (line) => {
    lines.push(line);
    for (const watch of watchers) watch();
  });
  const lineThat = (test: (line: string) => boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        const found = lines.find(test);
        if (found === undefined) return;
        watchers.delete(watch);
        resolve(found);
      };
      watchers.add(watch);
      watch();
      ended.then(() => reject(new Error(`the child ended, having said: ${lines.slice(-3).join(" / ")}`)), reject);
    });
  const kill = async (): Promise<void> => {
    // The whole group that was started here, so that a child under strace dies too.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  return { lines, lineThat, ended, kill };
}
