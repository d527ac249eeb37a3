import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AdoptDirectory } from "../contract/commands.ts";
import type { Policy } from "../contract/policy-records.ts";
import { ruleDefault } from "../contract/policy-records.ts";
import type { Key } from "../contract/records.ts";
import { apply, restore, snapshot } from "../kernel.ts";
import { createWorld, operator, type World } from "../testing/test-world.ts";
import { keysIn, policiesOf, tenantsIn } from "../views.ts";

const none = { lastUsedAt: null, rotatedAt: null, formerHash: null, formerUntil: null, generation: 1 };

function keyOf(id: string, more: Partial<Key> = {}): Key {
  return {
    ...{
      id,
      hash: `${id}-1`,
      role: "supervisor",
      tenant: "t1",
      label: null,
      scopes: null,
      createdAt: 1,
      expiresAt: null,
    },
    ...none,
    ...more,
  } as Key;
}

function policyOf(id: string, resource: string): Policy {
  const rule = { ...ruleDefault, effect: "deny", actions: ["lease"], resources: [resource] } as const;
  return { id, description: null, tenants: [], roles: [], keyIds: [], rules: [rule], changedAt: 1 };
}

type Given = Partial<Pick<AdoptDirectory, "tenants" | "keys" | "policies">>;

function adopt(world: World, { tenants = [], keys = [], policies = [] }: Given) {
  const caller = { tenant: "t1", actor: operator, entropy: [0, 0] as const };
  return apply(world.base.state, { type: "adopt_directory", ...caller, tenants, keys, policies }, world.now);
}

test("S5: a key that the directory does not have any more is deleted, and a new secret takes the old one's place", () => {
  const world = createWorld();
  adopt(world, { keys: [keyOf("a"), keyOf("b")] });
  assert.deepEqual([...keysIn(world.base.state).keys()].sort(), ["a", "b"]);
  adopt(world, { keys: [keyOf("b", { hash: "b-2", generation: 2 })] });
  assert.deepEqual([...keysIn(world.base.state).keys()], ["b"]);
  assert.equal(keysIn(world.base.state).get("b")?.record.hash, "b-2");
});

test("S4: policies hold from their adoption on, and no longer than the directory has them", () => {
  const world = createWorld();
  world.register("a");
  adopt(world, { policies: [policyOf("shut", "FILE:/shut/**")] });
  const ask = () => world.ask(world.acquire("a", "MUTATES FILE:/shut/x"));
  assert.equal(ask().type, "refused");
  adopt(world, { policies: [policyOf("shut", "FILE:/other/**")] });
  assert.equal(ask().type, "granted");
  adopt(world, {});
  assert.deepEqual(
    policiesOf(world.base.state, null).map(({ id }) => id),
    ["default"],
  );
});

test("a tenant that the directory has is made once, and keeps what its operator sets", () => {
  const world = createWorld();
  const tenants = [{ tenantId: "new", createdAt: 7 }];
  const first = adopt(world, { tenants });
  assert.deepEqual(
    first.events.map(({ type }) => type),
    ["tenant.created"],
  );
  world.ask({ type: "set_tenant_quotas", tenantId: "new", quotas: { agentsMax: 3 } });
  assert.equal(adopt(world, { tenants }).events.length, 0);
  const { record } = tenantsIn(world.base.state).get("new") ?? assert.fail();
  assert.deepEqual([record.createdAt, record.quotas.agentsMax], [7, 3]);
});

test("only the server adopts a directory", () => {
  const world = createWorld();
  const caller = { tenant: "t1", actor: { ...operator, role: "supervisor" as const }, entropy: [0, 0] as const };
  const nothing = { tenants: [], keys: [], policies: [] };
  const { reply } = apply(world.base.state, { type: "adopt_directory", ...caller, ...nothing }, world.now);
  assert.equal(reply.type === "refused" ? reply.code : reply.type, "forbidden");
});

test("whatever was adopted before, the last directory is what holds; and the same one again changes no record", () => {
  const anyKey = fc.record({
    id: fc.constantFrom("a", "b", "c"),
    hash: fc.constantFrom("1", "2"),
    tenant: fc.constantFrom("t1", "t2"),
  });
  const anyPolicy = fc.record({ id: fc.constantFrom("p", "q"), resource: fc.constantFrom("FILE:/x", "FILE:/y/**") });
  const anyGiven = fc.record({
    keys: fc.uniqueArray(anyKey, { selector: ({ id }) => id }),
    policies: fc.uniqueArray(anyPolicy, { selector: ({ id }) => id }),
  });
  fc.assert(
    fc.property(fc.array(anyGiven, { minLength: 1, maxLength: 5 }), (all) => {
      const world = createWorld();
      const given = all.map(({ keys, policies }) => ({
        keys: keys.map(({ id, ...more }) => keyOf(id, more)),
        policies: policies.map(({ id, resource }) => policyOf(id, resource)),
      }));
      for (const one of given) adopt(world, one);
      const last = given.at(-1) ?? assert.fail();
      const holds = () => ({
        keys: Array.from(keysIn(world.base.state).values(), ({ record }) => record).sort((a, b) =>
          a.id < b.id ? -1 : 1,
        ),
        policies: policiesOf(world.base.state, null)
          .filter(({ id }) => id !== "default")
          .sort((a, b) => (a.id < b.id ? -1 : 1)),
      });
      const sorted = {
        keys: [...last.keys].sort((a, b) => (a.id < b.id ? -1 : 1)),
        policies: [...last.policies].sort((a, b) => (a.id < b.id ? -1 : 1)),
      };
      assert.deepEqual(holds(), sorted);
      assert.deepEqual(adopt(world, last).changes, []);
      // And it is in the records that a kernel is restored from.
      const restored = restore(snapshot(world.base.state));
      assert.deepEqual(
        [...keysIn(restored).keys()].sort(),
        sorted.keys.map(({ id }) => id),
      );
    }),
    { numRuns: 60 },
  );
});
