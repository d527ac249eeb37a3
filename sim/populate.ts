/** What a world consists of, drawn from its seed: small worlds for many conflicts, large ones for many commands. */
import { predicates } from "../src/kernel/contract/predicates.ts";
import type { TenantQuotas, TenantSettings } from "../src/kernel/contract/records.ts";
import { openPolicy } from "../src/kernel/testing/test-world.ts";
import { openCells } from "./hosting.ts";
import { send } from "./send.ts";
import { staff } from "./tasks/workers.ts";
import { entropyOf, operator, type SimAgent, type SimTenant, type World } from "./world.ts";

const smallNames = [
  "FILE:/a",
  "FILE:/a/b",
  "FILE:/a/b/c",
  "FILE:/d",
  "FILE:/a/**",
  "FILE:/**",
  "FILE:/*/b",
  "FILE:/**/c",
  "FILE:/a/?",
  "FILE:/*",
  "GPU:/x",
  "GPU:/*",
  "PORT:/p",
  "PORT:/q",
  "PORT:/**",
];
const smallCounted = ["GPU:/x", "PORT:/q"];
const smallBound = ["PORT:/p", "PORT:/q"];

/** Sends the commands that set it up; two tenants of one world use the same names and the same agents' ids. */
export function populate(world: World): void {
  const { random, size } = world;
  const tenants = size === "large" || random.chance(0.3) ? 2 : 1;
  const names = size === "small" ? smallNamesOf(world) : largeNames(world);
  const counted = names.filter((name) => (size === "small" ? smallCounted.includes(name) : name.startsWith("GPU:/n")));
  const bound = names.filter((name) => (size === "small" ? smallBound.includes(name) : name.startsWith("PORT:/n")));
  const agents = size === "small" ? random.between(3, 6) : random.between(100, 160);
  for (let index = 0; index < tenants; index++) {
    const tenant: SimTenant = {
      id: `t${index}`,
      names,
      counted,
      bound,
      agents: [],
      workers: [],
      created: [],
      taskIds: [],
    };
    world.tenants.push(tenant);
    found(world, tenant);
    for (let nth = 0; nth < agents; nth++) register(world, tenant, `agent-${nth}`);
    if (world.hasTasks) staff(world, tenant);
  }
}

function found(world: World, tenant: SimTenant): void {
  const { random } = world;
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  send(world, { ...asked, type: "create_tenant", tenantId: tenant.id });
  send(world, { ...asked, ...openPolicy });
  send(world, { ...asked, type: "set_tenant_settings", tenantId: tenant.id, settings: settingsFor(world) });
  if (random.chance(0.3))
    send(world, { ...asked, type: "set_tenant_quotas", tenantId: tenant.id, quotas: quotasFor(world) });
  for (const resource of new Set([...tenant.counted, ...tenant.bound])) {
    const capacity = tenant.counted.includes(resource) ? random.between(1, 5) : null;
    const cell = tenant.bound.includes(resource) ? "cell-1" : null;
    send(world, { ...asked, type: "declare_resource", refillMs: null, resource, capacity, cell });
  }
  openCells(world, tenant);
}

function register(world: World, tenant: SimTenant, id: string): void {
  const labels = world.random.chance(0.2) ? { role: "builder" } : null;
  const actor = { role: "agent", agentId: null, epoch: null } as const;
  send(world, { type: "register_agent", tenant: tenant.id, actor, entropy: entropyOf(world), agentId: id, labels });
  tenant.agents.push(createAgent(tenant.id, id));
}

export function createAgent(tenant: string, id: string): SimAgent {
  return {
    tenant,
    id,
    epoch: 1,
    leases: [],
    requests: [],
    sent: [],
    zombies: [],
    crashed: false,
    hasDigest: false,
  };
}

function settingsFor({ random }: World): Partial<TenantSettings> {
  const strategy = random.chance(0.5) ? "wait_die" : "wound_wait";
  if (random.chance(0.5)) return { strategy };
  const claimWithinMs = random.pick([1, 500, 4_000]);
  return { strategy, claimWithinMs, ttlMsDefault: 8_000, ttlMsMax: 30_000, waitTimeoutMsDefault: 5_000 };
}

/** Low enough to be reached sometimes. */
function quotasFor({ random, size }: World): Partial<TenantQuotas> {
  const factor = size === "small" ? 1 : 40;
  return random.pick<Partial<TenantQuotas>>([
    { leasesMax: 6 * factor },
    { waitersMax: 1 * factor },
    { patternsMax: 2 * factor },
    { leaseTimeMsMax: 12_000 },
    { tenantLeaseTimeMsMax: 200_000 * factor },
    { kinds: { FILE: 4 * factor, GPU: 3 * factor, PORT: 2 * factor } },
    { resourcesMax: 4 * factor, agentsMax: 200 },
  ]);
}

/** Few names, so that requests conflict; in every other world one of them is bound to a cell. */
function smallNamesOf(world: World): string[] {
  const some = someOf(world, smallNames, world.random.between(2, 5));
  return world.random.chance(0.5) ? some : [...new Set([...some.slice(1), world.random.pick(smallBound)])];
}

function largeNames({ random }: World): string[] {
  const names: string[] = [];
  const folders = random.between(6, 14);
  for (let folder = 0; folder < folders; folder++) {
    for (let file = 0; file < 8; file++) names.push(`FILE:/d${folder}/f${file}`);
    names.push(`FILE:/d${folder}/**`, `FILE:/d${folder}/s/f1`);
  }
  names.push("FILE:/**", "FILE:/*/f1", "FILE:/**/f1", "FILE:/d?/f2", "DB:/users", "DB:/orders", "DB:/*");
  for (let nth = 0; nth < 3; nth++) names.push(`GPU:/n${nth}`, `PORT:/n${nth}`);
  return [...names, "GPU:/*", "PORT:/*"];
}

function someOf<T>({ random }: World, list: readonly T[], howMany: number): T[] {
  const left = [...list];
  const chosen: T[] = [];
  while (chosen.length < howMany) chosen.push(...left.splice(random.below(left.length), 1));
  return chosen;
}

export function anyPredicate({ random }: World): string {
  return random.pick(predicates);
}
