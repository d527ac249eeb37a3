/**
 * Runs N tasks through the real engine, while commits fail, processes die and the network drops, delays and repeats. In
 * the end each task is done exactly once or is a dead letter, and every acknowledged receipt is in the ledger.
 */
import type { Counters } from "../counters.ts";
import { checkService } from "./checks.ts";
import { trouble } from "./faults.ts";
import { createTasks, redriveSome, runAgent } from "./principals.ts";
import { createServiceWorld, type ServiceWorld } from "./service-world.ts";
import { runWorker } from "./workers.ts";

const workers = 14;
const agents = 3;
const creators = 4;
/** Simulated time per task: far more than it takes. */
const msPerTask = 60_000;
/** A stopped worker and the network together delay a message by less. */
const lateMsMax = 120_000;

export interface ServiceReport {
  readonly tasks: number;
  readonly simulatedMs: number;
  readonly receipts: number;
  readonly dead: number;
}

export async function runService(seed: number, tasks: number, counters: Counters): Promise<ServiceReport> {
  const world = createServiceWorld(seed, counters);
  const { time, service } = world;
  await service.start();
  const began = time.now;
  const creating = begin(world, tasks);
  const end = began + 600_000 + tasks * msPerTask;
  await pass(world, creating, end);
  await drain(world, tasks, end);
  world.isOver = true;
  await pass(world, time.sleep(120_000), end + 600_000);
  const report = await checkService(world, tasks);
  await service.close();
  return { tasks, simulatedMs: time.now - began, ...report };
}

/** Starts all clients; resolves when all tasks are created. */
async function begin(world: ServiceWorld, tasks: number): Promise<void> {
  const { onFault } = world;
  for (let nth = 0; nth < workers; nth++) runWorker(world, `worker.${nth}`).catch(onFault);
  for (let nth = 0; nth < agents; nth++) runAgent(world, `agent-${nth}`).catch(onFault);
  trouble(world).catch(onFault);
  redriveSome(world).catch(onFault);
  const share = Math.ceil(tasks / creators);
  const shares = Array.from({ length: creators }, (_, nth) => Math.max(0, Math.min(share, tasks - nth * share)));
  await Promise.all(shares.map((howMany, nth) => createTasks(world, nth * share, howMany)));
}

/**
 * Faults go on until few tasks are left; then there are none, and every task that can end must end. What was sent before
 * that may arrive late, and a late result or a redrive makes more tasks ready.
 */
async function drain(world: ServiceWorld, tasks: number, end: number): Promise<void> {
  const calmAt = world.time.now + 300_000 + tasks * 200;
  let calmSince = Number.POSITIVE_INFINITY;
  for (;;) {
    const left = await unfinished(world);
    if (left.length === 0 && world.time.now - calmSince > lateMsMax) return;
    if (world.time.now > end) throw new Error(`tasks never ended: ${left.slice(0, 5).join(", ")}`);
    if (!world.isCalm && (left.length < 10 || world.time.now > calmAt)) {
      world.isCalm = true;
      calmSince = world.time.now;
    }
    await pass(world, world.time.sleep(5_000), end + 600_000);
  }
}

/** Tasks that are neither ended nor dead, and do not depend on a dead one. */
async function unfinished(world: ServiceWorld): Promise<string[]> {
  for (;;) {
    await serving(world);
    try {
      return await world.service.ask(({ tenants }) => {
        const tasks = tenants.get("default")?.tasks;
        const isStuck = (id: string): boolean => {
          const record = tasks?.get(id)?.record;
          if (record === undefined) return false;
          return record.status === "dead" || record.waitingOn.some(isStuck);
        };
        return [...(tasks?.values() ?? [])].flatMap(({ record }) =>
          isStuck(record.id) ? [] : [`${record.id} ${record.status}`],
        );
      });
    } catch {
      // The commit that this read waited for failed; read again.
    }
  }
}

/** Lets time pass until the store is open again. */
async function serving({ time, service }: ServiceWorld): Promise<void> {
  for (await turn(); !service.isServing; await turn()) {
    if (!time.step()) throw new Error("the store is not opened again, and no timer is left");
  }
}

/** Lets time pass until the promise is settled. */
async function pass(world: ServiceWorld, until: Promise<void>, end: number): Promise<void> {
  const { time, service } = world;
  let isDone = false;
  until.then(
    () => {
      isDone = true;
    },
    (fault: unknown) => world.onFault(fault),
  );
  await turn();
  while (!isDone) {
    if (world.fault !== null) throw world.fault;
    if (time.now > end) throw new Error("not finished in time: a client waits for something that never happens");
    if (!time.step()) throw new Error("not finished, and no timer is left");
    const { crash } = world;
    if (crash !== null && service.underWay > 0) {
      world.crash = null;
      await crash();
    }
    do await turn();
    while (service.underWay > 0);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
