/** Commands that are mostly refused: one for each refusal code (S3). */
import type { Acquire, Command } from "../src/kernel/contract/commands.ts";
import type { IntentInput } from "../src/kernel/contract/inputs.ts";
import { policyDefault, ruleDefault } from "../src/kernel/contract/policy-records.ts";
import { manifestFor } from "./manifests.ts";
import { actorOf, entropyOf, operator, type SimAgent, type SimTenant, type World } from "./world.ts";

type Spoil = (manifest: Acquire, name: string) => Partial<Acquire>;

const intent = (resource: string, change: Partial<IntentInput> = {}): readonly IntentInput[] => [
  { predicate: "MUTATES", resource, units: null, to: null, ...change },
];

const spoilt: readonly Spoil[] = [
  () => ({ intents: intent("FILE:a") }),
  () => ({ intents: intent("FILE:/a//b") }),
  () => ({ intents: intent("file:/a") }),
  () => ({ intents: intent("FILE:/a/../b") }),
  () => ({ intents: intent("TASK:/1") }),
  (_, name) => ({ intents: intent(name, { predicate: "READS" }) }),
  (_, name) => ({ intents: intent(name, { units: 0 }) }),
  (_, name) => ({ intents: intent(name, { units: 1.5 }) }),
  (_, name) => ({ intents: intent(name, { to: "FILE:/elsewhere" }) }),
  (_, name) => ({ intents: intent(name, { predicate: "RENAMES", to: name }) }),
  (_, name) => ({ intents: [...intent(name), ...intent(name)] }),
  () => ({ intents: [] }),
  () => ({ intents: Array.from({ length: 257 }, (_, nth) => ({ predicate: "CONSUMES", resource: `FILE:/${nth}` })) }),
  () => ({ ttlMs: 99 }),
  () => ({ ttlMs: Number.NaN }),
  () => ({ waitTimeoutMs: -1 }),
  () => ({ idleTimeoutMs: 5 }),
  () => ({ purpose: "x".repeat(1_025) }),
  () => ({ requestKey: "" }),
  () => ({ agentId: "nobody" }),
  () => ({ tenant: "nowhere" }),
  () => ({ actor: { role: "reader", agentId: null, epoch: null } }),
];

/** Only agents that nothing else registers, so that the rest goes on as without it (S4). */
export const denial = {
  ...policyDefault,
  rules: [{ ...ruleDefault, effect: "deny", actions: ["register_agent"], ids: ["denied-*"] }],
} as const;

export function badCommand(world: World, tenant: SimTenant, agent: SimAgent): Command {
  const { random } = world;
  if (random.chance(0.5)) {
    const manifest = manifestFor(world, tenant, agent, operator);
    const spoil = random.pick(spoilt);
    return { ...manifest, ...spoil(manifest, random.pick(tenant.names)) };
  }
  return random.pick(wrongCommands(world, tenant, agent));
}

function wrongCommands(world: World, tenant: SimTenant, agent: SimAgent): readonly Command[] {
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  const tenantId = tenant.id;
  const agentId = agent.id;
  const leases = [...world.store.lease.values()].filter((lease) => lease.tenant === tenantId);
  const leaseId = leases.at(-1)?.id ?? "lse_none";
  const boundId = leases.find((lease) => lease.cell !== null)?.id ?? leaseId;
  const closingId = leases.find((lease) => lease.state === "CLOSING")?.id ?? boundId;
  const digest = {
    checkpointId: "c",
    resumePoint: "r",
    context: {},
    intentBacklog: [],
    resolutionStrategy: "HOPE",
    assumptions: [],
  };
  const key = {
    id: "k",
    hash: "h",
    role: "agent",
    tenant: tenantId,
    label: "x".repeat(300),
    scopes: null,
    expiresAt: null,
  } as const;
  return [
    { ...asked, type: "release_lease", leaseId, version: "v".repeat(1_025) },
    { ...asked, type: "revoke", target: { agentId }, reason: "r".repeat(1_025) },
    { ...asked, type: "revoke", target: { leaseId: "lse_none" }, reason: "gone" },
    { ...asked, type: "revoke", target: { resourcePrefix: "FILE:a" }, reason: "misspelt" },
    { ...asked, type: "revoke", target: { agentId }, reason: "may not", actor: actorOf(agent) },
    { ...asked, type: "register_agent", agentId: " ", labels: null },
    { ...asked, type: "register_agent", agentId, labels: { note: "x".repeat(257) } },
    { ...asked, type: "save_digest", agentId, digest },
    { ...asked, type: "transition_agent", agentId, to: "DREAMING" },
    { ...asked, type: "resume_agent", agentId: "nobody", assumptions: [] },
    { ...asked, type: "create_tenant", tenantId: "Not An Id" },
    { ...asked, type: "create_tenant", tenantId },
    { ...asked, type: "set_tenant_settings", tenantId, settings: { ttlMsMax: 0 } },
    { ...asked, type: "set_tenant_settings", tenantId: "nowhere", settings: {} },
    { ...asked, type: "set_tenant_quotas", tenantId, quotas: { leasesMax: -1 } },
    { ...asked, type: "suspend_tenant", tenantId, reason: null, actor: actorOf(agent) },
    { ...asked, type: "declare_resource", refillMs: null, resource: "GPU:/zero", capacity: 0, cell: null },
    { ...asked, type: "declare_resource", refillMs: 1, resource: "GPU:/soon", capacity: 2, cell: null },
    { ...asked, type: "fence_resource", resource: "nonsense", reason: "typo" },
    { ...asked, type: "reset_resource", resource: "FILE:/never/declared", probed: true },
    { ...asked, type: "downgrade_lease", version: null, leaseId, predicate: "READS" },
    { ...asked, type: "report_violation", agentId, leaseId, resource: leases.at(-1)?.resource ?? "FILE:/none" },
    { ...asked, type: "create_key", key },
    { ...asked, type: "rotate_key", keyId: "no such key", overlapMs: 0, expiresAt: null, hash: "h" },
    { ...asked, type: "delete_key", keyId: "no such key" },
    { ...asked, type: "delete_policy", policyId: "no-such-policy" },
    { ...asked, type: "set_policy", policyId: "Not An Id", policy: denial },
    { ...asked, type: "assign_name", keyId: "key-0", name: { workerId: "never.polled" } },
    { ...asked, type: "collect_request", collect: null, requestId: "req_none" },
    { ...asked, type: "heartbeat", leaseId: boundId, activity: true },
    { ...asked, type: "heartbeat", leaseId: closingId, activity: true },
    { ...asked, type: "bind_confirmed", cellId: null, leaseId, generation: 1, coordinate: null, reason: null },
    { ...asked, type: "teardown_confirmed", cellId: null, leaseId, generation: 1, coordinate: null, reason: null },
    { ...asked, type: "bind_failed", cellId: null, leaseId: "lse_none", generation: 1, coordinate: null, reason: null },
    { ...asked, type: "teardown_failed", cellId: null, leaseId, generation: 7, coordinate: null, reason: null },
  ];
}
