/** S4: scopes of keys, policies for one key, and dry runs; and that all of it is kept. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testPolicies } from "../commands/policy-test.ts";
import type { Actor } from "../contract/commands.ts";
import { createKey, createPolicyWorld, noTerms, rule, setPolicy } from "../testing/policy-world.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { type Ask, found, supervisor } from "../testing/test-world.ts";

test("S4: a key's scopes hold for the agents that it registers, and after the key is gone", () => {
  const world = createPolicyWorld();
  const key = createKey(world, "key_ci", "agent", { resources: ["FILE:/shop/**"], ids: ["ci-*"] });
  world.refused("policy_denied", { type: "register_agent", actor: key, agentId: "other", labels: null });
  world.refused("policy_denied", { type: "register_agent", actor: key, agentId: null, labels: null });
  world.expect("agent", world.ask({ type: "register_agent", actor: key, agentId: "ci-1", labels: null }));
  world.grant("ci-1", "MUTATES FILE:/shop/x");
  assert.equal(world.refused("policy_denied", world.acquire("ci-1", "MUTATES FILE:/x")).policy, "scopes of key_ci");
  const named = { id: "op", hash: "op", role: "operator", tenant: "t1", label: null } as const;
  world.expect("key", world.ask({ type: "create_key", key: { ...named, scopes: null, expiresAt: null } }));
  world.expect("key", world.ask({ type: "delete_key", keyId: "key_ci" }));
  world.refused("policy_denied", world.acquire("ci-1", "MUTATES FILE:/x"));
  world.crash();
  world.refused("policy_denied", world.acquire("ci-1", "MUTATES FILE:/x"));
  world.grant("ci-1", "MUTATES FILE:/shop/y");
});

test("S4: a policy can be for one key, and for the agents that it registered", () => {
  const world = createPolicyWorld("free");
  const key = createKey(world, "key_ci", "agent", {});
  world.expect("agent", world.ask({ type: "register_agent", actor: key, agentId: "ci-1", labels: null }));
  setPolicy(world, "ci", [rule({ resources: ["FILE:/ci/**"] })], { keyIds: ["key_ci"] });
  world.refused("policy_denied", world.acquire("ci-1", "MUTATES FILE:/x"));
  world.grant("free", "MUTATES FILE:/x");
  world.refused("key_unknown", {
    type: "set_policy",
    policyId: "p",
    policy: { ...noTerms, keyIds: ["no"], rules: [] },
  });
  world.refused("tenant_unknown", {
    type: "set_policy",
    policyId: "p",
    policy: { ...noTerms, tenants: ["no"], rules: [] },
  });
});

test("S4: a supervisor's scopes hold for what it declares, fences, withdraws, revokes and acts on", () => {
  const world = createPolicyWorld("a");
  const actor = createKey(world, "key_s", "supervisor", { resources: ["FILE:/shop/**"], ids: ["ci-*"] });
  const mine = world.grant("a", "MUTATES FILE:/shop/x");
  const other = world.grant("a", "MUTATES FILE:/x");
  const asks: readonly Ask[] = [
    { type: "declare_resource", refillMs: null, actor, resource: "FILE:/x", capacity: 1, cell: null },
    { type: "fence_resource", actor, resource: "FILE:/x", reason: "r" },
    { type: "reset_resource", actor, resource: "FILE:/x", probed: false },
    { type: "withdraw_resource", actor, resource: "FILE:/**", revoke: false },
    { type: "revoke", actor, target: { leaseId: other.id }, reason: "r" },
    { type: "revoke", actor, target: { agentId: "a" }, reason: "r" },
    { type: "revoke", actor, target: { resourcePrefix: "FILE:/" }, reason: "r" },
    { type: "release_lease", actor, leaseId: other.id, version: null },
    { type: "pause_agent", actor, agentId: "a" },
    world.acquire("a", "MUTATES FILE:/y", { actor }),
  ];
  for (const ask of asks) world.refused("policy_denied", ask);
  world.expect(
    "resource",
    world.ask({ type: "declare_resource", refillMs: null, actor, resource: "FILE:/shop/d", capacity: 1, cell: null }),
  );
  world.expect("revoked", world.ask({ type: "revoke", actor, target: { resourcePrefix: "FILE:/shop" }, reason: "r" }));
  assert.equal(world.ended(mine.id).state, "REVOKED");
});

test("S4: a worker's scopes hold for its id, for what it polls for and is offered, and for what it accepts", () => {
  const world = createTaskWorld();
  const actor = createKey(world, "key_w", "worker", { ids: ["build.*"], taskTypes: ["build"] });
  world.create({ taskType: "deploy" });
  world.refused("policy_denied", world.polling("deploy.1", { actor }));
  world.refused("policy_denied", world.polling("build.1", { actor, acceptTypes: ["build", "deploy"] }));
  world.idles("build.1", { actor });
  world.create({ taskType: "build" });
  const offer = world.offered("build.1", { actor });
  assert.equal(offer.task.spec.taskType, "build");
  world.idles("build.1", { actor });
  setPolicy(world, "stop", [rule({ effect: "deny", actions: ["work"], taskTypes: ["build"] })]);
  world.refused("policy_denied", world.receipt("accepted", offer, {}, actor));
  world.expect("policy", world.ask({ type: "delete_policy", policyId: "stop" }));
  world.submit("accepted", offer, {}, actor);
  setPolicy(world, "stop", [rule({ effect: "deny", actions: ["work"], taskTypes: ["build"] })]);
  // What was accepted can be completed, whatever the policies are by then.
  world.submit("complete", offer, { status: "success" }, actor);
});

test("S4: a cell's scopes hold for its name and for what it claims; what it hosts already stays its own", () => {
  const { world, enrol, refusedOf } = createHost();
  const actor = createKey(world, "key_c", "cell", { ids: ["gpu-*"], resources: ["GPU:/a/**"] });
  world.refused("policy_denied", enrolment("db-1", actor, []));
  const { refused } = enrol(enrolment("gpu-1", actor, ["GPU:/a/0", "GPU:/b/0", "FILE:/prod"]));
  assert.deepEqual(refusedOf(refused), ["GPU:/b/0", "FILE:/prod"]);
  assert.equal(world.resource("GPU:/a/0")?.cell, "gpu-1");
  assert.equal(world.resource("FILE:/prod"), undefined);
  setPolicy(world, "none", [rule({ effect: "deny", actions: ["host"], resources: ["GPU:/**"] })]);
  enrol(enrolment("gpu-1", actor, ["GPU:/a/0"]));
  assert.equal(world.resource("GPU:/a/0")?.fault, null);
});

test("S4: policies survive a restart, and a database from before there were any has the built-in one", () => {
  const world = createPolicyWorld("a");
  world.crash();
  world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/**"));
  setPolicy(world, "ci", [rule({ resources: ["FILE:/ci/**"] })], { tenants: ["t1"] });
  setPolicy(world, "default", []);
  world.crash();
  world.refused("policy_denied", world.acquire("a", "MUTATES FILE:/**"));
  world.grant("a", "MUTATES FILE:/ci/**");
  world.expect("policy", world.ask({ type: "delete_policy", policyId: "ci" }));
  world.crash();
  world.release(found(world.leases()[0], "lease").id);
  world.grant("a", "MUTATES FILE:/**");
});

test("S4: a dry run says of each thing whether it is allowed, also under a policy that is not set", () => {
  const world = createPolicyWorld("a");
  const test = {
    tenant: "t1",
    actor: supervisor,
    role: "agent",
    keyId: null,
    agentId: null,
    intents: [
      { predicate: "MUTATES", resource: "FILE:/**" },
      { predicate: "MUTATES", resource: "FILE:/ci/x" },
    ],
    checks: [{ action: "create_task", resource: null, predicate: null, taskType: "build", id: null }],
    policy: null,
  } as const;
  const before = testPolicies(world.base.state, test);
  assert(!("code" in before));
  assert.deepEqual(before.policies, ["default"]);
  assert.deepEqual(
    before.results.map(({ asked, isAllowed }) => [asked, isAllowed]),
    [
      ["MUTATES FILE:/**", false],
      ["MUTATES FILE:/ci/x", true],
      ["tasks of type build", true],
    ],
  );
  assert.equal(before.results[0]?.denial?.policy, "default");
  const rules = [rule({ actions: ["lease", "create_task"], resources: ["FILE:/shop/**"], taskTypes: ["deploy"] })];
  const proposed = { ...test, policy: { ...noTerms, policyId: "default", rules } };
  const after = testPolicies(world.base.state, proposed);
  assert(!("code" in after));
  assert.deepEqual(
    after.results.map(({ isAllowed }) => isAllowed),
    [false, false, false],
  );
  const own = { ...test, actor: world.as("a"), role: null };
  const verdict = testPolicies(world.base.state, own);
  assert(!("code" in verdict));
  assert.deepEqual(
    verdict.results.map(({ isAllowed }) => isAllowed),
    [false, true, true],
  );
  for (const other of [{ role: "operator" }, { keyId: "k" }, { agentId: "b" }, { policy: proposed.policy }] as const) {
    const refusal = testPolicies(world.base.state, { ...own, ...other });
    assert("code" in refusal);
    assert.equal(refusal.code, "forbidden");
  }
});

function createHost() {
  const world = createPolicyWorld();
  const enrol = (ask: Ask) => world.expect("cell_enrolled", world.ask(ask));
  const refusedOf = (refused: readonly { readonly resource: string }[]) => refused.map(({ resource }) => resource);
  return { world, enrol, refusedOf };
}

function enrolment(cellId: string, actor: Actor, names: readonly string[]): Ask {
  const listed = { driver: "memory", capacity: null, hardware: [], ready: true, fault: null, fenced: null };
  const inventory = names.map((resource) => ({ resource, ...listed }));
  return { type: "enrol_cell", actor, cellId, session: `s-${cellId}`, version: null, inventory, bindings: [] };
}
