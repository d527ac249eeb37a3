import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { Engine } from "../../engine/engine.ts";
import { createTask, poll, submit } from "../../engine/testing/test-tasks.ts";
import { headJson } from "../../ledger/head.ts";
import { keyFileName, LedgerKeyUnusable, openLedgerKey } from "../../ledger/key-file.ts";
import { createSqliteStore } from "../../store/sqlite.ts";
import { dataFiles } from "../../store/sqlite-files.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { exportLedger, verifyLedger } from "./ledger.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-ledger-"));
let folders = 0;
const newFolder = (): string => join(scratch, String(++folders));
after(() => rmSync(scratch, { recursive: true }));

const nothing = { file: null, anchor: null, tenant: null };

async function openEngine(folder: string): Promise<Engine> {
  const ignore = (): void => undefined;
  const engine = new Engine({
    store: createSqliteStore(folder),
    encodeEvent: ({ type }) => JSON.stringify({ type }),
    log: { info: ignore, warn: ignore, error: ignore },
    ledgerKey: () => openLedgerKey(folder),
  });
  await engine.start();
  return engine;
}

async function work(engine: Engine, tasks: number, tenant = "default"): Promise<void> {
  for (let task = 0; task < tasks; task += 1) {
    await engine.command(createTask({ taskSummary: 'says "žluť 漢 🦊"' }, tenant));
    const { reply } = await engine.command(poll("code.1", 1, tenant));
    const leaseId = (reply.type === "offers" ? reply.offers[0]?.lease.id : undefined) ?? null;
    for (const receipt of [
      { phase: "accepted", leaseId },
      { phase: "complete", leaseId, status: "success", dedupeKey: `done ${task}` },
    ]) {
      const decided = await engine.command(submit(receipt, tenant));
      assert.equal(decided.reply.type, "receipt");
    }
  }
}

/** A data folder with two tenants' ledgers of ten receipts each, as a server leaves it behind. */
async function filledFolder(): Promise<string> {
  const folder = newFolder();
  const engine = await openEngine(folder);
  const actor = { role: "operator", agentId: null, epoch: null } as const;
  const asked = { tenant: "default", actor, entropy: [1, 2] as const };
  await engine.command({ ...asked, type: "create_tenant", tenantId: "second" });
  await work(engine, 5);
  await work(engine, 5, "second");
  await engine.close();
  return folder;
}

/** An attacker with a shell on the database can drop the triggers first. */
function tamper(folder: string, ...statements: string[]): void {
  const db = new DatabaseSync(dataFiles(folder).database);
  for (const table of ["receipts", "heads"]) {
    for (const verb of ["update", "delete"]) db.exec(`DROP TRIGGER IF EXISTS ${table}_no_${verb}`);
  }
  for (const sql of statements) db.exec(sql);
  db.close();
}

function verify(folder: string, other: Partial<Parameters<typeof verifyLedger>[0]> = {}) {
  return verifyLedger({ data: folder, ...nothing, ...other });
}

describe("R6: ledger verify", () => {
  test("finds a ledger whole, with the server at work on it and without one", async () => {
    const folder = await filledFolder();
    const { isWhole, text } = verify(folder);
    assert.ok(isWhole, text);
    assert.match(text, /20 receipts, 2 signed heads, signed by [0-9a-f]{16}/);
    const engine = await openEngine(folder);
    await work(engine, 3);
    // A check waits for the journal; here it would block the server, which is in the same process.
    await engine.store.earliestSeq();
    const running = verify(folder);
    assert.match(running.text, /is whole: 26 receipts/);
    assert.match(verify(folder, { tenant: "second" }).text, /is whole: 10 receipts, 1 signed heads/);
    await engine.close();
  });

  test("says of every kind of tampering what and where it is", async () => {
    const folder = await filledFolder();
    const copyOf = `CREATE TABLE saved AS SELECT * FROM receipts`;
    const back = ["DELETE FROM receipts", "INSERT INTO receipts SELECT * FROM saved"];
    tamper(folder, copyOf);
    const cases: readonly (readonly [sql: string, expected: RegExp])[] = [
      [
        `UPDATE receipts SET body = replace(body, 'planner', 'plunder') WHERE key = 4`,
        /default: the text of receipt 4/,
      ],
      [`UPDATE receipts SET hash = upper(hash) WHERE key = 4`, /default: the text of receipt 4/],
      [`UPDATE receipts SET body = NULL WHERE key = 4`, /default: the text of receipt 4/],
      [`UPDATE receipts SET task_id = 'T-1' WHERE key = 13`, /second: the column task_id of receipt 3/],
      [`UPDATE receipts SET dedupe = NULL WHERE key = 14`, /second: the column dedupe of receipt 4/],
      [`UPDATE receipts SET tenant = NULL WHERE key = 4`, /default: receipt 4 is missing/],
      [`UPDATE receipts SET sequence = NULL WHERE key = 4`, /default: a receipt numbered 0 comes after receipt 3/],
      [`DELETE FROM receipts WHERE key = 5`, /default: receipt 5 is missing: receipt 6/],
      [`DELETE FROM receipts WHERE key BETWEEN 13 AND 15`, /second: receipts 3 to 5 are missing/],
      [`DELETE FROM receipts WHERE key = 20`, /second: the ledger ends with receipt 9, but a signed head/],
      [`DELETE FROM receipts`, /default: the ledger ends with receipt 0/],
      [`UPDATE receipts SET key = -5 WHERE key = 7`, /default: receipts 1 to 6 are missing/],
      [
        `INSERT INTO receipts SELECT 99, 'default', 11, id, task_id, phase, recipient_ai, source_system, dedupe,
         stored_at, hash, body FROM saved WHERE key = 10`,
        /default: the row of receipt 11 holds the text of receipt 10/,
      ],
    ];
    for (const [sql, expected] of cases) {
      tamper(folder, sql);
      const { isWhole, text } = verify(folder);
      assert.equal(isWhole, false, sql);
      assert.match(text, expected, sql);
      tamper(folder, ...back);
    }
    assert.ok(verify(folder).isWhole);
    tamper(folder, "UPDATE heads SET hash = lower(hex(zeroblob(32))) WHERE tenant = 'second'");
    assert.match(verify(folder).text, /second: the signature of the signed head of receipt 10 is wrong/);
  });

  test("finds a tail that was cut with its heads, against a head that was saved elsewhere", async () => {
    const folder = await filledFolder();
    const engine = await openEngine(folder);
    const anchor = join(scratch, "head.json");
    const { publicKey } = engine.ledgerKey;
    writeFileSync(anchor, headJson(engine.signHead("default"), publicKey));
    await engine.close();
    assert.ok(verify(folder, { anchor }).isWhole);
    tamper(folder, "DELETE FROM receipts WHERE key IN (9, 10)", "DELETE FROM heads WHERE tenant = 'default'");
    assert.ok(verify(folder).isWhole, "by itself it cannot tell");
    const cut = verify(folder, { anchor });
    assert.match(cut.text, /default: the ledger ends with receipt 8, but the anchor says that there were 10/);
    writeFileSync(anchor, "no head");
    assert.throws(() => verify(folder, { anchor }), UsageProblem);
    assert.throws(() => verify(folder, { anchor: join(scratch, "none") }), Failure);
  });

  test("takes an anchor as the service gives it, without tenant or key", async () => {
    const folder = await filledFolder();
    const engine = await openEngine(folder);
    const { sequence, hash, at, keyId, signature } = engine.signHead("second");
    await engine.close();
    const anchor = join(scratch, "bare.json");
    const bare = { sequence, hash, signature, key_id: keyId, at: new Date(at).toISOString() };
    writeFileSync(anchor, JSON.stringify(bare, null, 2));
    assert.ok(verify(folder, { anchor, tenant: "second" }).isWhole);
    assert.match(verify(folder, { anchor }).text, /default: the signature of the anchor of receipt 10 is wrong/);
  });

  test("ends with 7 and the place where it is broken, and with 0 where it is whole", async () => {
    const folder = await filledFolder();
    const run = () =>
      spawnSync(process.execPath, ["src/main.ts", "ledger", "verify", "--data", folder], { encoding: "utf8" });
    const whole = run();
    assert.deepEqual([whole.status, whole.stderr], [0, ""]);
    tamper(folder, "UPDATE receipts SET body = body || ' ' WHERE key = 7");
    const broken = run();
    assert.equal(broken.status, 7);
    assert.match(broken.stdout, /tenant default: the text of receipt 7/);
  });

  test("killed with -9 again and again, the service leaves a whole ledger with all that it acknowledged", async () => {
    const folder = newFolder();
    const child = join(import.meta.dirname, "../../engine/testing/ledger.child.ts");
    let acknowledged = new Map<string, string>();
    for (let round = 1; round <= 4; round += 1) {
      const running = spawn(process.execPath, [child, folder], { stdio: ["ignore", "pipe", "inherit"] });
      const lines: string[] = [];
      for await (const line of createInterface({ input: running.stdout })) {
        lines.push(line);
        if (lines.length === 400) running.kill("SIGKILL");
      }
      if (running.exitCode === null && running.signalCode === null) await once(running, "exit");
      acknowledged = new Map([
        ...acknowledged,
        ...lines.map((line): [string, string] => [line.split(" ")[0] ?? "", line]),
      ]);
      const { isWhole, text } = verify(folder);
      assert.ok(isWhole, text);
    }
    const db = new DatabaseSync(dataFiles(folder).database, { readOnly: true });
    const stored = new Set(
      db
        .prepare("SELECT sequence, hash FROM receipts")
        .all()
        .map(({ sequence, hash }) => `${sequence} ${hash}`),
    );
    db.close();
    for (const line of acknowledged.values()) assert.ok(stored.has(line), line);
  });
});

describe("R6: ledger export", () => {
  test("writes what verify --file, and anybody else, can check", async () => {
    const folder = await filledFolder();
    const out = join(scratch, "all.jsonl");
    const engine = await openEngine(folder);
    await work(engine, 1);
    await engine.store.earliestSeq();
    await exportLedger({ data: folder, tenant: null, out });
    await engine.close();
    assert.match(verify(folder, { file: out }).text, /is whole: 22 receipts, 2 signed heads/);
    const lines = readFileSync(out, "utf8").trim().split("\n");
    assert.equal(lines.length, 24);
    assert.ok(!existsSync(`${out}.part`));
    const one = join(scratch, "one.jsonl");
    await exportLedger({ data: folder, tenant: "second", out: one });
    assert.match(verify(folder, { file: one }).text, /is whole: 10 receipts, 1 signed heads/);
    const anchor = join(scratch, "last-line.json");
    writeFileSync(anchor, lines.at(-1) ?? "");
    assert.ok(verify(folder, { anchor }).isWhole);
    assert.ok(verify(folder, { file: one, anchor, tenant: "second" }).isWhole);
    writeFileSync(one, readFileSync(one, "utf8").replace("plann", "blann"));
    assert.match(verify(folder, { file: one }).text, /second: the text of receipt 1/);
  });

  test("goes to standard output where no file is named", async () => {
    const folder = await filledFolder();
    const args = ["src/main.ts", "ledger", "export", "--data", folder, "--tenant", "second"];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 0);
    const file = join(scratch, "piped.jsonl");
    writeFileSync(file, stdout);
    assert.ok(verify(folder, { file }).isWhole);
  });

  test("signs nothing that is broken, and leaves no file behind", async () => {
    const folder = await filledFolder();
    tamper(folder, "UPDATE receipts SET body = body || ' ' WHERE key = 12");
    const out = join(scratch, "broken.jsonl");
    await assert.rejects(exportLedger({ data: folder, tenant: null, out }), /second: the text of receipt 2/);
    assert.deepEqual([existsSync(out), existsSync(`${out}.part`)], [false, false]);
    rmSync(join(folder, keyFileName));
    await assert.rejects(exportLedger({ data: folder, tenant: "default", out }), /has no ledger-key.pem/);
  });

  test("says so where there is no data, or no ledger in it", async () => {
    const data = newFolder();
    assert.throws(() => verify(data), /there is no data in/);
    await assert.rejects(exportLedger({ data, tenant: null, out: null }), /there is no data in/);
  });
});

describe("R6: the key of the ledger", () => {
  test("is made at the first start, for its owner alone, and is the same at the next", async () => {
    const folder = newFolder();
    const first = await openEngine(folder);
    const { keyId } = first.ledgerKey;
    await first.close();
    const file = join(folder, keyFileName);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const second = await openEngine(folder);
    assert.equal(second.ledgerKey.keyId, keyId);
    await second.close();
  });

  test("that cannot be read is not replaced: the service does not start, and says what to do", async () => {
    const folder = newFolder();
    await (await openEngine(folder)).close();
    const file = join(folder, keyFileName);
    const pem = readFileSync(file, "utf8");
    for (const spoiled of ["", pem.slice(0, 60), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]) {
      writeFileSync(file, spoiled);
      await assert.rejects(openEngine(folder), LedgerKeyUnusable);
      assert.equal(readFileSync(file, "utf8"), spoiled);
    }
    writeFileSync(file, pem);
    chmodSync(file, 0o600);
    await (await openEngine(folder)).close();
  });

  test("can be changed: what the old one signed stays checkable, and the new one goes on", async () => {
    const folder = await filledFolder();
    renameSync(join(folder, keyFileName), join(scratch, "old.pem"));
    const engine = await openEngine(folder);
    await work(engine, 1);
    await engine.close();
    assert.match(verify(folder).text, /is whole: 22 receipts, 3 signed heads, signed by [0-9a-f]{16}, [0-9a-f]{16}/);
  });
});
