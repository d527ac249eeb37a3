import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor, Command } from "./contract/commands.ts";
import { apply, createState, type State } from "./kernel.ts";

const operator = { role: "operator", agentId: null, epoch: null, keyId: "key_1", address: "10.0.0.7" } as const;
const agentKey = { role: "agent", agentId: null, epoch: null, keyId: "key_2" } as const;

function world(): State {
  const state = createState();
  give(state, operator, { type: "create_tenant", tenantId: "acme" });
  return state;
}

function give(state: State, actor: Actor, command: object) {
  const sent: object = { tenant: "acme", actor, entropy: [1, 2], ...command };
  return apply(state, sent as Command, 1_000);
}

test("S7: a change by an operator names who made it, from where, what it changed and to what", () => {
  const state = world();
  const { audits, events } = give(state, operator, {
    type: "set_tenant_quotas",
    tenantId: "acme",
    quotas: { leasesMax: 10 },
  });
  const entry = {
    tenant: "acme",
    at: 1_000,
    actor: "key_1",
    role: "operator",
    address: "10.0.0.7",
    action: "set_tenant_quotas",
    target: "acme",
    detail: { tenant_id: "acme", leases_max: 10 },
  };
  assert.deepEqual(audits, [entry]);
  assert.deepEqual(events.at(-1), { type: "audit.recorded", ...entry });
});

test("S7: a key's secret and its hash are not in the log", () => {
  const key = {
    id: "key_9",
    hash: "secret-hash",
    role: "reader",
    tenant: "acme",
    label: null,
    scopes: null,
    expiresAt: null,
  };
  const { audits } = give(world(), operator, { type: "create_key", key });
  assert.deepEqual([audits[0]?.target, audits[0]?.tenant], ["key_9", "acme"]);
  assert.doesNotMatch(JSON.stringify(audits), /secret-hash/);
});

test("S7: what is refused, and what anybody does with its own, is not in the log", () => {
  const state = world();
  assert.deepEqual(give(state, operator, { type: "create_tenant", tenantId: "acme" }).audits, []);
  assert.deepEqual(give(state, agentKey, { type: "revoke", target: { agentId: "a" }, reason: "no" }).audits, []);
  const registered = give(state, operator, { type: "register_agent", agentId: "a", labels: null });
  assert.equal(registered.reply.type, "agent");
  assert.deepEqual(registered.audits, []);
});

test("S7: a revocation and a fence by a supervisor are in the log, with their reasons", () => {
  const state = world();
  const supervisor = { ...operator, role: "supervisor" } as const;
  give(state, operator, { type: "register_agent", agentId: "a", labels: null });
  const revoked = give(state, supervisor, { type: "revoke", target: { agentId: "a" }, reason: "incident" });
  const fenced = give(state, supervisor, { type: "fence_resource", resource: "GPU:/0", reason: "smoke" });
  const shown = [revoked, fenced]
    .flatMap(({ audits }) => audits)
    .map(({ action, target, detail }) => [action, target, detail]);
  assert.deepEqual(shown, [
    ["revoke", "a", { agent_id: "a", reason: "incident" }],
    ["fence_resource", "GPU:/0", { resource: "GPU:/0", reason: "smoke" }],
  ]);
});
