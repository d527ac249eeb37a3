import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { batch, endedLease, liveRows, packedEvents, receipt, row } from "./contract-fixture.ts";
import { type FlatBatch, flatten } from "./flat-batch.ts";
import { Journal } from "./journal.ts";
import { BlockEncoder, blockAlign, blocksIn, decodeBlock } from "./journal-block.ts";
import { makeJournals, sealJournals } from "./journal-files.ts";
import { restore } from "./restore.ts";
import { rowsPerBatch } from "./sqlite.child.ts";
import { createSqliteStore } from "./sqlite.ts";
import { dataFiles, makeFolder } from "./sqlite-files.ts";
import type { Store } from "./store.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-journal-"));
let names = 0;
const newPath = (): string => join(scratch, String(++names));
after(() => rmSync(scratch, { recursive: true }));

const mark = Buffer.from("0123456789abcdef", "hex");
const value = fc.oneof(fc.nat(), fc.constant(null), fc.string({ unit: "binary", maxLength: 20 }));
const values = fc.array(value, { maxLength: 12 });
const keys = fc.array(fc.nat(), { maxLength: 5 });
const plain = { noNullPrototype: true } as const;
const flatBatch: fc.Arbitrary<FlatBatch> = fc.record(
  {
    position: fc.record({ now: fc.maxSafeNat(), lastSeq: fc.nat(), lastN: fc.nat(), lastEnded: fc.nat() }, plain),
    puts: values,
    removes: keys,
    payloads: values,
    payloadRemoves: keys,
    events: values,
    ended: values,
    endedTasks: values,
    endedRequests: values,
    receipts: values,
    heads: values,
    audits: values,
  },
  plain,
);

describe("journal: syncing", () => {
  for (const [where, quickSyncMs] of [
    ["on this thread", Number.POSITIVE_INFINITY],
    ["in the thread pool", -1],
  ] as const) {
    test(`commits synced ${where} are durable in their order, and the reader of the file finds all of them`, async () => {
      const files = dataFiles(newPath());
      makeFolder(files.folder);
      const pair = makeJournals(files);
      const journal = new Journal(pair, 1, () => Promise.resolve(), { quickSyncMs });
      const encoder = new BlockEncoder(Buffer.from(pair.mark, "hex"));
      const empty = flatten(batch({ now: 1 }), 0, { now: 1, lastSeq: 0, lastN: 0, lastEnded: 0 });
      const done: number[] = [];
      const commits = [1, 2, 3, 4, 5].map((number) =>
        journal.append(() => encoder.encode(number, empty)).then(() => done.push(number)),
      );
      await Promise.all(commits);
      await journal.close();
      assert.deepEqual(done, [1, 2, 3, 4, 5]);
      const found = [...blocksIn(readFileSync(pair.paths[0]), Buffer.from(pair.mark, "hex"))];
      assert.deepEqual(
        found.map(({ number }) => number),
        done,
      );
    });
  }

  test("a slow disk is tried again after 8 commits, then after twice as many each time, and after 8 once it was quick", async () => {
    const files = dataFiles(newPath());
    makeFolder(files.folder);
    const disk = { quickSyncMs: -1 };
    const journal = new Journal(makeJournals(files), 1, () => Promise.resolve(), disk);
    /** A commit that was synced on this thread is durable when `append` returns. */
    const isSyncedHere = async (): Promise<boolean> => {
      const appended = journal.append(() => Buffer.alloc(blockAlign));
      const first = await Promise.race([appended, "in the pool"]);
      await appended;
      return first === undefined;
    };
    const pooledRun = async (): Promise<number> => {
      let count = 0;
      while (!(await isSyncedHere())) count++;
      return count;
    };
    assert.equal(await pooledRun(), 0);
    assert.deepEqual([await pooledRun(), await pooledRun()], [8, 16]);
    disk.quickSyncMs = Number.POSITIVE_INFINITY;
    assert.deepEqual([await pooledRun(), await pooledRun()], [32, 0]);
    disk.quickSyncMs = -1;
    assert.deepEqual([await pooledRun(), await pooledRun()], [0, 8]);
    await journal.close();
  });

  test("a sync that fails on this thread fails its commit, and says so", async () => {
    const files = dataFiles(newPath());
    makeFolder(files.folder);
    const pair = makeJournals(files);
    // What is written there goes nowhere, and it cannot be synced.
    const journal = new Journal({ ...pair, paths: ["/dev/null", "/dev/null"] }, 1, () => Promise.resolve());
    await assert.rejects(
      journal.append(() => Buffer.alloc(blockAlign)),
      /the disk did not confirm the write/,
    );
    await journal.close();
  });
});

describe("journal: blocks", () => {
  test("whatever is committed comes back as it was, block after block", () => {
    fc.assert(
      fc.property(fc.array(flatBatch, { minLength: 1, maxLength: 4 }), (batches) => {
        const encoder = new BlockEncoder(mark);
        const bytes = Buffer.concat(batches.map((flat, index) => Buffer.from(encoder.encode(index + 7, flat))));
        assert.equal(bytes.length % blockAlign, 0);
        const found = [...blocksIn(bytes, mark)].map(({ offset }) => decodeBlock(bytes, offset));
        assert.deepEqual(
          found,
          batches.map((flat, index) => ({ number: index + 7, batch: flat })),
        );
      }),
    );
  });

  test("a block with any byte changed is not one, nor one with another mark", () => {
    const encoder = new BlockEncoder(mark);
    const flat = fc.sample(flatBatch, { numRuns: 1, seed: 1 })[0];
    assert.ok(flat !== undefined);
    const bytes = Buffer.from(encoder.encode(1, flat));
    const length = bytes.readUInt32LE(16);
    for (let at = 0; at < length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.deepEqual([...blocksIn(changed, mark)], [], `byte ${at}`);
    }
    assert.deepEqual([...blocksIn(bytes, Buffer.alloc(8))], []);
  });
});

/** Commits 1 to `count`, the last of them in the journal only, as a kill leaves them: the copy's folder. */
async function killedAfter(count: number, parts: (n: number) => object = () => ({})): Promise<string> {
  const folder = newPath();
  const store = createSqliteStore(folder);
  await store.open();
  const copy = newPath();
  for (let n = 1; n <= count; n++) {
    await store.commit(
      batch({ now: n, puts: [row(n)], events: packedEvents(n, 1), ended: [endedLease(n)], ...parts(n) }),
    );
  }
  cpSync(folder, copy, { recursive: true });
  await store.close();
  return copy;
}

function journalsOf(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => (name.startsWith("leasehold.journal-") ? join(folder, name) : []));
}

/** Where blocks begin, in the one file that has any. */
function blocksOf(folder: string): { path: string; bytes: Buffer; offsets: number[] } {
  for (const path of journalsOf(folder)) {
    const bytes = readFileSync(path);
    const ownMark = Buffer.from(/\.journal-([0-9a-f]+)/.exec(path)?.[1] ?? "", "hex");
    const offsets = [...blocksIn(bytes, ownMark)].map(({ offset }) => offset);
    if (offsets.length > 0) return { path, bytes, offsets };
  }
  return assert.fail("no journal has blocks");
}

async function opened(folder: string, check: (store: Store, now: number) => Promise<void>): Promise<void> {
  const store = createSqliteStore(folder);
  const { now } = await store.open();
  await check(store, now);
  await store.close();
  assert.deepEqual(journalsOf(folder), [], "a closed store leaves no journal");
}

describe("journal: recovery", () => {
  test("what is only in the journal is there at the next open, once, and again after another kill", async () => {
    const folder = await killedAfter(5);
    const again = newPath();
    cpSync(folder, again, { recursive: true });
    for (const each of [folder, again]) {
      await opened(each, async (store, now) => {
        assert.equal(now, 5);
        assert.deepEqual(
          await liveRows(store),
          [1, 2, 3, 4, 5].map((n) => row(n)),
        );
        assert.equal((await store.endedPage({ tenant: "t", limit: 10 })).length, 5);
        assert.deepEqual((await store.eventsAfter({ tenant: "t", seq: 0, limit: 10 })).seqs, [1, 2, 3, 4, 5]);
      });
    }
  });

  test("a torn last block was not acknowledged: it is dropped, wherever it is torn", async () => {
    const folder = await killedAfter(3);
    const { path, bytes, offsets } = blocksOf(folder);
    const last = offsets.at(-1) ?? 0;
    const end = last + bytes.readUInt32LE(last + 16);
    for (const cut of [last + 1, last + 20, last + 33, Math.floor((last + end) / 2), end - 1]) {
      const copy = newPath();
      cpSync(folder, copy, { recursive: true });
      const torn = Buffer.from(bytes);
      torn.fill(0, cut);
      writeFileSync(path.replace(folder, copy), torn);
      await opened(copy, async (store, now) => {
        assert.equal(now, offsets.length - 1, `cut at ${cut - last}`);
        await store.commit(batch({ now: 100, puts: [row(50)] }));
        assert.equal((await liveRows(store)).length, offsets.length);
      });
    }
  });

  test("a damaged block with others after it was acknowledged: nothing is opened, and nothing changed", async () => {
    const folder = await killedAfter(4);
    const { path, bytes, offsets } = blocksOf(folder);
    const place = (offsets.at(-2) ?? 0) + 40;
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    const store = createSqliteStore(folder);
    await assert.rejects(store.open(), /the journal in .* is damaged after commit \d+: restore a backup/);
    await assert.rejects(store.open(), /damaged/);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    assert.equal((await store.open()).now, 4);
    await store.close();
  });

  test("the end of one file and the beginning of the other fit together, and a file is used again", async () => {
    const filler = "x".repeat(3_000_000);
    const folder = await killedAfter(9, (n) => ({ payloads: [{ n: 1_000 + n, body: filler }] }));
    await opened(folder, async (store, now) => {
      assert.equal(now, 9);
      assert.equal((await store.payloads([1_001, 1_005, 1_009])).length, 3);
      assert.equal((await liveRows(store)).length, 9);
    });
  });

  test("text that a client stores is never taken for a block", async () => {
    const encoder = new BlockEncoder(mark);
    const flat = fc.sample(flatBatch, { numRuns: 1, seed: 2 })[0];
    assert.ok(flat !== undefined);
    const forged = encoder.encode(2, flat).toString("latin1");
    // At every alignment, in a file whose own last block ends before it.
    const folder = await killedAfter(1, () => ({ payloads: [{ n: 9, body: forged.repeat(40) }] }));
    await opened(folder, async (store, now) => {
      assert.equal(now, 1);
      assert.deepEqual(await store.payloads([9]), [{ n: 9, body: forged.repeat(40) }]);
    });
  });
});

describe("journal: at work", () => {
  test("S6: a backup has what was only in the journal, and a restore leaves no older journal behind", async () => {
    const store = createSqliteStore(newPath());
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1)], receipts: [receipt(1)] }));
    const file = newPath();
    await store.backup(file);
    await store.close();
    const folder = await killedAfter(5);
    restore(file, folder, { at: 1, force: true });
    assert.deepEqual(journalsOf(folder), []);
    await opened(folder, async (restored, now) => {
      assert.equal(now, 1);
      assert.deepEqual(await liveRows(restored), [row(1)]);
      assert.deepEqual(await restored.receiptsById("t", [receipt(1).id]), [receipt(1)]);
    });
  });

  test("what another server has sealed is not acknowledged, not even if it was written before", async () => {
    const files = dataFiles(newPath());
    makeFolder(files.folder);
    // Synced in the thread pool, so that there is a moment between the write and the end of the sync.
    const journal = new Journal(makeJournals(files), 1, () => Promise.resolve(), { quickSyncMs: -1 });
    await journal.append(() => Buffer.alloc(blockAlign));
    const written = journal.append(() => Buffer.alloc(blockAlign));
    sealJournals(files);
    await assert.rejects(written, { code: "stale_epoch" });
    await assert.rejects(
      journal.append(() => Buffer.alloc(blockAlign)),
      { code: "stale_epoch" },
    );
    await journal.close();
  });

  test("a server whose journal was sealed acknowledges nothing more", async () => {
    const folder = newPath();
    const store = createSqliteStore(folder);
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1)] }));
    sealJournals(dataFiles(folder));
    await assert.rejects(store.commit(batch({ now: 2 })), { code: "stale_epoch" });
    await assert.rejects(store.commit(batch({ now: 3 })), { code: "stale_epoch" });
    await store.close();
  });

  test("rows that begin and end before they are folded leave nothing, and those that were folded are removed", async () => {
    const store = createSqliteStore(newPath());
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1), row(2)], payloads: [{ n: 3, body: "a" }] }));
    assert.equal(await store.earliestSeq(), 1);
    const commits = [
      batch({ now: 2, puts: [row(4), row(1, "agent")], removes: [2], payloads: [{ n: 5, body: "b" }] }),
      batch({ now: 3, puts: [row(6)], removes: [4], payloadRemoves: [3, 5] }),
      batch({ now: 4, puts: [{ ...row(2), body: '{"again":true}' }], payloads: [{ n: 7, body: "c" }] }),
    ];
    await Promise.all(commits.map((each) => store.commit(each)));
    assert.deepEqual(await liveRows(store), [row(1, "agent"), { ...row(2), body: '{"again":true}' }, row(6)]);
    assert.deepEqual(await store.payloads([3, 5, 7]), [{ n: 7, body: "c" }]);
    await store.close();
  });

  test("killed with -9 while it commits and folds megabytes, it keeps everything it acknowledged", async () => {
    const folder = newPath();
    for (let round = 1; round <= 3; round++) {
      // About 0.5 MB a commit: both files are full, folded and used again within a second.
      const { acknowledged, kill } = await startChild(folder, [process.execPath], "2000", round * 40);
      await kill();
      const store = createSqliteStore(folder);
      const { now } = await store.open();
      assert.ok(now >= acknowledged(), `${acknowledged()} was acknowledged, ${now} is there`);
      const numbers = (await liveRows(store)).map(({ body }) => Number(JSON.parse(body).number));
      assert.deepEqual(numbers, Array(rowsPerBatch).fill(now));
      assert.equal((await store.eventsAfter({ tenant: "t", seq: 0, limit: 1_000_000 })).seqs.length, now);
      await store.close();
    }
  });

  const hasStrace = spawnSync("strace", ["-V"]).status === 0;
  test("S2: a full disk in the fold ends the service of the store, and loses nothing", {
    skip: !hasStrace,
  }, async () => {
    const folder = newPath();
    const made = createSqliteStore(folder);
    await made.open();
    await made.close();
    const log = `${dataFiles(folder).database}-wal`;
    const strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", log, "-e", "trace=pwrite64"];
    const injection = ["-e", "inject=pwrite64:error=ENOSPC:when=60+", process.execPath];
    const { acknowledged, failed } = await startChild(folder, [...strace, ...injection], "100", null);
    assert.match(failed(), /fold failed: the disk is full/);
    assert.ok(acknowledged() > 0);
    await opened(folder, async (store, now) => {
      assert.ok(now >= acknowledged());
      const numbers = new Set((await liveRows(store)).map(({ body }) => Number(JSON.parse(body).number)));
      assert.deepEqual([...numbers], [now]);
    });
  });
});

/** Runs the child until it has acknowledged this commit, or until it has ended. */
async function startChild(folder: string, [program = "", ...args]: string[], filler: string, until: number | null) {
  const childFile = join(import.meta.dirname, "sqlite.child.ts");
  const child = spawn(program, [...args, childFile, folder, filler], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const ended = once(child, "close");
  let output = "";
  const lines = (): string[] => output.split("\n").slice(0, -1);
  const acknowledged = (): number => Math.max(0, ...lines().map((line) => Number(line) || 0));
  const reached = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (until !== null && acknowledged() >= until) resolve();
    });
  });
  await Promise.race([reached, ended]);
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  return { acknowledged, kill, failed: () => lines().find((line) => line.startsWith("store_failed")) ?? "" };
}
