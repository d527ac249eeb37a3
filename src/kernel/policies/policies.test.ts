/** S4: what policies refuse, operation by operation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor } from "../contract/commands.ts";
import {
  createKey,
  createPolicyWorld,
  noScopes,
  noTerms,
  type Rule,
  rule,
  setPolicy,
} from "../testing/policy-world.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { type Ask, supervisor } from "../testing/test-world.ts";

test("S4: an agent does not lease a whole type, nor any pattern that begins with a wildcard; supervisors do", () => {
  const world = createPolicyWorld("a");
  for (const resource of ["FILE:/**", "FILE:/*", "FILE:/**/x.ts", "FILE:/?*/**", "FILE:/src*/**", "DB:/*/users"]) {
    const refusal = world.refused("policy_denied", world.acquire("a", `MUTATES ${resource}`));
    assert.equal(refusal.policy, "default");
    assert.equal(refusal.rule, "no-whole-type");
    assert.equal(refusal.field, "intents.0.resource");
  }
  world.refused("policy_denied", world.acquire("a", "CONSUMES FILE:/**"));
  const second = world.refused("policy_denied", world.acquire("a", ["MUTATES FILE:/x", "MUTATES DB:/**"]));
  assert.equal(second.field, "intents.1.resource");
  world.grant("a", "MUTATES FILE:/src/**");
  world.grant("a", "MUTATES FILE:/lib/*");
  world.grant("a", "MUTATES DB:/**", { actor: supervisor });
});

test("S4: a refusal names what was asked for and what would be allowed", () => {
  const world = createPolicyWorld("a");
  const refusal = world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/**"));
  assert.equal(refusal.asked, "MUTATES FILE:/**");
  assert.deepEqual(refusal.allowed, ["FILE:/<name>/**"]);
  assert.match(refusal.detail, /policy default .*1 plain segment.*FILE:\/\*\* has 0.*operator/);
});

test("S4: the built-in policy holds for both names of a rename, and a dry run says so", () => {
  const world = createPolicyWorld("a");
  const renamed = world.refused("policy_denied", world.acquire("a", "RENAMES FILE:/a > FILE:/**"));
  assert.equal(renamed.field, "intents.0.to");
  world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/**", { dryRun: true }));
});

test("S4: with pick the pattern is not leased, so that it may be broad, but all of it must be allowed", () => {
  const world = createPolicyWorld("a");
  for (const name of ["GPU:/0", "GPU:/1"]) world.declare(name);
  world.grant("a", "MUTATES GPU:/* any");
  setPolicy(world, "gpus", [rule({ effect: "deny", resources: ["GPU:/1"] })]);
  world.refused("policy_denied", world.acquire("a", "MUTATES GPU:/* any"));
  setPolicy(world, "gpus", [rule({ resources: ["GPU:/0"] })]);
  world.refused("policy_denied", world.acquire("a", "MUTATES GPU:/* any"));
});

test("S4: deny wins over allow, and what no allow rule covers is refused", () => {
  const world = createPolicyWorld("a");
  setPolicy(world, "ci", [
    rule({ resources: ["FILE:/shop/**", "DB:/test/**"], predicates: ["MUTATES", "CONSUMES"] }),
    rule({ name: "migrations", effect: "deny", resources: ["FILE:/shop/migrations/**"] }),
  ]);
  world.grant("a", "MUTATES FILE:/shop/src/**");
  const other = world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/billing/x"));
  assert.deepEqual(other.allowed, ["MUTATES|CONSUMES FILE:/shop/**", "MUTATES|CONSUMES DB:/test/**"]);
  assert.equal(other.rule, undefined);
  world.refused("policy_denied", world.acquire("a", "DELETES FILE:/shop/x"));
  const denied = world.refused("policy_denied", world.acquire("a", "CONSUMES FILE:/shop/migrations/1.sql"));
  assert.equal(denied.rule, "migrations");
  // Part of it is denied, so all of it is.
  world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/shop/**"));
});

test("S4: every policy that applies must allow it: one that is set narrows, and never widens", () => {
  const world = createPolicyWorld("a", "b");
  setPolicy(world, "one", [rule({ resources: ["FILE:/a/**", "FILE:/b/**"] })]);
  setPolicy(world, "two", [rule({ resources: ["FILE:/b/**", "FILE:/c/**"] })], { roles: ["agent"] });
  setPolicy(world, "others", [rule({ resources: ["DB:/none"] })], { roles: ["worker", "cell"] });
  world.grant("a", "MUTATES FILE:/b/x");
  assert.equal(world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/a/x")).policy, "two");
  assert.equal(world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/c/x")).policy, "one");
  world.expect("policy", world.ask({ type: "delete_policy", policyId: "two" }));
  world.grant("a", "MUTATES FILE:/a/x");
});

test("S4: ttl is capped with a warning; units are not", () => {
  const world = createPolicyWorld("a");
  setPolicy(world, "short", [
    rule({ effect: "limit", resources: ["GPU:/**"], ttlMsMax: 5_000, unitsMax: 2 }),
    rule({ effect: "limit", ttlMsMax: 20_000 }),
  ]);
  world.declare("GPU:/0", 4);
  const gpu = world.expect("granted", world.ask(world.acquire("a", "CONSUMES GPU:/0 x2", { ttlMs: 60_000 })));
  assert.equal(gpu.leases[0]?.ttl, 5_000);
  assert.deepEqual(gpu.warnings, ["ttl_ms was capped at 5000 by the policy short."]);
  assert.equal(world.grant("a", "MUTATES FILE:/x").ttl, 20_000);
  assert.equal(world.grant("a", "MUTATES FILE:/y", { ttlMs: 1_000 }).ttl, 1_000);
  const refusal = world.refused("policy_denied", world.acquire("a", "CONSUMES GPU:/0 x3"));
  assert.deepEqual(refusal.allowed, ["2"]);
});

test("L10: a limit on lease time ends what heartbeats would keep for ever, also what was held before", () => {
  const world = createPolicyWorld("a");
  const before = world.grant("a", "MUTATES FILE:/before", { ttlMs: 60_000 });
  world.later(30_000);
  setPolicy(world, "hour", [rule({ effect: "limit", resources: ["FILE:/**"], leaseTimeMsMax: 40_000 })]);
  assert.equal(world.grant("a", "MUTATES FILE:/x", { ttlMs: 60_000 }).ttl, 40_000);
  assert.equal(world.heartbeat(before.id).expiresAt, before.acquiredAt + 40_000);
  world.pass(10_000);
  assert.equal(world.ended(before.id).state, "EXPIRED");
});

test("G8: a renewal is asked for again, and a heartbeat is not", () => {
  const world = createPolicyWorld("a");
  const lease = world.grant("a", "MUTATES FILE:/x");
  setPolicy(world, "later", [rule({ effect: "deny", resources: ["FILE:/x"] })]);
  const actor = world.as("a");
  world.refused("policy_denied", { type: "renew_lease", actor, leaseId: lease.id, generation: null, activity: false });
  world.heartbeat(lease.id);
});

test("L15: a lease goes only to a receiver that may have it, and is weakened only to what is allowed", () => {
  const world = createPolicyWorld("a");
  const narrow = createKey(world, "key_narrow", "agent", { resources: ["FILE:/docs/**"] });
  world.expect("agent", world.ask({ type: "register_agent", actor: narrow, agentId: "b", labels: null }));
  const lease = world.grant("a", "MUTATES FILE:/src/x");
  const give = {
    type: "transfer_lease",
    actor: world.as("a"),
    leaseId: lease.id,
    toAgentId: "b",
    version: null,
  } as const;
  assert.equal(world.refused("policy_denied", give).policy, "scopes of key_narrow");
  setPolicy(world, "writers", [rule({ predicates: ["MUTATES"] })]);
  const actor = world.as("a");
  world.refused("policy_denied", {
    type: "downgrade_lease",
    actor,
    leaseId: lease.id,
    predicate: "CONSUMES",
    version: null,
  });
  world.expect("lease", world.ask({ ...give, actor: supervisor }));
});

test("S4: tasks are created, set up, cancelled and redriven only of the types that are allowed", () => {
  const world = createTaskWorld();
  const rules = [rule({ actions: ["create_task"], taskTypes: ["build", "test.*"] })];
  setPolicy(world, "builds", rules, { roles: ["supervisor"] });
  const taskId = world.create({ taskType: "deploy" });
  const actor = supervisor;
  const asks: readonly Ask[] = [
    { type: "cancel_task", actor, taskId, reason: null },
    { type: "redrive_task", actor, taskId },
    { type: "set_task_type", actor, taskType: "deploy", settings: {} },
    { ...world.creation({ taskType: "deploy" }), actor },
  ];
  for (const ask of asks) world.refused("policy_denied", ask);
  world.expect("task", world.ask({ ...world.creation({ taskType: "test.unit" }), actor }));
});

test("T10: a manifest is its creator's to be allowed, and its leases are no longer than that", () => {
  const world = createTaskWorld();
  const actor: Actor = { role: "worker", agentId: null, epoch: null, keyId: "k" };
  const rules = [rule({ resources: ["FILE:/shop/**"] }), rule({ effect: "limit", ttlMsMax: 5_000 })];
  setPolicy(world, "files", rules, { roles: ["worker"] });
  const refusal = world.refused("policy_denied", { ...world.creation({ intents: "MUTATES FILE:/x" }), actor });
  assert.equal(refusal.field, "intents.0.resource");
  const made = world.expect("task", world.ask({ ...world.creation({ intents: "MUTATES FILE:/shop/x" }), actor }));
  assert.equal(made.task.spec.leaseDurationMs, 5_000);
  assert.deepEqual(made.warnings, ["lease_duration_ms was capped at 5000 by the policy files."]);
});

test("S4: a policy of another tenant does not apply", () => {
  const world = createPolicyWorld("a");
  const other = world.beside("t2", "b");
  setPolicy(world, "t2s", [rule({ effect: "deny" })], { tenants: ["t2"] });
  other.refused("policy_denied", other.acquire("b", "MUTATES FILE:/x"));
  world.grant("a", "MUTATES FILE:/x");
});

test("S3: a policy that is not well-formed is refused with its field, and nothing changes", () => {
  const world = createPolicyWorld();
  const cases: readonly (readonly [Rule, string])[] = [
    [rule({ actions: [] }), "actions"],
    [rule({ effect: "limit" }), "effect"],
    [rule({ effect: "limit", actions: ["work"], unitsMax: 1 }), "actions"],
    [rule({ unitsMax: 1 }), "units_max"],
    [rule({ taskTypes: ["build"] }), "task_types"],
    [rule({ ids: Array.from({ length: 65 }, () => "x") }), "ids"],
    [rule({ effect: "limit", patternDepthMin: 17 }), "pattern_depth_min"],
  ];
  for (const [wrong, field] of cases) {
    const policy = { ...noTerms, rules: [rule({}), wrong] };
    const refusal = world.refused("invalid_policy", { type: "set_policy", policyId: "p", policy });
    assert.equal(refusal.field, `rules.1.${field}`);
  }
  const rules = Array.from({ length: 33 }, () => rule({}));
  world.refused("invalid_policy", { type: "set_policy", policyId: "p", policy: { ...noTerms, rules } });
  world.refused("invalid_policy", { type: "set_policy", policyId: "Not An Id", policy: { ...noTerms, rules: [] } });
  for (let nth = 0; nth < 256; nth++) setPolicy(world, `p${nth}`, []);
  world.refused("invalid_policy", { type: "set_policy", policyId: "more", policy: { ...noTerms, rules: [] } });
  world.refused("policy_unknown", { type: "delete_policy", policyId: "never" });
});

test("S4: only an operator sets policies, and scopes are not for operators and readers", () => {
  const world = createPolicyWorld("a");
  const policy = { ...noTerms, rules: [] };
  for (const actor of [supervisor, world.as("a")]) {
    world.refused("forbidden", { type: "set_policy", actor, policyId: "p", policy });
    world.refused("forbidden", { type: "delete_policy", actor, policyId: "p" });
  }
  world.refused("policy_unknown", { type: "delete_policy", policyId: "default" });
  for (const role of ["operator", "reader"] as const) {
    const key = {
      id: "k",
      hash: "h",
      role,
      tenant: "t1",
      label: null,
      expiresAt: null,
      scopes: { ...noScopes, ids: ["x"] },
    };
    world.refused("invalid_key", { type: "create_key", key });
  }
  const key = { id: "k", hash: "h", role: "agent", tenant: "t1", label: null, expiresAt: null } as const;
  world.refused("invalid_resource", { type: "create_key", key: { ...key, scopes: { ...noScopes, resources: ["x"] } } });
  world.refused("invalid_policy", { type: "create_key", key: { ...key, scopes: { ...noScopes, unitsMax: 0 } } });
});
