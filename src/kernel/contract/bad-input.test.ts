import assert from "node:assert/strict";
import { test } from "node:test";
import { taskRefusals } from "../testing/tasks-world.ts";
import {
  type Ask,
  type AskOf,
  actor,
  createWorld,
  found,
  intentOf,
  operator,
  plainDigest,
  supervisor,
  type World,
} from "../testing/test-world.ts";
import type { EnrolCell } from "./commands.ts";
import { limits } from "./limits.ts";
import { type RefusalCode, refusalCodes } from "./refusals.ts";

/** Worlds hold "old" and "young"; young has a lease on FILE:/x, old a wait for it. */
function createBusyWorld() {
  const world = createWorld("old", "young");
  const lease = world.grant("young", "MUTATES FILE:/x", { key: "k" });
  const wait = world.waits("old", "MUTATES FILE:/x", { waitTimeoutMs: 50_000 });
  return { world, lease, wait };
}
type Busy = ReturnType<typeof createBusyWorld>;

const many = (count: number, text = "x") => text.repeat(count);
const acquire = (world: World, change: Partial<Extract<Ask, { type: "acquire" }>>): Ask => ({
  ...world.acquire("young", "MUTATES FILE:/free"),
  ...change,
});
const register = (agentId: string, labels: Readonly<Record<string, string>> | null = null): Ask => ({
  type: "register_agent",
  agentId,
  labels,
});
const digest = (change: Partial<typeof plainDigest>): Ask => ({
  type: "save_digest",
  agentId: "young",
  digest: { ...plainDigest, ...change },
});
const declare = (resource: string, capacity: number | null, refillMs: number | null = null): Ask => {
  return { type: "declare_resource", resource, capacity, refillMs, cell: null };
};
const settings = (change: Extract<Ask, { type: "set_tenant_settings" }>["settings"]): Ask => ({
  type: "set_tenant_settings",
  tenantId: "t1",
  settings: change,
});
const quotas = (change: Extract<Ask, { type: "set_tenant_quotas" }>["quotas"]): Ask => ({
  type: "set_tenant_quotas",
  tenantId: "t1",
  quotas: change,
});
const key = (change: Partial<Extract<Ask, { type: "create_key" }>["key"]> = {}): Ask => ({
  type: "create_key",
  key: { id: "key-1", hash: "h", role: "agent", tenant: "t1", label: null, scopes: null, expiresAt: null, ...change },
});

type Case = (busy: Busy) => readonly Ask[];

const policyRefusals = ["invalid_policy", "policy_denied", "policy_unknown"] as const;

/**
 * G9 has `resource_fenced` for the data plane, where a token is shown; a caller of the kernel gets PAUSED (W9).
 * `receipt_unknown` is the ledger's to say. What tasks and policies are refused for is in tests of their own.
 */
const saidElsewhere = [...taskRefusals, ...policyRefusals, "receipt_unknown", "resource_fenced"] as const;

/** By code: how to get it. Each way is tried in a world of its own, and must change nothing. */
const ways: Readonly<Record<Exclude<RefusalCode, (typeof saidElsewhere)[number]>, Case>> = {
  invalid_resource: ({ world }) => [
    world.acquire("young", "MUTATES nonsense"),
    world.acquire("young", "RENAMES FILE:/a > nonsense"),
    declare("FILE:/a/*", 4),
    declare("FILE:", 4),
    { type: "fence_resource", resource: "FILE:/../x", reason: "x" },
    { type: "reset_resource", resource: "x", probed: true },
    { type: "withdraw_resource", resource: "", revoke: true },
    { type: "revoke", target: { resourcePrefix: "nonsense" }, reason: "x" },
    { type: "resume_agent", agentId: "young", assumptions: [{ resource: "nonsense", version: "v1" }] },
    digest({ intentBacklog: [{ predicate: "MUTATES", resource: "nonsense" }] }),
    digest({ intentBacklog: [{ predicate: "RENAMES", resource: "FILE:/a", to: "nonsense" }] }),
  ],
  reserved_resource: ({ world }) => [
    world.acquire("young", "MUTATES TASK:/1"),
    declare("TASK:/1", 4),
    { type: "fence_resource", resource: "TASK:/1", reason: "x" },
    { type: "withdraw_resource", resource: "TASK:/1", revoke: false },
    digest({ intentBacklog: [{ predicate: "MUTATES", resource: "TASK:/1" }] }),
  ],
  invalid_predicate: ({ world, lease }) => [
    world.acquire("young", "WRITES FILE:/a"),
    world.acquire("young", "mutates FILE:/a"),
    world.acquire("young", "toString FILE:/a"),
    { type: "downgrade_lease", version: null, leaseId: lease.id, predicate: "READS" },
    digest({ intentBacklog: [{ predicate: "", resource: "FILE:/a" }] }),
  ],
  invalid_units: ({ world }) =>
    [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, limits.unitsMax + 1].map((units) =>
      acquire(world, { intents: [{ predicate: "MUTATES", resource: "FILE:/free", units }] }),
    ),
  invalid_target: ({ world }) => [
    world.acquire("young", "RENAMES FILE:/a"),
    world.acquire("young", "DELETES FILE:/a > FILE:/b"),
    world.acquire("young", "RENAMES FILE:/a > FILE:/a"),
    world.acquire("young", "RENAMES FILE:/* > FILE:/b any"),
  ],
  invalid_ttl: ({ world }) => [0, 99, -1, 100.5, Number.NaN, 2 ** 53].map((ttlMs) => acquire(world, { ttlMs })),
  invalid_wait_timeout: ({ world }) =>
    [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY].map((waitTimeoutMs) => acquire(world, { waitTimeoutMs })),
  invalid_idle_timeout: ({ world }) =>
    [0, 99, 100.5, Number.NaN].map((idleTimeoutMs) => acquire(world, { idleTimeoutMs })),
  invalid_purpose: ({ world }) => [acquire(world, { purpose: many(limits.purposeLengthMax + 1) })],
  invalid_request_id: ({ world }) => [
    acquire(world, { requestKey: "" }),
    acquire(world, { requestKey: many(limits.keyLengthMax + 1) }),
  ],
  invalid_version: ({ lease }) => [
    { type: "release_lease", leaseId: lease.id, version: many(limits.versionLengthMax + 1) },
    { type: "release_all", agentId: "young", leaseIds: null, versions: { a: many(limits.versionLengthMax + 1) } },
  ],
  invalid_reason: ({ lease }) => [
    { type: "revoke", target: { leaseId: lease.id }, reason: many(limits.reasonLengthMax + 1) },
    { type: "fence_resource", resource: "FILE:/x", reason: many(limits.reasonLengthMax + 1) },
  ],
  empty_manifest: ({ world }) => [acquire(world, { intents: [] })],
  manifest_too_large: ({ world }) => [
    acquire(world, {
      intents: Array.from({ length: limits.intentsMax + 1 }, (_, n) => intentOf(`MUTATES FILE:/f${n}`)),
    }),
  ],
  duplicate_intent: ({ world }) => [world.acquire("young", ["MUTATES FILE:/a", "MUTATES FILE:/a x2"])],
  invalid_agent_id: () => ["", " ", "-a", "a b", "\u00e9", many(limits.idLengthMax + 1)].map((id) => register(id)),
  invalid_labels: () => [
    register("new", Object.fromEntries(Array.from({ length: limits.labelsMax + 1 }, (_, n) => [`l${n}`, ""]))),
    register("new", { a: many(limits.labelLengthMax + 1) }),
    register("young", { [many(limits.labelLengthMax + 1)]: "" }),
  ],
  invalid_digest: () => [digest({ checkpointId: "" }), digest({ resolutionStrategy: "HOPE" })],
  invalid_state: () => [{ type: "transition_agent", agentId: "young", to: "SLEEPING" }],
  invalid_tenant_id: () =>
    ["", "A", "a b", "_a", many(64, "a")].map((tenantId): Ask => ({ type: "create_tenant", tenantId })),
  invalid_settings: () => [
    settings({ strategy: "luck" as "wait_die" }),
    settings({ ttlMsDefault: 0 }),
    settings({ waitTimeoutMsMax: -1 }),
    settings({ retryMsBase: 1.5 }),
    settings({ claimWithinMs: Number.NaN }),
    settings({ ttlMsMax: limits.ttlMsMin - 1 }),
  ],
  invalid_quotas: () => [
    quotas({ leasesMax: -1 }),
    quotas({ waitersMax: 0.5 }),
    quotas({ leaseTimeMsMax: Number.NaN }),
    quotas({ agentsMax: null as unknown as number }),
  ],
  invalid_capacity: () => [0, -1, 0.5, Number.NaN, limits.unitsMax + 1].map((capacity) => declare("GPU:/0", capacity)),
  invalid_refill: () => [0, 0.5, limits.refillMsMax + 1].map((refillMs) => declare("GPU:/0", 1, refillMs)),
  invalid_key: () => [
    key({ id: "" }),
    key({ id: many(limits.idLengthMax + 1) }),
    key({ label: many(limits.labelLengthMax + 1) }),
  ],
  forbidden: ({ world, wait, lease }) => [
    { ...world.acquire("old", "MUTATES FILE:/free"), actor: world.as("young") },
    { type: "collect_request", collect: null, actor: world.as("young"), requestId: wait.requestId },
    { type: "cancel_request", actor: world.as("young"), requestId: wait.requestId },
    { type: "verify_all", actor: world.as("young"), agentId: "old", leaseIds: null },
    { type: "verify_all", actor: world.as("young"), agentId: "never", leaseIds: null },
    { type: "revoke", actor: world.as("young"), target: { leaseId: lease.id }, reason: "x" },
    { type: "fence_resource", actor: world.as("young"), resource: "FILE:/x", reason: "x" },
    { type: "pause_agent", actor: world.as("young"), agentId: "young" },
    { type: "create_tenant", actor: supervisor, tenantId: "t9" },
    { type: "suspend_tenant", actor: supervisor, tenantId: "t1", reason: null },
    { ...settings({ ttlMsDefault: 1 }), actor: supervisor } as Ask,
    { ...quotas({ leasesMax: 1 }), actor: supervisor } as Ask,
    { ...key(), actor: supervisor } as Ask,
    { type: "delete_key", actor: supervisor, keyId: "key-1" },
    { ...register("new"), actor: actor("reader") } as Ask,
  ],
  not_lease_holder: ({ world, lease }) => [
    { type: "release_lease", actor: world.as("old"), leaseId: lease.id, version: null },
  ],
  stale_epoch: ({ world, lease }) => [
    { type: "heartbeat", actor: world.as("young", 0), leaseId: lease.id, activity: true },
    { type: "verify_all", actor: world.as("young", 2), agentId: "young", leaseIds: null },
  ],
  agent_unknown: ({ world, lease }) => [
    { ...world.acquire("young", "MUTATES FILE:/free"), actor: operator, agentId: "never" },
    { ...world.acquire("young", "MUTATES FILE:/free"), actor: world.as("never"), agentId: "never" },
    { type: "transfer_lease", version: null, leaseId: lease.id, toAgentId: "never" },
    { type: "revoke", target: { agentId: "never" }, reason: "x" },
    { type: "pause_agent", agentId: "never" },
  ],
  lease_unknown: () => [
    { type: "heartbeat", leaseId: "lse_never", activity: true },
    { type: "revoke", target: { leaseId: "lse_never" }, reason: "x" },
  ],
  request_unknown: () => [
    { type: "collect_request", collect: null, requestId: "req_never" },
    { type: "cancel_request", requestId: "" },
  ],
  resource_unknown: ({ world }) => [
    { type: "reset_resource", resource: "FILE:/never", probed: true },
    world.acquire("young", "MUTATES GPU:/* any"),
  ],
  tenant_unknown: ({ world }) => [
    { ...world.acquire("young", "MUTATES FILE:/free"), tenant: "t9" },
    { type: "suspend_tenant", tenantId: "t9", reason: null },
    key({ tenant: "t9" }),
  ],
  digest_unknown: () => [{ type: "resume_agent", agentId: "old", assumptions: [] }],
  key_unknown: () => [
    { type: "delete_key", keyId: "never" },
    { type: "rotate_key", keyId: "never", overlapMs: 0, expiresAt: null, hash: "h" },
    { type: "assign_name", keyId: "never", name: { agentId: "old" } },
  ],
  worker_unknown: ({ world }) => {
    world.expect("key", world.ask(key({ role: "worker" })));
    return [{ type: "assign_name", keyId: "key-1", name: { workerId: "w.1" } }];
  },
  last_operator_key: ({ world }) => {
    world.expect("key", world.ask(key({ role: "operator" })));
    world.expect("key", world.ask(key({ id: "key-2" })));
    return [{ type: "delete_key", keyId: "key-1" }];
  },
  lease_expired: ({ world }) => [{ type: "heartbeat", leaseId: closing(world, "expired"), activity: true }],
  lease_released: ({ world }) => [{ type: "heartbeat", leaseId: closing(world, "released"), activity: true }],
  lease_revoked: ({ world }) => [{ type: "heartbeat", leaseId: closing(world, "revoked"), activity: true }],
  wait_timeout: ({ world, wait }) => {
    world.pass(50_000);
    return [{ type: "collect_request", collect: null, requestId: wait.requestId }];
  },
  request_canceled: ({ world, wait }) => {
    world.cancel(wait.requestId);
    return [{ type: "collect_request", collect: null, requestId: wait.requestId }];
  },
  lease_denied: ({ world }) => {
    world.declare("GPU:/0", 2);
    return [world.acquire("young", "MUTATES GPU:/0 x3")];
  },
  would_wait: ({ world }) => [world.acquire("old", "CONSUMES FILE:/x", { waitTimeoutMs: 0 })],
  renew_required: ({ world }) => {
    const leaseId = bound(world);
    world.collect(`req_${leaseId.slice(4)}`);
    return [{ type: "heartbeat", leaseId, activity: false }];
  },
  resource_withdrawn: ({ world, lease }) => {
    world.withdraw(lease.resource);
    return [{ type: "heartbeat", leaseId: lease.id, activity: false }];
  },
  verify_required: ({ world }) => {
    world.restart("young");
    return [world.acquire("young", "MUTATES FILE:/free")];
  },
  stale_generation: ({ lease }) => [{ type: "renew_lease", activity: false, leaseId: lease.id, generation: 7 }],
  invalid_transition: () => [{ type: "transition_agent", agentId: "young", to: "PLANNING" }],
  not_weaker: ({ lease }) => [{ type: "downgrade_lease", version: null, leaseId: lease.id, predicate: "DELETES" }],
  transfer_refused: ({ world, lease }) => {
    world.grant("young", "CONSUMES FILE:/x");
    return [{ type: "transfer_lease", version: null, leaseId: lease.id, toAgentId: "old" }];
  },
  request_id_reused: ({ world }) => [world.acquire("young", "MUTATES FILE:/other", { key: "k" })],
  resource_in_use: () => [declare("FILE:/x", 4)],
  strategy_in_use: () => [settings({ strategy: "wound_wait" })],
  tenant_exists: () => [{ type: "create_tenant", tenantId: "t1" }],
  key_exists: ({ world }) => {
    world.expect("key", world.ask(key()));
    return [key()];
  },
  lease_not_binding: ({ lease }) => [report("bind_confirmed", lease.id), report("bind_failed", lease.id)],
  invalid_cell: ({ world }) => {
    enrol(world, "c1");
    return [enrolment(""), enrolment("a cell"), enrolment("c1", { session: "" })];
  },
  cell_taken: ({ world }) => {
    enrol(world, "c1");
    return [enrolment("c1", { actor: { ...cell, keyId: "key-2" } })];
  },
  stale_session: ({ world }) => {
    enrol(world, "c1");
    return [{ type: "cell_heartbeat", cellId: "c1", session: "s0", inventory: null }];
  },
  cell_unknown: () => [
    { type: "cell_heartbeat", cellId: "never", session: "s1", inventory: null },
    { type: "cell_left", cellId: "never", session: "s1", reason: "x" },
    { type: "cell_ended", cellId: "never", leaseId: "lse_x", generation: 1, code: "lease_expired", failure: null },
    { type: "withdraw_cell", cellId: "never", revoke: true },
    { type: "readmit_cell", cellId: "never" },
  ],
  probe_required: ({ world }) => {
    bound(world);
    world.fence("GPU:/9");
    return [{ type: "reset_resource", resource: "GPU:/9", probed: false }];
  },
  lease_not_closing: ({ lease }) => [report("teardown_confirmed", lease.id), report("teardown_failed", lease.id)],
};

const hit = new Set<RefusalCode>();

for (const [code, asks] of Object.entries(ways) as [keyof typeof ways, Case][]) {
  test(`S3: ${code} is refused as such, and nothing changes`, () => {
    for (let index = 0; index < asks(createBusyWorld()).length; index++) {
      const busy = createBusyWorld();
      busy.world.save("young");
      const ask = found(asks(busy)[index], "case");
      busy.world.refused(code, ask);
      hit.add(code);
    }
  });
}

test("S3: every code in the list of refusals was met above, but for what others say", () => {
  assert.deepEqual(new Set(refusalCodes.filter((code) => !hit.has(code))), new Set<RefusalCode>(saidElsewhere));
});

test("S3: what is at the limit is taken", () => {
  const world = createWorld("a");
  const id = many(limits.idLengthMax, "a");
  world.register(id);
  const labels = Object.fromEntries(
    Array.from({ length: limits.labelsMax }, (_, n) => [
      `${n}`.padStart(limits.labelLengthMax),
      many(limits.labelLengthMax),
    ]),
  );
  world.expect("agent", world.ask(register("labelled", labels)));
  assert.deepEqual(world.agent("labelled").labels, labels);
  const intents = Array.from({ length: limits.intentsMax }, (_, n) => `RENAMES FILE:/f${n} > FILE:/t${n}`);
  const key = many(limits.keyLengthMax);
  const purpose = many(limits.purposeLengthMax);
  const { leases, requestId } = world.grants("a", intents, { key, purpose, idleTimeoutMs: 100, ttlMs: 100 });
  assert.equal(leases.length, 2 * limits.intentsMax);
  assert.equal(new Set(leases.map((lease) => lease.id)).size, 2 * limits.intentsMax);
  assert.equal(world.collect(requestId).leases.length, 2 * limits.intentsMax);
  const keyless = world.grants("a", intents).requestId;
  assert.equal(world.collect(keyless).leases.length, 2 * limits.intentsMax);
  world.release(leases[0]?.id ?? "", many(limits.versionLengthMax));
  world.declare("GPU:/0", limits.unitsMax);
  world.grant("a", `MUTATES GPU:/0 x${limits.unitsMax}`);
});

test("S3: the order of the checks: who may act, then the form, then the key, then the rest", () => {
  const { world } = createBusyWorld();
  const empty = acquire(world, { intents: [], requestKey: "k" });
  world.refused("forbidden", { ...empty, actor: world.as("old") } as Ask);
  world.refused("stale_epoch", { ...empty, actor: world.as("young", 9) } as Ask);
  world.refused("empty_manifest", empty);
  world.restart("young");
  world.refused("request_id_reused", acquire(world, { requestKey: "k" }));
  world.refused("verify_required", acquire(world, {}));
  world.verify("young");
  world.fence("FILE:/free");
  world.quotas({ leasesMax: 0 });
  assert.equal(world.pauses("young", "MUTATES FILE:/free").reason, "resource_fenced");
  world.reset("FILE:/free");
  world.refused("lease_denied", world.acquire("young", "MUTATES FILE:/free"));
});

function report(
  type: "bind_confirmed" | "bind_failed" | "teardown_confirmed" | "teardown_failed",
  leaseId: string,
): Ask {
  return { type, cellId: null, leaseId, generation: 1, coordinate: null, reason: null };
}

const cell = { role: "cell", agentId: null, epoch: null, keyId: "key-1" } as const;

function enrolment(cellId: string, more: Partial<AskOf<EnrolCell>> = {}): Ask {
  const asked = { type: "enrol_cell", actor: cell, cellId, session: "s1", version: null } as const;
  return { ...asked, inventory: [], bindings: [], ...more };
}

function enrol(world: World, cellId: string): void {
  world.expect("key", world.ask(key({ role: "cell" })));
  world.expect("cell_enrolled", world.ask(enrolment(cellId)));
}

/** A lease of young's on a bound resource. */
function bound(world: World): string {
  world.declare("GPU:/9", null, "cell-1");
  const { requestId } = world.waits("young", "MUTATES GPU:/9", { ttlMs: 1_000 });
  const [leaseId = ""] = found(world.request(requestId), "request").leaseIds;
  world.bound(found(world.lease(leaseId), "lease"));
  return leaseId;
}

/** One that is being torn down, after such an end. */
function closing(world: World, end: "expired" | "released" | "revoked"): string {
  const leaseId = bound(world);
  if (end === "expired") world.pass(1_000);
  else if (end === "released") world.release(leaseId);
  else world.revoke({ leaseId });
  return leaseId;
}
