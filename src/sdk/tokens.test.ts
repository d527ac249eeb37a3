import assert from "node:assert/strict";
import { test } from "node:test";
import { mint } from "../token/index.ts";
import { CellKeys } from "../token/node/cell-keys.ts";
import { LeaseholdError } from "./errors.ts";
import { inspectToken, narrow } from "./tokens.ts";

const keys = new CellKeys("c1", [{ id: "k1", key: new Uint8Array(32).fill(1), retiresAt: null }]);
const claims = {
  tenant: "t",
  cell: "c1",
  resource: "FS:/a",
  lease: "lse_1",
  generation: 3,
  fence: 9,
  predicate: "MUTATES",
};
const token = mint(keys, { ...claims, expiresAt: 60_000 }, 0);

test("a token says what it is for, and what it was narrowed to", () => {
  const narrower = narrow(token, {
    expiresAt: new Date(30_000),
    path: "/logs",
    operations: ["write", "read", "read"],
    program: "/usr/bin/python3",
    hardware: "a100",
    bytesMax: 1_000,
  });
  const { caveats, usableUntil, ...said } = inspectToken(narrower);
  assert.deepEqual(said, { ...claims, keyId: "k1", expiresAt: 60_000 });
  assert.equal(usableUntil, 30_000);
  assert.deepEqual(caveats, [
    { type: "expiry", expiresAt: 30_000 },
    { type: "path", path: "/logs" },
    { type: "operations", operations: ["read", "write"] },
    { type: "program", program: "/usr/bin/python3" },
    { type: "hardware", hardware: "a100" },
    { type: "bytes", bytesMax: 1_000 },
  ]);
  assert.equal(inspectToken(narrow(narrower, { expiresAt: 90_000 })).usableUntil, 30_000);
});

test("what is not a token, and what a token cannot express, is token_invalid and is not repeated", () => {
  const isInvalid = (error: unknown): boolean =>
    error instanceof LeaseholdError && error.code === "token_invalid" && !error.message.includes("lht1");
  for (const text of ["", "lht1.", "lht1.AAAA", `${token}=`, token.slice(0, 40)]) {
    assert.throws(() => inspectToken(text), isInvalid);
    assert.throws(() => narrow(text, { path: "/" }), isInvalid);
  }
  assert.throws(() => narrow(token, { path: "../up" }), isInvalid);
  assert.throws(() => narrow(token, { operations: [] }), isInvalid);
  assert.throws(() => narrow(token, { expiresAt: new Date("never") }), isInvalid);
  assert.throws(() => narrow(token, { bytesMax: -1 }), isInvalid);
});
