/** What operators do: revoke, fence and reset, withdraw, pause, suspend, and change settings at run time. */
import { denial } from "./bad-input.ts";
import { count } from "./counters.ts";
import { cleanUp } from "./hosting.ts";
import { isPattern } from "./model/names.ts";
import { send, settleInSlices } from "./send.ts";
import { entropyOf, operator, type SimTenant, type World } from "./world.ts";

const habits = {
  revokeLease: 10,
  revokeAgent: 5,
  revokePrefix: 3,
  fence: 4,
  reset: 10,
  withdraw: 4,
  declare: 10,
  pause: 4,
  unpause: 5,
  suspend: 1,
  resume: 3,
  capacity: 50,
  strategy: 10,
  quotas: 6,
  settings: 3,
  createKey: 6,
  deleteKey: 2,
  policy: 2,
  forgetEnds: 5,
};

export function operatorTurn(world: World, tenant: SimTenant): void {
  const { random, counters } = world;
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  const tenantId = tenant.id;
  const agent = random.pick(tenant.agents);
  const resource = random.pick(tenant.names);
  const reason = "by the operator";
  // Mostly, what is suspended or paused is resumed first.
  const habit = (random.chance(0.7) ? repairOf(world, tenant) : null) ?? random.weighted(habits);
  switch (habit) {
    case "revokeLease": {
      const leaseId = leaseToTake(world, tenant, agent.leases);
      send(world, { ...asked, type: "revoke", target: { leaseId }, reason });
      return;
    }
    case "revokeAgent": {
      const agentId = random.pick([agent.id, tenant.workers[0]?.id ?? agent.id]);
      send(world, { ...asked, type: "revoke", target: { agentId }, reason });
      return;
    }
    case "revokePrefix": {
      const resourcePrefix = random.pick([resource, "FILE:/", "FILE:/a", "FILE:/d1/**", "PORT:/", "TASK:/"]);
      send(world, { ...asked, type: "revoke", target: { resourcePrefix }, reason });
      return;
    }
    case "fence":
      send(world, { ...asked, type: "fence_resource", resource, reason });
      return;
    case "reset":
      return reset(world, tenant, fencedIn(world, tenant) ?? resource);
    case "withdraw":
      if (isPattern(resource) && random.chance(0.9)) return;
      send(world, { ...asked, type: "withdraw_resource", resource, revoke: random.chance(0.5) });
      return tryToExtend(world, tenant, resource);
    case "declare":
    case "capacity":
      return declare(world, tenant, resource, habit === "capacity");
    case "pause":
      send(world, { ...asked, type: "pause_agent", agentId: agent.id });
      return;
    case "unpause":
      send(world, { ...asked, type: "unpause_agent", agentId: pausedIn(world, tenant) ?? agent.id });
      return;
    case "suspend":
    case "resume":
      send(world, { ...asked, type: habit === "suspend" ? "suspend_tenant" : "resume_tenant", tenantId, reason });
      return;
    case "policy":
      send(world, { ...asked, type: "set_policy", policyId: "sim", policy: denial });
      send(world, { ...asked, type: "register_agent", agentId: "denied-1", labels: null });
      return;
    case "forgetEnds":
      send(world, { ...asked, type: "forget_ends", before: world.now - random.below(30_000), keep: random.below(40) });
      return;
    case "strategy": {
      const strategy = random.pick(["wait_die", "wound_wait"] as const);
      const before = world.store.tenant.get(tenantId)?.settings.strategy;
      const reply = send(world, { ...asked, type: "set_tenant_settings", tenantId, settings: { strategy } });
      if (reply.type === "tenant" && before !== strategy) count(counters, "strategy switched");
      return;
    }
    case "quotas": {
      const quotas = random.pick([
        { leasesMax: 4 },
        { leasesMax: 10_000 },
        { waitersMax: 100, patternsMax: 100 },
        { kinds: {} },
        { receiptsMax: 20 },
        { receiptsMax: 1_000_000, receiptBytesMax: 40_000 },
        { receiptsMax: 1_000_000, receiptBytesMax: 1_000_000_000 },
        { receiptsMax: 1_000_000, receiptBytesMax: 1_000_000_000 },
        { tenantLeaseTimeMsMax: random.pick([null, null, null, random.between(60_000, 5_000_000)]) },
      ]);
      send(world, { ...asked, type: "set_tenant_quotas", tenantId, quotas });
      return;
    }
    case "settings":
      send(world, {
        ...asked,
        type: "set_tenant_settings",
        tenantId,
        settings: random.pick([
          { claimWithinMs: random.between(1, 9_000) },
          { idleTimeoutMsByType: { FILE: random.between(100, 60_000) } },
          { idleTimeoutMsByType: {} },
        ]),
      });
      return;
    case "createKey": {
      const number = random.below(3);
      const role = number === 0 ? "worker" : "agent";
      const terms = { hash: "h", tenant: tenantId, label: null, scopes: null, expiresAt: null };
      const key = { id: `key-${number}`, role, ...terms } as const;
      send(world, { ...asked, type: "create_key", key });
      if (random.chance(0.2))
        send(world, { ...asked, type: "assign_name", keyId: key.id, name: { workerId: "never.polled" } });
      return;
    }
    case "deleteKey":
      send(world, { ...asked, type: "delete_key", keyId: `key-${random.below(3)}` });
      return;
  }
}

/** A bound resource is reset through its cell, whose probe has then seen it clean (G7). */
function reset(world: World, tenant: SimTenant, resource: string): void {
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  if (world.random.chance(0.1)) {
    send(world, { ...asked, type: "reset_resource", resource, probed: false });
    return;
  }
  settleInSlices(world);
  const isClosing = [...world.store.lease.values()].some(
    (one) => one.tenant === tenant.id && one.resource === resource,
  );
  if (!isClosing) cleanUp(world, tenant.id, resource);
  send(world, { ...asked, type: "reset_resource", resource, probed: true });
}

/** A lease of an agent, a task's own lease, or one of a task's manifest. */
function leaseToTake({ random, store }: World, { id }: SimTenant, known: readonly string[]): string {
  const ofTasks = [...store.lease.values()].filter((one) => one.tenant === id && one.holder !== one.agentId);
  if (ofTasks.length > 0 && random.chance(0.6)) return random.pick(ofTasks).id;
  return known.length > 0 ? random.pick(known) : "lse_none";
}

function repairOf(world: World, tenant: SimTenant): keyof typeof habits | null {
  if (world.store.tenant.get(tenant.id)?.suspended === true) return "resume";
  if (pausedIn(world, tenant) !== undefined) return "unpause";
  if (fencedIn(world, tenant) !== undefined) return "reset";
  return withdrawnIn(world, tenant) === undefined ? null : "declare";
}

/** The holder of what was withdrawn goes on as before (G12). */
function tryToExtend(world: World, tenant: SimTenant, resource: string): void {
  const lease = [...world.store.lease.values()].find((one) => one.tenant === tenant.id && one.resource === resource);
  if (lease === undefined) return;
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world), leaseId: lease.id, activity: true };
  send(world, { ...asked, type: "heartbeat" });
  send(world, { ...asked, type: "renew_lease", generation: null });
}

/** Declares a withdrawn resource again, or a counted one with more or fewer units. */
function declare(world: World, tenant: SimTenant, resource: string, changes: boolean): void {
  const { random, store, counters } = world;
  const name =
    changes && tenant.counted.length > 0 ? random.pick(tenant.counted) : (withdrawnIn(world, tenant) ?? resource);
  const before = store.resource.get(`${tenant.id} ${name}`) ?? null;
  const isCounted = changes ? tenant.counted.includes(name) : before?.capacity != null;
  const capacity = isCounted ? random.between(1, 5) : null;
  const cell = tenant.bound.includes(name) ? "cell-1" : null;
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  const reply = send(world, { ...asked, type: "declare_resource", refillMs: null, resource: name, capacity, cell });
  const isSmaller = capacity !== null && before?.capacity != null && capacity < before.capacity;
  if (isSmaller && reply.type === "resource") count(counters, "C6 capacity lowered");
}

function pausedIn({ store }: World, { id }: SimTenant): string | undefined {
  return [...store.agent.values()].find((one) => one.tenant === id && one.pausedByOperator)?.id;
}

/** A withdrawn pattern cannot be declared again and stays withdrawn, which is rare. */
function withdrawnIn({ store }: World, { id }: SimTenant): string | undefined {
  return [...store.resource.values()].find((one) => one.tenant === id && one.withdrawn && !isPattern(one.name))?.name;
}

function fencedIn({ store }: World, { id }: SimTenant): string | undefined {
  return [...store.resource.values()].find((one) => one.tenant === id && one.fenced)?.name;
}
