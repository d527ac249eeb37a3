import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { KernelEvent } from "../../src/kernel/contract/events.ts";
import { mutates, serve } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireOffer, WireOpenRequest, WireTask } from "./wire-types.ts";

/** The same numbers each time. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const workersCount = 20;
const tasksCount = 500;
const filesCount = 60;

/** Files that overlap, sometimes a whole folder or everything. */
function overlappingTasks(count: number, random: (below: number) => number) {
  const file = () => `FILE:/src/d${random(6)}/f${random(filesCount)}.ts`;
  return Array.from({ length: count }, (_, index) => {
    const names = [...new Set(Array.from({ length: 1 + random(4) }, file))];
    const wanted = index === 100 ? ["FILE:/src/**"] : index % 50 === 0 ? [`FILE:/src/d${random(6)}/**`] : names;
    return { task_type: "edit", principal_ai: "lead", intents: mutates(...wanted), lease_duration_ms: 60_000 };
  });
}

function overlap(a: string, b: string): boolean {
  const covers = (pattern: string, name: string) => pattern.endsWith("**") && name.startsWith(pattern.slice(0, -2));
  return a === b || covers(a, b) || covers(b, a);
}

async function serveTasks(t: TestContext) {
  const server = await serve(t);
  const random = randomFrom(20_261_116);
  const died: KernelEvent[] = [];
  server.service.engine.subscribe((events) => {
    for (const { event } of events) if (event.type === "request.died") died.push(event);
  });
  const tasks = overlappingTasks(tasksCount, random);
  const { body } = await server.post<{ results: readonly { status: number }[] }>("/v1/tasks/batch", { tasks });
  assert.ok(body.results.every(({ status }) => status === 201));
  const assertOver = async (): Promise<void> => {
    assert.deepEqual(died, []);
    const { body: left } = await server.get<{ tasks: readonly WireTask[] }>("/v1/tasks?status=queued");
    assert.deepEqual(left.tasks, []);
    const { body: ended } = await server.get<{ tasks: readonly WireTask[] }>("/v1/tasks?status=succeeded&limit=1000");
    assert.equal(ended.tasks.length, tasksCount);
    const { body: leases } = await server.get<{ leases: readonly unknown[] }>("/v1/leases");
    assert.deepEqual(leases.leases, []);
  };
  return { server, random, assertOver };
}

test("T10: 20 workers on 500 tasks with overlapping files never conflict, never die and never deadlock", async (t) => {
  const { server, random, assertOver } = await serveTasks(t);
  const { poll, accept, complete } = taskClientOf(server);
  const held = new Map<string, string>();
  let done = 0;
  const work = async (workerId: string): Promise<void> => {
    while (done < tasksCount) {
      const offer = await poll(workerId, { hold_ms: 200 });
      if (offer === null) continue;
      const names = (offer.leases ?? []).map(({ resource }) => resource);
      for (const name of names) {
        for (const [other, by] of held) assert.ok(!overlap(name, other), `${name} and ${other} of ${by} at once`);
      }
      for (const name of names) held.set(name, workerId);
      await accept(offer);
      await new Promise((resolve) => setTimeout(resolve, random(4)));
      for (const name of names) held.delete(name);
      await complete(offer);
      done++;
    }
  };
  await Promise.all(Array.from({ length: workersCount }, (_, index) => work(`worker.${index}`)));
  await assertOver();
});

test("T10: whenever a worker gets nothing, every queued task conflicts with a running task or a waiter ahead of it", async (t) => {
  const { server, random, assertOver } = await serveTasks(t);
  const { poll, accept, complete } = taskClientOf(server);
  const idle = Array.from({ length: workersCount }, (_, index) => `worker.${index}`);
  const running: { readonly workerId: string; readonly offer: WireOffer }[] = [];
  let looked = 0;
  let most = 0;
  /** Read over HTTP only: queued tasks, leases and waiting requests. */
  const assertNothingCouldRun = async (): Promise<void> => {
    const { body: queued } = await server.get<{ tasks: readonly WireTask[] }>("/v1/tasks?status=queued&limit=1000");
    const { body: open } = await server.get<{ requests: readonly WireOpenRequest[] }>("/v1/requests?limit=1000");
    const taken = running.flatMap(({ offer }) => offer.leases?.map(({ resource }) => resource) ?? []);
    const awaited = open.requests.flatMap(({ intents }) => intents.map(({ resource }) => resource));
    for (const { task_id: id, intents } of queued.tasks) {
      const isBlocked = intents.some(({ resource }) =>
        [...taken, ...awaited].some((other) => overlap(resource, other)),
      );
      assert.ok(isBlocked, `${id} could run, and a worker got nothing`);
    }
    looked++;
  };
  for (let done = 0; done < tasksCount; done++) {
    for (let workerId = idle.pop(); workerId !== undefined; workerId = idle.pop()) {
      const offer = await poll(workerId);
      if (offer === null) {
        idle.push(workerId);
        if (looked < 40 || done % 20 === 0) await assertNothingCouldRun();
        break;
      }
      await accept(offer);
      running.push({ workerId, offer });
    }
    most = Math.max(most, running.length);
    const [ended] = running.splice(random(running.length), 1);
    assert.ok(ended !== undefined, "something runs as long as anything is left");
    await complete(ended.offer);
    idle.push(ended.workerId);
  }
  t.diagnostic(`looked ${looked} times at what was queued; up to ${most} of ${workersCount} workers were busy`);
  assert.ok(looked > 0);
  await assertOver();
});

test("T10: as many workers are busy as there are tasks without conflicts", async (t) => {
  const server = await serve(t);
  const { create, poll } = taskClientOf(server);
  for (let index = 0; index < 100; index++) await create({ intents: mutates(`FILE:/f${index % 25}`) });
  const offers = await Promise.all(Array.from({ length: 30 }, (_, index) => poll(`worker.${index}`)));
  const names = offers.flatMap((offer) => offer?.leases?.map(({ resource }) => resource) ?? []);
  assert.equal(names.length, 25, "25 files, 25 at work");
  assert.equal(new Set(names).size, 25);
});

test("T10: a task with a large manifest does not starve among many small ones", async (t) => {
  const server = await serve(t);
  const { create, poll, accept, complete } = taskClientOf(server);
  const small = () => create({ task_type: "small", intents: mutates(`FILE:/a/f${Math.floor(Math.random() * 20)}`) });
  for (let index = 0; index < 20; index++) await small();
  const running = [];
  for (let index = 0; index < 4; index++) running.push(await poll(`worker.${index}`));
  const large = await create({ task_type: "large", task_priority: 10, intents: mutates("FILE:/a/**") });
  let isDone = false;
  for (let round = 0; round < 400 && !isDone; round++) {
    await small();
    const offer = running.shift();
    if (offer !== null && offer !== undefined) {
      await accept(offer);
      await complete(offer);
      isDone = offer.task.task_id === large;
    }
    running.push(await poll(`worker.${round % 4}`));
  }
  assert.ok(isDone, "the large one was done while small ones kept coming");
});
