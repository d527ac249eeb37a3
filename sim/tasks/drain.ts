/**
 * No starvation (T7, T10, T12): once operators have reset everything, agents acquire nothing more, and workers with all
 * capabilities poll and complete, every task that can run ends after a bounded number of rounds.
 */

import { quotasDefault } from "../../src/kernel/contract/records.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import { nextDeadline } from "../../src/kernel/kernel.ts";
import { count } from "../counters.ts";
import { violated } from "../invariants/step.ts";
import { manifestFor } from "../manifests.ts";
import { send, settleInSlices } from "../send.ts";
import { entropyOf, operator, type SimAgent, type SimTenant, type World } from "../world.ts";
import { blankReceipt } from "./inputs.ts";
import { capabilities } from "./principals.ts";

export function drain(world: World): void {
  world.mail.length = 0;
  for (const tenant of world.tenants) putRight(world, tenant.id);
  if (world.seed % 16 === 2) competeForAll(world);
  const most = 200 + 20 * world.store.task.size;
  for (let round = 0; runnable(world).length > 0; round++) {
    if (round > most) violated("T10", `after ${most} rounds a task that can run has not run`, ...runnable(world));
    let done = 0;
    for (const tenant of world.tenants) done += workOnce(world, tenant.id);
    if (done === 0) passTime(world);
  }
  count(world.counters, "tasks drained");
}

/**
 * Agents go on acquiring, and every task that could run when this began must run: a manifest of which others always
 * hold a part gets its turn by age (T10).
 */
function competeForAll(world: World): void {
  for (const { id } of world.tenants) {
    // Crashed workers would keep their tasks, and the tasks' leases, for 15 minutes.
    const asked = { tenant: id, actor: operator, entropy: entropyOf(world) };
    send(world, { ...asked, type: "revoke", target: { resourcePrefix: "TASK:/" }, reason: "an exercise" });
  }
  const first = new Set(runnable(world).map(({ tenant, id }) => `${tenant} ${id}`));
  const left = (): Task[] => runnable(world).filter(({ tenant, id }) => first.has(`${tenant} ${id}`));
  for (let round = 0; left().length > 0; round++) {
    if (round > competingRoundsMax) violated("T10", `after ${round} rounds some tasks have not run`, ...left());
    for (const tenant of world.tenants) {
      for (const agent of tenant.agents.slice(0, 6)) takeOrLetGo(world, tenant, agent);
      workOnce(world, tenant.id);
    }
    world.now += world.random.between(1, 1_500);
    settleInSlices(world);
  }
  count(world.counters, "tasks drained among agents");
}

/** At 750 ms each on average, longer than the longest lease of a crashed agent: 300 s. */
const competingRoundsMax = 600;

function takeOrLetGo(world: World, tenant: SimTenant, agent: SimAgent): void {
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world), agentId: agent.id };
  if (world.random.chance(0.4)) send(world, { ...asked, type: "release_all", leaseIds: null, versions: null });
  else
    send(world, { ...manifestFor(world, tenant, agent, operator), ttlMs: 3_000, waitTimeoutMs: 1_000, dryRun: false });
}

function putRight(world: World, tenantId: string): void {
  const asked = { tenant: tenantId, actor: operator };
  send(world, { ...asked, entropy: entropyOf(world), type: "resume_tenant", tenantId, reason: null });
  send(world, { ...asked, entropy: entropyOf(world), type: "set_tenant_quotas", tenantId, quotas: quotasDefault });
}

/** Tasks that only need a worker, or time, to run. */
function runnable({ store }: World): Task[] {
  return [...store.task.values()].filter(({ status, tenant, spec, waitingOn }) => {
    if (status !== "queued" && status !== "retry_pending") return false;
    const names = spec.intents.flatMap(({ resource, to }) => (to === null ? [resource] : [resource, to]));
    return waitingOn.length === 0 && !isBarred(store, tenant, names, spec);
  });
}

/** Whether the manifest touches or chooses from what is fenced, withdrawn or bound, which no command in this file repairs. */
function isBarred(store: World["store"], tenant: string, names: readonly string[], { intents }: Task["spec"]): boolean {
  if (names.length === 0) return false;
  if (intents.some(({ pick }) => pick !== null)) return true;
  for (const resource of store.resource.values()) {
    if (resource.tenant !== tenant) continue;
    // Which names a fence covers (C4) is checked elsewhere; here any overlap counts.
    if (resource.fenced || resource.withdrawn) return true;
    if (resource.cell !== null && names.includes(resource.name)) return true;
    const units = intents.reduce((sum, one) => sum + (one.resource === resource.name ? one.units : 0), 0);
    const alsoTo = intents.reduce((sum, one) => sum + (one.to === resource.name ? one.units : 0), 0);
    if (resource.capacity !== null && units + alsoTo > resource.capacity) return true;
  }
  return false;
}

function workOnce(world: World, tenant: string): number {
  const asked = { tenant, actor: operator };
  const reply = send(world, {
    ...asked,
    entropy: entropyOf(world),
    type: "poll_tasks",
    workerId: "drainer.1",
    capabilities,
    maxTasks: 3,
    preferredKinds: null,
    requestKey: null,
    reclaim: false,
  });
  if (reply.type !== "offers") violated("T1", "a poll was refused", reply);
  for (const { task, lease } of reply.offers) {
    for (const [phase, status] of [
      ["accepted", null],
      ["complete", "success"],
    ] as const) {
      const receipt = { ...blankReceipt(phase, task.id), leaseId: lease.id, status };
      const stored = send(world, { ...asked, entropy: entropyOf(world), type: "submit_receipt", receipt });
      if (stored.type !== "receipt") violated("T3", `a worker's ${phase} receipt was refused`, stored, task);
    }
  }
  return reply.offers.length;
}

function passTime(world: World): void {
  const next = nextDeadline(world.state);
  // At most 30 s: there are deadlines in a week, and a task may wait for a shorter one that appears meanwhile.
  world.now = Math.max(world.now + 1, next === Number.POSITIVE_INFINITY ? 0 : Math.min(next, world.now + 30_000));
  settleInSlices(world);
}
