import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { inspect as show } from "node:util";
import { mint, verify } from "../index.ts";
import { CellKeys } from "./cell-keys.ts";
import { MasterKeys, MasterKeysUnusable, masterKeyFileName, overlapMsDefault } from "./master-keys.ts";

const now = 1_800_000_000_000;
const root = mkdtempSync(join(tmpdir(), "leasehold-keys-"));
after(() => rmSync(root, { recursive: true, force: true }));
const newFolder = (): string => mkdtempSync(join(root, "data-"));
const claims = {
  tenant: "acme",
  cell: "c1",
  resource: "GPU:/a",
  lease: "l",
  generation: 1,
  fence: 1,
  expiresAt: now + 300_000,
  predicate: "MUTATES",
};

function codeOf(keys: Parameters<typeof verify>[1], token: string, at = now): string {
  const result = verify(token, keys, { now: at, tenant: "acme", cell: "c1", resource: "GPU:/a" });
  return "code" in result ? result.code : "ok";
}

test("the master key is made at the first start, for its owner alone, and found at the next", () => {
  const folder = newFolder();
  const token = mint(MasterKeys.open(folder, now), claims, now);
  assert.equal(statSync(join(folder, masterKeyFileName)).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), [masterKeyFileName]);
  assert.equal(codeOf(MasterKeys.open(folder, now), token), "ok");
  assert.equal(codeOf(MasterKeys.open(newFolder(), now), token), "token_invalid");
});

test("a cell checks and mints with keys of its own, which open no other cell", () => {
  const master = MasterKeys.open(newFolder(), now);
  const cell = new CellKeys("c1", master.cellKeys("acme", "c1"));
  const stolen = new CellKeys("c1", master.cellKeys("acme", "c2"));
  assert.equal(codeOf(cell, mint(master, claims, now)), "ok");
  assert.equal(codeOf(master, mint(cell, claims, now)), "ok");
  assert.equal(codeOf(master, mint(stolen, claims, now)), "token_invalid");
});

test("another tenant's cell of the same name is another cell", () => {
  const master = MasterKeys.open(newFolder(), now);
  const namesake = new CellKeys("c1", master.cellKeys("mallory", "c1"));
  assert.equal(codeOf(master, mint(namesake, claims, now)), "token_invalid");
  assert.equal(codeOf(namesake, mint(master, claims, now)), "token_invalid");
});

test("a list of the keys has all but the keys", () => {
  const master = MasterKeys.open(newFolder(), now);
  const id = master.rotate(now + 1, 1_000);
  const [old, present] = master.list();
  assert.deepEqual(present, { id, createdAt: now + 1, retiresAt: null });
  assert.deepEqual([old?.createdAt, old?.retiresAt], [now, now + 1_001]);
});

test("a tenant's key makes no token of another tenant", () => {
  const master = MasterKeys.open(newFolder(), now);
  const own = master.current("mallory", "c1");
  const forged = mint({ current: () => own, find: () => own.key }, claims, now);
  assert.equal(codeOf(master, forged), "token_invalid");
});

test("rotation: old tokens stay good for the overlap, new ones are made with the new key, then the old key is void", () => {
  const folder = newFolder();
  const master = MasterKeys.open(folder, now);
  const other = MasterKeys.open(folder, now);
  const cell = new CellKeys("c1", master.cellKeys("acme", "c1"));
  const old = mint(master, claims, now);
  const id = master.rotate(now);
  assert.equal(master.current("acme", "c1").keyId, id);
  assert.equal(codeOf(master, old), "ok");
  const fresh = mint(master, claims, now);
  assert.equal(codeOf(other, fresh), "token_invalid");
  other.reload();
  assert.equal(codeOf(other, fresh), "ok");
  cell.install(master.cellKeys("acme", "c1"));
  assert.equal(codeOf(cell, fresh), "ok");
  assert.equal(codeOf(cell, old), "ok");
  assert.equal(codeOf(master, old, now + overlapMsDefault), "token_invalid");
  master.rotate(now + overlapMsDefault);
  assert.equal(master.cellKeys("acme", "c1").length, 2);
  assert.equal(statSync(join(folder, masterKeyFileName)).mode & 0o777, 0o600);
});

test("S6: beside data that was restored from a backup every older key is void at once", () => {
  const folder = newFolder();
  const first = MasterKeys.open(folder, now);
  const token = mint(first, claims, now);
  // A file of before such marks belongs to the data that it lies beside.
  assert.equal(codeOf(MasterKeys.open(folder, now, "data 1"), token), "ok");
  const same = MasterKeys.open(folder, now, "data 1");
  assert.equal(codeOf(same, token), "ok");
  same.rotate(now);
  assert.equal(codeOf(MasterKeys.open(folder, now, "data 1"), token), "ok");
  const restored = MasterKeys.open(folder, now, "data 2");
  assert.equal(restored.list().length, 1);
  assert.equal(codeOf(restored, token), "token_invalid");
  assert.equal(codeOf(MasterKeys.open(folder, now, "data 2"), mint(restored, claims, now)), "ok");
});

test("a key file that others may read, or that is damaged, is refused in one line and never replaced", () => {
  const folder = newFolder();
  MasterKeys.open(folder, now);
  const file = join(folder, masterKeyFileName);
  const good = readFileSync(file, "utf8");
  const secret = (JSON.parse(good) as { keys: [{ key: string }] }).keys[0].key;
  chmodSync(file, 0o644);
  assert.throws(() => MasterKeys.open(folder, now), /mode to 0600/);
  chmodSync(file, 0o600);
  for (const damaged of [good.slice(0, -20), "{}", good.replace(secret, secret.slice(1)), '{"version":1,"keys":[]}']) {
    writeFileSync(file, damaged);
    assert.throws(
      () => MasterKeys.open(folder, now),
      (error) =>
        error instanceof MasterKeysUnusable &&
        !error.message.includes("\n") &&
        !error.message.includes(secret.slice(2, 20)),
    );
    assert.equal(readFileSync(file, "utf8"), damaged);
  }
});

test("keys are not shown when what holds them is logged", () => {
  const folder = newFolder();
  const master = MasterKeys.open(folder, now);
  const [key] = master.cellKeys("acme", "c1");
  assert(key !== undefined);
  const cell = new CellKeys("c1", [key]);
  cell.current("acme", "c1");
  const shown = `${show(master, { depth: 9 })} ${JSON.stringify(master)} ${show(cell, { depth: 9 })} ${JSON.stringify(cell)}`;
  const stored = readFileSync(join(folder, masterKeyFileName), "utf8");
  const secret = (JSON.parse(stored) as { keys: [{ key: string }] }).keys[0].key;
  for (const part of [secret, Buffer.from(key.key).toString("hex"), "Uint8Array", "Int32Array"])
    assert(!shown.includes(part));
});

test("of two servers that start at once on one folder, both have the same key", () => {
  const folder = newFolder();
  const [a, b] = [MasterKeys.open(folder, now), MasterKeys.open(folder, now)];
  assert.equal(codeOf(b, mint(a, claims, now)), "ok");
});
