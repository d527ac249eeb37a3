import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { predicates as allPredicates, type Predicate, readsOnly } from "../contract/predicates.ts";
import { createWorld, found, type World } from "../testing/test-world.ts";

const predicates = ["PROVIDES", "CONSUMES", "MUTATES", "DELETES", "DEPENDS_ON", "RENAMES"] as const;

/** C1 as it stands in RULES.md: a row per predicate, a column per predicate; "+" gets along. */
const matrix: Readonly<Record<Predicate, string>> = {
  PROVIDES: "-+--+-",
  CONSUMES: "++--+-",
  MUTATES: "------",
  DELETES: "------",
  DEPENDS_ON: "++--+-",
  RENAMES: "------",
};

const getsAlong = (a: Predicate, b: Predicate): boolean => matrix[a].charAt(predicates.indexOf(b)) === "+";
const intentOn = (predicate: Predicate, name: string, target: string): string =>
  predicate === "RENAMES" ? `RENAMES ${name} > ${target}` : `${predicate} ${name}`;

for (const held of predicates) {
  for (const asked of predicates) {
    const fits = getsAlong(held, asked);
    test(`C1: ${asked} on what is held as ${held} is ${fits ? "granted" : "refused, older or younger"}`, () => {
      const world = createWorld("old", "mid", "young");
      world.grant("mid", intentOn(held, "FILE:/x", "FILE:/y"));
      const ask = intentOn(asked, "FILE:/x", "FILE:/z");
      if (fits) {
        world.grant("old", ask);
        world.grant("young", ask.replace("PROVIDES", "CONSUMES")); // A second provider would meet the first.
        return;
      }
      const wait = world.waits("old", ask);
      assert.equal(wait.blockersTotal, 1);
      assert.equal(world.dies("young", ask).blockersTotal, getsAlong(asked, asked) ? 1 : 2);
      world.revoke({ agentId: "mid" });
      assert.equal(world.request(wait.requestId)?.state, "GRANTED");
    });
  }
}

test("C1: the matrix is symmetric", () => {
  for (const a of predicates) for (const b of predicates) assert.equal(getsAlong(a, b), getsAlong(b, a), `${a} ${b}`);
});

test("C1: names of different types, and different names, never meet", () => {
  const world = createWorld("a", "b");
  world.grants("a", ["DELETES FILE:/x", "DELETES FILE:/x/y"]);
  world.grants("b", ["DELETES TABLE:/x", "DELETES FILE:/xy", "DELETES FILE:/x/z", "DELETES FILE:/", "DELETES FILE:/X"]);
});

test("C2: a holder never conflicts with itself, in one manifest or in several", () => {
  const world = createWorld("a");
  world.grants("a", ["MUTATES FILE:/x", "DELETES FILE:/x", "CONSUMES FILE:/x", "RENAMES FILE:/x > FILE:/y"]);
  world.grants("a", ["MUTATES FILE:/x", "DELETES FILE:/**", "PROVIDES FILE:/y"]);
  assert.equal(world.leases().length, 8);
});

test("C2: a holder does not conflict with its own waiting requests either", () => {
  const world = createWorld("old", "young");
  const held = world.grant("young", "MUTATES FILE:/x");
  const [first, second] = [world.waits("old", "MUTATES FILE:/x"), world.waits("old", "DELETES FILE:/x")];
  assert.deepEqual([first.position, second.position, second.blockersTotal], [1, 1, 1]);
  world.release(held.id);
  assert.equal(world.leases().length, 2);
});

test("C2: only exact duplicates are refused, in whatever spelling", () => {
  const world = createWorld("a");
  for (const [index, intents] of [
    ["MUTATES FILE:/x", "CONSUMES FILE:/x", "MUTATES FILE:/x"],
    ["CONSUMES FILE:/a/?*", "CONSUMES FILE:/b", "CONSUMES FILE:/a/*"],
    ["CONSUMES FILE:/e\u0301", "CONSUMES FILE:/b", "CONSUMES FILE:/\u00e9"],
    ["RENAMES FILE:/x > FILE:/y", "RENAMES FILE:/y > FILE:/x", "RENAMES FILE:/x > FILE:/y"],
  ].entries()) {
    const refusal = world.refused("duplicate_intent", world.acquire("a", intents));
    assert.equal(refusal.field, "intents.2", `case ${index}`);
  }
  world.grants("a", ["RENAMES FILE:/x > FILE:/y", "RENAMES FILE:/x > FILE:/z"]);
});

test("C3: another spelling of the same name meets the lease, and the reply has the one spelling", () => {
  const world = createWorld("a", "b");
  const lease = world.grant("a", "MUTATES FILE:/caf\u0065\u0301");
  assert.equal(lease.resource, "FILE:/caf\u00e9");
  world.dies("b", "MUTATES FILE:/caf\u00e9");
});

test("C3: what cannot be brought into the one form is refused, with the field", () => {
  const world = createWorld("a");
  const wrong = [
    "",
    "FILE",
    "FILE:",
    "FILE:x",
    "file:/x",
    "FI-LE:/x",
    "1FILE:/x",
    "FILE:/x/",
    "FILE://x",
    "FILE:/x//y",
    "FILE:/./x",
    "FILE:/x/..",
    "FILE:/x\\y",
    "FILE:/x\u0000",
    "FILE:/x\u007f",
    "FILE:/\u202eevil",
    "FILE:/\ud800",
    `FILE:/${"x".repeat(1_024)}`,
    `FILE:${"/x".repeat(65)}`,
  ];
  for (const resource of wrong) {
    const intents = [
      { predicate: "MUTATES", resource: "FILE:/fine" },
      { predicate: "MUTATES", resource },
    ];
    const ask = { ...world.acquire("a", "MUTATES FILE:/x"), intents };
    assert.equal(world.refused("invalid_resource", ask).field, "intents.1.resource", JSON.stringify(resource));
    const rename = [{ predicate: "RENAMES", resource: "FILE:/fine", to: resource }];
    assert.equal(world.refused("invalid_resource", { ...ask, intents: rename }).field, "intents.0.to");
  }
});

test("C3: TASK is reserved, as a name and as a target", () => {
  const world = createWorld("a");
  world.refused("reserved_resource", world.acquire("a", "MUTATES TASK:/1"));
  world.refused("reserved_resource", world.acquire("a", "MUTATES TASK:/**"));
  world.refused("reserved_resource", world.acquire("a", "RENAMES FILE:/a > TASK:/1"));
  world.grant("a", "MUTATES TASKS:/1");
});

test("C4: patterns meet what they match and each other, in both orders, and nothing else", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["FILE:/d/**", "FILE:/d", true],
    ["FILE:/d/**", "FILE:/d/a/b/c", true],
    ["FILE:/d/**", "FILE:/e", false],
    ["FILE:/d/**", "FILE:/da", false],
    ["FILE:/d/*", "FILE:/d", false],
    ["FILE:/d/*", "FILE:/d/a", true],
    ["FILE:/d/*", "FILE:/d/a/b", false],
    ["FILE:/d/*.ts", "FILE:/d/app.ts", true],
    ["FILE:/d/*.ts", "FILE:/d/app.js", false],
    ["FILE:/d/?", "FILE:/d/ab", false],
    ["FILE:/**/x", "FILE:/x", true],
    ["FILE:/**/x", "FILE:/a/b/x", true],
    ["FILE:/**/x", "FILE:/a/b/y", false],
    ["FILE:/a/**/z", "FILE:/a/z", true],
    ["FILE:/a/**/z", "FILE:/a/b/c/z", true],
    ["FILE:/a/**/z", "FILE:/a/b/c", false],
    ["FILE:/**", "FILE:/", true],
    ["FILE:/**", "FILE:/a/b", true],
    ["FILE:/**", "DB:/a", false],
    ["FILE:/a/*/c", "FILE:/*/b/*", true],
    ["FILE:/a/*", "FILE:/*/b", true],
    ["FILE:/a/**", "FILE:/**/b", true],
    ["FILE:/a/**/b", "FILE:/**/c", false],
    ["FILE:/a*", "FILE:/*b", true],
    ["FILE:/a*x", "FILE:/b*", false],
    ["FILE:/*/b/**", "FILE:/a/*/c", true],
    ["FILE:/a/b", "FILE:/a/**/b/**", true],
    ["FILE:/*", "FILE:/**/*/x", false],
  ];
  for (const [one, other, overlap] of cases) {
    for (const [held, asked] of [
      [one, other],
      [other, one],
    ]) {
      const world = createWorld("a", "b");
      world.grant("a", `MUTATES ${held}`);
      const { type } = world.ask(world.acquire("b", `MUTATES ${asked}`));
      assert.equal(type, overlap ? "died" : "granted", `${asked} while ${held} is held`);
    }
  }
});

test("C4: a waiting pattern stands in the way like a held one", () => {
  const world = createWorld("older", "old", "young", "younger");
  world.grant("young", "MUTATES FILE:/d/a");
  const wait = world.waits("old", "MUTATES FILE:/d/**");
  world.dies("younger", "MUTATES FILE:/d/free");
  const behind = world.waits("older", "MUTATES FILE:/d/free");
  assert.deepEqual([wait.position, behind.position], [1, 2]);
  assert.deepEqual(
    behind.blockers.map(({ requestId, resource }) => (requestId === wait.requestId ? resource : "")),
    ["FILE:/d/**"],
  );
});

test("C4: a reader's pattern gets along with readers below it, and not with a writer", () => {
  const world = createWorld("a", "b", "c");
  world.grant("a", "CONSUMES FILE:/d/**");
  world.grant("b", "PROVIDES FILE:/d/x");
  world.grant("b", "CONSUMES FILE:/d/*/y");
  world.dies("c", "MUTATES FILE:/d/x/y");
  world.dies("c", "PROVIDES FILE:/**/x");
});

test("C5: thousands of leases elsewhere and below do not show in a verdict that they have no part in", () => {
  const world = createWorld("a", "b");
  for (let n = 0; n < 3_000; n++) world.grant("a", `CONSUMES FILE:/d${n % 30}/f${n}`, { ttlMs: 300_000 });
  world.grant("b", "CONSUMES FILE:/**");
  const died = world.dies("b", "MUTATES FILE:/d7/**");
  assert.equal(died.blockersTotal, 100);
  assert.equal(died.blockers.length, 16);
  const ids = died.blockers.map(({ leaseId }) => leaseId);
  assert.equal(new Set(ids).size, 16);
});

for (const patterns of [
  ["/d/3/**", "/d/**"],
  ["/d/**", "/d/3/**"],
  ["/d/3/**", "/d/4/**", "/**"],
] as const) {
  test(`C5, W11: an obstacle below several patterns counts once, and the requester's own do not (${patterns})`, () => {
    const world = createWorld("holder", "young");
    const count = 8 * limits.obstaclesExaminedMax;
    for (let n = 0; n < count; n++) world.grant("holder", `CONSUMES FILE:/d/${n % 20}/f${n}`);
    for (let n = 0; n < 60; n++) world.grant("young", `CONSUMES FILE:/d/${n % 20}/own${n}`);
    const died = world.dies(
      "young",
      patterns.map((pattern) => `MUTATES FILE:${pattern}`),
    );
    assert.equal(died.blockersTotal, count);
  });
}

test("C7: a rename leases both names as two linked leases, and both stand in the way", () => {
  const world = createWorld("a", "b");
  const { leases } = world.grants("a", "RENAMES FILE:/from > FILE:/to");
  assert.deepEqual(
    leases.map(({ resource, predicate }) => `${predicate} ${resource}`),
    ["RENAMES FILE:/from", "RENAMES FILE:/to"],
  );
  assert.deepEqual([leases[0]?.linkedTo, leases[1]?.linkedTo], [leases[1]?.id, leases[0]?.id]);
  world.dies("b", "CONSUMES FILE:/from");
  world.dies("b", "CONSUMES FILE:/to");
});

test("C7: of two renames in one manifest, each half is linked to its own other half", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", ["MUTATES FILE:/x", "RENAMES FILE:/b > FILE:/c", "RENAMES FILE:/d > FILE:/e"]);
  const linked = leases.map(({ linkedTo }) => leases.find(({ id }) => id === linkedTo)?.resource ?? null);
  assert.deepEqual(linked, [null, "FILE:/c", "FILE:/b", "FILE:/e", "FILE:/d"]);
});

test("C7: a rename waits for both names, and takes neither before it has both", () => {
  const world = createWorld("old", "mid", "young");
  const [from, to] = [world.grant("mid", "MUTATES FILE:/from"), world.grant("young", "MUTATES FILE:/to")];
  const wait = world.waits("old", "RENAMES FILE:/from > FILE:/to");
  assert.equal(wait.blockersTotal, 2);
  world.release(to.id);
  assert.equal(world.request(wait.requestId)?.state, "WAITING");
  assert.equal(world.leases().length, 1);
  world.release(from.id);
  assert.equal(world.collect(wait.requestId).leases.length, 2);
});

test("C7: a rename and nothing else names a target, and another one than itself", () => {
  const world = createWorld("a");
  assert.equal(world.refused("invalid_target", world.acquire("a", "RENAMES FILE:/a")).field, "intents.0.to");
  world.refused("invalid_target", world.acquire("a", "MUTATES FILE:/a > FILE:/b"));
  world.refused("invalid_target", world.acquire("a", "RENAMES FILE:/\u00e9 > FILE:/e\u0301"));
});

const ends: readonly (readonly [string, (world: World, leaseId: string) => void])[] = [
  ["released", (world, leaseId) => void world.release(leaseId)],
  ["revoked", (world, leaseId) => void world.revoke({ leaseId })],
  ["revoked by its name", (world) => void world.revoke({ resourcePrefix: "FILE:/to" })],
  ["released by name", (world, leaseId) => void world.releaseAll("a", [leaseId])],
];
for (const [how, end] of ends) {
  test(`C7: when one half is ${how}, the other ends with it`, () => {
    const world = createWorld("a", "b");
    const half = found(world.grants("a", "RENAMES FILE:/from > FILE:/to").leases[1], "half");
    end(world, half.id);
    assert.deepEqual(world.leases(), []);
    world.grants("b", ["MUTATES FILE:/from", "MUTATES FILE:/to"]);
  });
}

test("C7: both halves are extended and renewed together, whichever is named", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", "RENAMES FILE:/from > FILE:/to", { ttlMs: 10_000 });
  const ends = () => world.leases().map(({ expiresAt }) => expiresAt - world.now);
  world.later(1_000);
  world.heartbeat(leases[1]?.id ?? "");
  assert.deepEqual(ends(), [10_000, 10_000]);
  world.later(1_000);
  world.renew(leases[0]?.id ?? "");
  assert.deepEqual(ends(), [10_000, 10_000]);
  assert.deepEqual(
    world.leases().map(({ generation }) => generation),
    [2, 2],
  );
  world.later(1_000);
  world.heartbeatAll("a");
  assert.deepEqual(ends(), [10_000, 10_000]);
});

test("C7: a heartbeat for many that names one half extends both", () => {
  const world = createWorld("a");
  const { leases } = world.grants("a", "RENAMES FILE:/from > FILE:/to", { ttlMs: 10_000 });
  world.later(5_000);
  world.heartbeatAll("a", [leases[0]?.id ?? ""]);
  world.pass(9_999);
  assert.equal(world.leases().length, 2, "both halves live and end together");
});

test("C7: both halves expire together", () => {
  const world = createWorld("a", "b");
  world.grants("a", "RENAMES FILE:/from > FILE:/to", { ttlMs: 1_000 });
  world.pass(1_000);
  assert.deepEqual(world.happened, ["lease.expired", "lease.expired"]);
  world.grants("b", ["MUTATES FILE:/from", "MUTATES FILE:/to"]);
});

test("two tenants with the same names, agents and keys never meet", () => {
  const one = createWorld("a", "b");
  const other = one.beside("t2", "a", "b");
  const lease = one.grant("a", "MUTATES FILE:/x", { key: "k" });
  const twin = other.grant("a", "MUTATES FILE:/x", { key: "k" });
  assert.notEqual(lease.id, twin.id);
  assert.equal(lease.fence, twin.fence);
  one.dies("b", "MUTATES FILE:/x");
  assert.equal(other.agent("b").state, "PLANNING");
  one.fence("FILE:/x");
  assert.equal(other.lease(twin.id)?.state, "ACTIVE");
  one.suspend();
  assert.equal(other.leases().length, 1);
  one.revoke({ resourcePrefix: "FILE:/" });
  assert.equal(other.leases().length, 1);
});

test("L13: an id guessed across tenants is answered exactly like an unknown one", () => {
  const one = createWorld("a", "b");
  const other = one.beside("t2", "spy", "holder");
  const lease = one.grant("b", "MUTATES FILE:/x");
  const wait = one.waits("a", "MUTATES FILE:/x");
  const actor = other.as("spy");
  for (const [known, unknown] of [
    [lease.id, "lse_never"],
    [lease.id, "lse_0"],
  ] as const) {
    for (const type of ["heartbeat", "renew_lease", "release_lease", "transfer_lease", "downgrade_lease"] as const) {
      const reply = (leaseId: string) =>
        JSON.stringify(
          other.refused("lease_unknown", {
            type,
            actor,
            leaseId,
            activity: true,
            generation: null,
            version: null,
            toAgentId: "spy",
            predicate: "CONSUMES",
          } as Parameters<World["ask"]>[0]),
        ).replace(leaseId, "ID");
      assert.equal(reply(known), reply(unknown), type);
    }
    const revoke = (leaseId: string) =>
      other.refused("lease_unknown", { type: "revoke", target: { leaseId }, reason: "x" });
    assert.equal(revoke(known).detail, revoke(unknown).detail);
  }
  for (const type of ["collect_request", "cancel_request"] as const) {
    const [known, unknown] = [wait.requestId, "req_never"].map((requestId) =>
      other.refused("request_unknown", { type, actor, requestId, collect: null } as Parameters<World["ask"]>[0]),
    );
    assert.deepEqual(known, unknown);
  }
  const acts = (agentId: string) => other.refused("forbidden", { type: "verify_all", actor, agentId, leaseIds: null });
  assert.deepEqual(acts("a"), acts("never"));
  assert.deepEqual(acts("a"), acts("holder"), "nor does a stranger learn which agents there are");
});

test("G4: the predicates that get along with their like are those that only read", () => {
  assert.deepEqual(
    allPredicates.filter((predicate) => readsOnly(predicate)),
    ["CONSUMES", "DEPENDS_ON"],
  );
});
