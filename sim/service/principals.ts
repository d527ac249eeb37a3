/**
 * Principals create tasks, repeating each creation until they have its id; some cancel. Agents compete for the files.
 */
import type { TaskInput } from "../../src/kernel/contract/task-commands.ts";
import { count } from "../counters.ts";
import { blankTask } from "../tasks/inputs.ts";
import { attempt, insist } from "./network.ts";
import type { ServiceWorld } from "./service-world.ts";

const files = 24;

export async function createTasks(world: ServiceWorld, first: number, howMany: number): Promise<void> {
  const { random, time, service, created } = world;
  for (let nth = first; nth < first + howMany; nth++) {
    const key = `task ${nth}`;
    const input = taskFor(world, nth, key);
    const reply = await insist(world, () => service.create(input));
    const id = reply.type === "task" ? reply.task.id : null;
    if (id === null) throw new Error(`a task was refused: ${JSON.stringify(reply)}`);
    const ids = created.get(key) ?? new Set();
    created.set(key, ids.add(id));
    if (random.chance(0.02)) void time.sleep(random.between(1, 20_000)).then(() => cancel(world, id));
    await time.sleep(random.between(1, 120));
  }
}

function taskFor({ random, created }: ServiceWorld, nth: number, idempotencyKey: string): TaskInput {
  const intents = random.chance(0.4)
    ? Array.from({ length: random.between(1, 2) }, () => `FILE:/f${random.below(files)}`)
    : [];
  const [before] = created.get(`task ${nth - random.between(1, 5)}`) ?? [];
  return {
    ...blankTask(random.pick(["build", "test"]), "lead"),
    taskBody: random.chance(0.2) ? "what to do" : null,
    intents: [...new Set(intents)].map((resource) => ({ predicate: "MUTATES", resource })),
    leaseDurationMs: random.pick([3_000, 6_000]),
    requeueDelayMs: random.pick([0, 500, 3_000]),
    taskPriority: random.pick([null, null, 5]),
    dependsOn: before !== undefined && random.chance(0.05) ? [before] : null,
    concurrencyKey: random.chance(0.1) ? "few" : null,
    concurrencyLimit: null,
    speculative: intents.length === 0 && random.chance(0.1) ? true : null,
    preemptible: random.chance(0.2),
    idempotencyKey,
  };
}

async function cancel(world: ServiceWorld, taskId: string): Promise<void> {
  const reply = await attempt(world, () => world.service.command({ type: "cancel_task", taskId, reason: null }));
  if (reply?.type === "task") count(world.counters, "principals: cancelled");
}

/** Redrives dead tasks from time to time. */
export async function redriveSome(world: ServiceWorld): Promise<void> {
  const { random, time, service } = world;
  while (!world.isOver) {
    await time.sleep(random.between(5_000, 40_000));
    if (!service.isServing || world.isCalm) continue;
    const dead = await service
      .ask(({ tenants }) =>
        [...(tenants.get("default")?.tasks.values() ?? [])].find(({ record }) => record.status === "dead"),
      )
      .catch(() => undefined);
    if (dead === undefined || random.chance(0.4)) continue;
    const reply = await attempt(world, () => service.command({ type: "redrive_task", taskId: dead.record.id }));
    if (reply?.type === "task") count(world.counters, "principals: redriven");
  }
}

/** An agent that takes a file for a moment, so that tasks have to wait, and late results are contested. */
export async function runAgent(world: ServiceWorld, agentId: string): Promise<void> {
  const { random, time, service } = world;
  await insist(world, () => service.command({ type: "register_agent", agentId, labels: null }));
  for (let nth = 0; !world.isOver; nth++) {
    await time.sleep(random.between(100, 3_000));
    if (world.isCalm) continue;
    const resource = `FILE:/f${random.below(files)}`;
    const reply = await attempt(world, () =>
      service.command({
        type: "acquire",
        agentId,
        intents: [{ predicate: "MUTATES", resource }],
        ttlMs: random.pick([500, 4_000]),
        waitTimeoutMs: 2_000,
        standbyMs: 0,
        idleTimeoutMs: null,
        purpose: null,
        tokens: false,
        dryRun: false,
        requestKey: `${agentId} ${nth}`,
      }),
    );
    if (reply?.type === "granted") {
      count(world.counters, "agents: granted");
      await time.sleep(random.between(50, 800));
      await attempt(world, () => service.command({ type: "release_all", agentId, leaseIds: null, versions: null }));
    }
  }
}
