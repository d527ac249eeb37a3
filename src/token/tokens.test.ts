import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { chanceFrom, forge, forgeryKinds, goodAttempt } from "../../torture/token-forgeries.ts";
import { type Caveat, inspect, mint, narrow, type Presented, tokenLimits, verify } from "./index.ts";
import { CellKeys } from "./node/cell-keys.ts";
import { hmacKey } from "./sha256.ts";

const now = 1_800_000_000_000;
const keys = new CellKeys("lab-1", [{ id: "k1", key: new Uint8Array(32).fill(7), retiresAt: null }]);
const claims = {
  tenant: "acme",
  cell: "lab-1",
  resource: "GPU:/lab/a",
  lease: "lease-1",
  generation: 3,
  fence: 41,
  expiresAt: now + 60_000,
  predicate: "MUTATES",
};
const token = mint(keys, claims, now);
const presented: Presented = { now, ...claims };

function codeOf(text: string, change: Partial<Presented> = {}): string {
  const result = verify(text, keys, { ...presented, ...change });
  return "code" in result ? result.code : "ok";
}

function narrowed(...caveats: readonly Caveat[]): string {
  const result = narrow(token, caveats);
  assert(typeof result === "string", JSON.stringify(result));
  return result;
}

test("G3: a token says what it is for, and its cell takes it", () => {
  const result = verify(token, keys, presented);
  assert(!("code" in result));
  assert.deepEqual(result.claims, { keyId: "k1", ...claims });
});

test("G3: a token never outlives its lease, and never 300 s", () => {
  const long = inspect(mint(keys, { ...claims, expiresAt: now + 10_000_000 }, now));
  assert(!("code" in long));
  assert.equal(long.claims.expiresAt, now + tokenLimits.lifeMsMax);
});

test("G3: another tenant, cell, resource or lease is refused", () => {
  assert.equal(codeOf(token, { tenant: "other" }), "token_invalid");
  assert.equal(codeOf(token, { cell: "lab-2" }), "token_invalid");
  assert.equal(codeOf(token, { resource: "GPU:/lab" }), "token_invalid");
  assert.equal(codeOf(token, { lease: "lease-2" }), "token_invalid");
});

test("L3: a token is gone at its expiry, and not a millisecond later", () => {
  assert.equal(codeOf(token, { now: claims.expiresAt - 1 }), "ok");
  assert.equal(codeOf(token, { now: claims.expiresAt }), "lease_expired");
});

test("G8: with a renewal every older token is stale, expired or not", () => {
  assert.equal(codeOf(token, { generation: 4 }), "stale_token");
  assert.equal(codeOf(token, { fence: 42 }), "stale_token");
  assert.equal(codeOf(token, { generation: 4, now: claims.expiresAt }), "stale_token");
  assert.equal(codeOf(token, { generation: 2 }), "token_invalid");
});

test("a token that ends before its lease does is stale, because a fresh one can be had", () => {
  const short = mint(keys, { ...claims, expiresAt: now + 10 }, now);
  assert.equal(codeOf(short, { now: now + 10, leaseExpiresAt: now + 500 }), "stale_token");
  assert.equal(codeOf(short, { now: now + 500, leaseExpiresAt: now + 500 }), "lease_expired");
});

test("G4: each caveat forbids what it names, and what is not given cannot satisfy one", () => {
  const cases: readonly [Caveat, Partial<Presented>, Partial<Presented>][] = [
    [{ type: "expiry", expiresAt: now + 5 }, { now: now + 4 }, { now: now + 5 }],
    [{ type: "path", path: "/a/b" }, { path: "/a/b/c" }, { path: "/a/bc" }],
    [{ type: "path", path: "/a/b" }, { path: "/a/b" }, { path: "/a/b/../c" }],
    [{ type: "operations", operations: ["read", "write"] }, { operation: "write" }, { operation: "delete" }],
    [{ type: "program", program: "/bin/cat" }, { program: () => "/bin/cat" }, { program: () => null }],
    [{ type: "hardware", hardware: "a100" }, { hardware: ["x", "a100"] }, { hardware: ["a10"] }],
    [{ type: "bytes", bytesMax: 10 }, { bytes: 10 }, { bytes: 11 }],
  ];
  for (const [caveat, allowed, forbidden] of cases) {
    assert.equal(codeOf(narrowed(caveat), allowed), "ok", caveat.type);
    assert.equal(codeOf(narrowed(caveat), forbidden), "caveat_failed", caveat.type);
    if (caveat.type !== "expiry") assert.equal(codeOf(narrowed(caveat)), "caveat_failed", caveat.type);
  }
});

test("G4: a later caveat cannot give back what an earlier one took", () => {
  const twice = narrow(narrowed({ type: "operations", operations: ["read"] }), [
    { type: "operations", operations: ["read", "write"] },
  ]);
  assert(typeof twice === "string");
  assert.equal(codeOf(twice, { operation: "read" }), "ok");
  assert.equal(codeOf(twice, { operation: "write" }), "caveat_failed");
});

test("G4: a budget keeps its name however often the token is narrowed after it", () => {
  const limited = narrowed({ type: "bytes", bytesMax: 100 });
  const again = narrow(limited, [{ type: "operations", operations: ["read"] }]);
  assert(typeof again === "string");
  const [first, second] = [limited, again].map((text) =>
    verify(text, keys, { ...presented, operation: "read", bytes: 0 }),
  );
  assert(first !== undefined && second !== undefined && !("code" in first) && !("code" in second));
  assert.deepEqual(first.budgets, second.budgets);
  assert.equal(first.budgets.length, 1);
});

test("a caveat that says nothing checkable is refused where it is added", () => {
  const wrong: readonly Caveat[] = [
    { type: "expiry", expiresAt: 1.5 },
    { type: "path", path: "a" },
    { type: "path", path: "/a/" },
    { type: "path", path: "/a//b" },
    { type: "path", path: "/a/../b" },
    { type: "path", path: "/a\u0000" },
    { type: "path", path: "/a\\b" },
    { type: "path", path: `/${"é".repeat(600)}` },
    { type: "operations", operations: [] },
    { type: "operations", operations: ["write", "read"] },
    { type: "operations", operations: ["read", "read"] },
    { type: "program", program: "" },
    { type: "hardware", hardware: "\ud800" },
    { type: "bytes", bytesMax: -1 },
  ];
  for (const caveat of wrong) {
    const result = narrow(token, [caveat]);
    assert(typeof result !== "string", JSON.stringify(caveat));
    assert.equal(result.code, "token_invalid");
  }
});

test("S4: a token's caveats and bytes are bounded", () => {
  const one: Caveat = { type: "bytes", bytesMax: 5 };
  const full = narrow(token, Array<Caveat>(tokenLimits.caveatsMax).fill(one));
  assert(typeof full === "string");
  assert(typeof narrow(full, [one]) !== "string");
  assert(typeof narrow(token, Array<Caveat>(8).fill({ type: "path", path: `/${"a".repeat(1_000)}` })) !== "string");
  assert.equal(codeOf(`lht1.${"A".repeat(100_000)}`), "token_invalid");
});

const plain = { noNullPrototype: true };
const caveat: fc.Arbitrary<Caveat> = fc.oneof(
  fc.record({ type: fc.constant("expiry" as const), expiresAt: fc.integer({ min: now - 9, max: now + 9 }) }, plain),
  fc.record({ type: fc.constant("path" as const), path: fc.constantFrom("/", "/a", "/a/b", "/ä") }, plain),
  fc.record(
    { type: fc.constant("operations" as const), operations: fc.constantFrom(["read"], ["read", "write"], ["connect"]) },
    plain,
  ),
  fc.record({ type: fc.constant("program" as const), program: fc.constantFrom("/bin/a", "/bin/b") }, plain),
  fc.record({ type: fc.constant("hardware" as const), hardware: fc.constantFrom("x", "y") }, plain),
  fc.record({ type: fc.constant("bytes" as const), bytesMax: fc.nat(20) }, plain),
);
const operation: fc.Arbitrary<Partial<Presented>> = fc.record(
  {
    operation: fc.constantFrom("read", "write", "connect"),
    path: fc.constantFrom("/", "/a", "/a/b", "/ä", "/ab"),
    program: fc.constantFrom(
      () => "/bin/a",
      () => "/bin/b",
    ),
    hardware: fc.subarray(["x", "y"]),
    bytes: fc.nat(20),
  },
  { requiredKeys: [] },
);

test("G4: for any caveats and any operation, narrowing never opens what was closed", () => {
  fc.assert(
    fc.property(fc.array(caveat, { maxLength: 4 }), caveat, operation, (held, added, asked) => {
      const before = narrowed(...held);
      const after = narrow(before, [added]);
      assert(typeof after === "string");
      if (codeOf(after, asked) === "ok") assert.equal(codeOf(before, asked), "ok");
      const shown = inspect(after);
      assert(!("code" in shown));
      assert.deepEqual(shown.caveats, [...held, added]);
    }),
    { numRuns: 1_000 },
  );
});

test("any text at all is answered with a code, and never taken", () => {
  const strangers = { find: () => hmacKey(new Uint8Array(32)) };
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.base64String().map((text) => `lht1.${text}`),
      ),
      (text) => {
        const result = verify(text, strangers, presented);
        assert("code" in result);
        assert.equal(result.code, "token_invalid");
      },
    ),
    { numRuns: 1_000 },
  );
});

test("G4: 20,000 forged, cut, reordered, widened, foreign and stale tokens: none is taken", () => {
  const chance = chanceFrom(20_000);
  let tried = 0;
  while (tried < 20_000) {
    const good = goodAttempt(keysOfEverybody, presented, chance);
    assert(!("code" in verify(good.token, keysOfEverybody, good.presented)));
    for (const kind of forgeryKinds) {
      const attempt = forge(kind, keysOfEverybody, good, chance);
      if (attempt === null) continue;
      tried++;
      assert("code" in verify(attempt.token, keysOfEverybody, attempt.presented), `${kind}: ${attempt.token}`);
    }
  }
});

/** Keys for any cell, so that the forgers can have good tokens of others. */
const keysOfEverybody = {
  current: (tenant: string, cell: string) => ringOf(cell).current(tenant, cell),
  find: (keyId: string, tenant: string, cell: string, at: number) => ringOf(cell).find(keyId, tenant, cell, at),
};

function ringOf(cell: string): CellKeys {
  return new CellKeys(cell, [{ id: "k1", key: Buffer.from(cell.padEnd(32)), retiresAt: null }]);
}

test("what a browser needs of it imports nothing of Node", () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(new URL(file, import.meta.url), "utf8");
    for (const [, found = ""] of text.matchAll(/from "([^"]+)"/g)) {
      assert.match(found, /^\.\/[a-z0-9-]+\.ts$/, `${file} imports ${found}`);
      visit(found);
    }
    assert.doesNotMatch(text, /\b(Buffer|process|require)\b/, file);
  };
  visit("./index.ts");
  assert(seen.size > 6);
});
