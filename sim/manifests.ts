/** Random manifests: mostly one file, sometimes several files, a rename, units, or a broad pattern. */
import type { Acquire, Actor } from "../src/kernel/contract/commands.ts";
import type { IntentInput } from "../src/kernel/contract/inputs.ts";
import { entropyOf, type SimAgent, type SimTenant, type World } from "./world.ts";

const purposes = [null, null, "rename login()", "run the tests"];

export function manifestFor(world: World, tenant: SimTenant, agent: SimAgent, actor: Actor): Acquire {
  const { random } = world;
  return {
    type: "acquire",
    tenant: tenant.id,
    actor,
    entropy: entropyOf(world),
    agentId: agent.id,
    intents: intentsFor(world, tenant),
    ttlMs: random.pick([null, null, random.pick([100, 1_000]), 3_000, 8_000, 20_000, 60_000, 400_000]),
    waitTimeoutMs: random.pick([null, null, 0, 50, 1_000, 6_000, 40_000, 700_000]),
    standbyMs: random.chance(0.3) ? random.pick([1, 500, 5_000, 55_000]) : 0,
    idleTimeoutMs: random.chance(0.15) ? random.pick([100, 2_000, 9_000]) : null,
    purpose: random.pick(purposes),
    tokens: random.chance(0.2),
    dryRun: random.chance(0.06),
    requestKey: random.chance(0.45) ? `key-${random.below(2 ** 30)}` : null,
  };
}

function intentsFor(world: World, tenant: SimTenant): IntentInput[] {
  const { random, size } = world;
  const howMany = random.pick(size === "small" ? [1, 1, 1, 2, 2, 3] : [1, 1, 1, 1, 2, 3, 6]);
  const intents = new Map<string, IntentInput>();
  for (let nth = 0; nth < howMany; nth++) {
    const intent = intentFor(world, tenant);
    intents.set(`${intent.predicate} ${intent.resource} ${intent.to ?? ""}`, intent);
  }
  return [...intents.values()];
}

function intentFor(world: World, tenant: SimTenant): IntentInput {
  const { random } = world;
  const predicate = random.pick([
    "PROVIDES",
    "CONSUMES",
    "CONSUMES",
    "CONSUMES",
    "MUTATES",
    "MUTATES",
    "DELETES",
    "DEPENDS_ON",
    "RENAMES",
  ]);
  const resource = nameFor(world, tenant);
  const units = tenant.counted.includes(resource) ? random.pick([null, 1, 1, 2, 2, 3, 6]) : null;
  // `pick` needs a pattern with declared resources below it.
  const isChoice = resource.includes("*") && tenant.counted.length + tenant.bound.length > 0 && random.chance(0.5);
  if (isChoice && predicate !== "RENAMES")
    return { predicate, resource, units: random.pick([1, 1, 2]), to: null, pick: "any" };
  const target = predicate === "RENAMES" ? tenant.names.find((name) => name !== resource) : undefined;
  return predicate === "RENAMES" && target === undefined
    ? { predicate: "MUTATES", resource, units, to: null }
    : { predicate, resource, units, to: target ?? null };
}

/** In a large world the first few names are drawn most often, so that conflicts occur. */
function nameFor({ random, size }: World, { names }: SimTenant): string {
  if (size === "small" || random.chance(0.3)) return random.pick(names);
  return names[Math.min(random.below(names.length), random.below(names.length))] ?? random.pick(names);
}
