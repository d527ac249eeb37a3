/** Verbs for the tests of policies: a world with the built-in policy, policies of rules, and keys with scopes. */
import type { Actor, SetPolicy } from "../contract/commands.ts";
import { blank } from "../contract/field.ts";
import { keyScopes, policyRule } from "../contract/policy-records.ts";
import type { Role } from "../contract/records.ts";
import { createWorld, type World } from "./test-world.ts";

export type Rule = SetPolicy["policy"]["rules"][number];
type Terms = Partial<Omit<SetPolicy["policy"], "rules">>;
export const rule = (change: Partial<Rule>): Rule => ({
  ...blank(policyRule),
  effect: "allow",
  actions: ["lease"],
  ...change,
});
export const noTerms = { description: null, tenants: [], roles: [], keyIds: [] };

export function setPolicy(
  world: Pick<World, "ask" | "expect">,
  policyId: string,
  rules: readonly Rule[],
  terms: Terms = {},
) {
  world.expect("policy", world.ask({ type: "set_policy", policyId, policy: { ...noTerms, ...terms, rules } }));
}

/** Worlds of tests are open; this one has the built-in policy, as a server that has just been started. */
export function createPolicyWorld(...agents: readonly string[]): World {
  const world = createWorld(...agents);
  world.expect("policy", world.ask({ type: "delete_policy", policyId: "default" }));
  return world;
}

/** A key with scopes, and what it shows. */
export function createKey(
  world: Pick<World, "ask" | "expect">,
  id: string,
  role: Role,
  change: Partial<typeof noScopes>,
): Actor {
  const scopes = { ...noScopes, ...change };
  const key = { id, hash: id, role, tenant: "t1", label: null, expiresAt: null, scopes };
  const made = world.expect("key", world.ask({ type: "create_key", key }));
  return { role, agentId: null, epoch: null, keyId: id, scopes: made.key.scopes };
}
export const noScopes = blank(keyScopes);
