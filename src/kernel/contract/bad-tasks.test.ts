import assert from "node:assert/strict";
import { test } from "node:test";
import { createTaskWorld, type TaskWish, type TaskWorld, type taskRefusals } from "../testing/tasks-world.ts";
import { type Ask, actor, found, intentOf, type World } from "../testing/test-world.ts";
import { limits } from "./limits.ts";
import type { RefusalCode } from "./refusals.ts";

/** A world in which w.1 works on a task and was offered another, a third waits for a resource, and a fourth is dead. */
function createBusyWorld() {
  const world = createTaskWorld("a");
  world.grant("a", "MUTATES FILE:/taken");
  const dead = world.create({ maxOffers: 1, taskPriority: 900 });
  world.giveBack(world.offered("w.1"));
  world.create({ idempotencyKey: "k", concurrencyKey: "c", taskPriority: 800 });
  const running = world.start("w.1");
  world.submit("progress", running, { dedupeKey: "d", receiptId: "given" });
  world.create({ taskPriority: 700 });
  const offered = world.offered("w.1");
  const waiting = world.create({ intents: "MUTATES FILE:/taken" });
  world.idles("w.2");
  return { world, dead, running, offered, waiting };
}
type Busy = ReturnType<typeof createBusyWorld>;

const many = (count: number) => "x".repeat(count);
const bad = (world: TaskWorld, wish: TaskWish): Ask => world.creation(wish);
const numbers = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];

/** By code: how to get it. Each way is tried in a world of its own, and must change nothing. */
const ways: Readonly<Record<(typeof taskRefusals)[number], (busy: Busy) => readonly Ask[]>> = {
  invalid_worker_id: ({ world }) => ["", "w", "w.", ".1", "w 1.1"].map((id) => world.polling(id)),
  invalid_task: ({ world, running }) => [
    bad(world, { taskType: "" }),
    bad(world, { taskType: many(limits.idLengthMax + 1) }),
    bad(world, { taskType: "a\nb" }),
    bad(world, { principalAi: "" }),
    bad(world, { taskSummary: many(limits.receiptTextMax + 1) }),
    bad(world, { taskBody: many(limits.taskBodyBytesMax + 1) }),
    bad(world, { taskBody: "é".repeat(limits.taskBodyBytesMax / 2 + 1) }),
    bad(world, { inputs: many(limits.inputsBytesMax - 1) }),
    bad(world, { payloadPointer: "" }),
    bad(world, { requires: [""] }),
    bad(world, { requires: ["a\nb"] }),
    bad(world, { requires: Array.from({ length: limits.taskRequiresMax + 1 }, (_, n) => `r${n}`) }),
    bad(world, { dependsOn: Array.from({ length: limits.taskDependsOnMax + 1 }, (_, n) => `T-${n}`) }),
    bad(world, { concurrencyKey: "" }),
    bad(world, { concurrencyLimit: 2 }),
    bad(world, { idempotencyKey: "" }),
    bad(world, { speculative: true, intents: "MUTATES FILE:/a" }),
    ...numbers.flatMap((number) => [
      bad(world, { delayMs: number }),
      bad(world, { maxAttempts: number }),
      bad(world, { maxOffers: number }),
      bad(world, { leaseDurationMs: number }),
      bad(world, { requeueDelayMs: number }),
      bad(world, { concurrencyKey: "k", concurrencyLimit: number }),
      world.polling("w.1", { maxTasks: number }),
    ]),
    bad(world, { taskPriority: limits.taskPriorityMax + 1 }),
    bad(world, { taskPriority: -limits.taskPriorityMax - 1 }),
    bad(world, { maxAttempts: 0 }),
    world.polling("w.9", { capabilities: Array.from({ length: limits.workerCapabilitiesMax + 1 }, (_, n) => `c${n}`) }),
    { type: "heartbeat_task", leaseId: running.lease.id, progress: many(limits.metadataBytesMax) },
    { type: "set_task_type", taskType: "", settings: {} },
    { type: "set_task_type", taskType: "build", settings: { maxAttempts: 0 } },
    { type: "set_task_type", taskType: "build", settings: { leaseDurationMs: limits.ttlMsMin - 1 } },
    { type: "set_task_type", taskType: "build", settings: { speculateShare: 0 } },
    { type: "set_task_type", taskType: "build", settings: { speculateShare: Number.NaN } },
  ],
  invalid_receipt: ({ world, running }) => [
    world.receipt("done", running),
    world.receipt("complete", running, { status: "perhaps" }),
    world.receipt("progress", running, { tenantId: "t2" }),
    world.receipt("progress", running, { taskId: null, leaseId: null }),
    world.receipt("escalate", running),
  ],
  task_unknown: ({ world }) => [
    world.receipt("accepted", "T-never"),
    { type: "cancel_task", taskId: "T-never", reason: null },
    { type: "redrive_task", taskId: "" },
  ],
  dependency_unknown: ({ world, dead }) => [
    bad(world, { dependsOn: ["T-never"] }),
    bad(world, { dependsOn: [dead, "T-never", "__proto__"] }),
  ],
  complete_without_accept: ({ world, offered }) => [
    world.receipt("complete", offered, { status: "success" }),
    world.receipt("progress", offered),
  ],
  already_completed: ({ world, running }) => {
    world.cancelTask(running.task.id);
    return [
      world.receipt("complete", running, { status: "success" }),
      world.receipt("accepted", running.task.id),
      world.receipt("progress", running.task.id, { leaseId: "lse_other" }),
    ];
  },
  stale_fence: ({ world, running, waiting }) => [
    world.receipt("complete", running.task.id, { status: "success", fence: 1 }),
    world.receipt("complete", waiting, { status: "success", leaseId: "lse_other" }),
  ],
  dedupe_conflict: ({ world, running, offered }) => [
    world.receipt("progress", running, { dedupeKey: "d", outcomeText: "other" }),
    world.receipt("accepted", offered, { receiptId: "given" }),
  ],
  idempotency_key_reused: ({ world }) => [bad(world, { idempotencyKey: "k" })],
  task_not_dead: ({ running, waiting }) => [
    { type: "redrive_task", taskId: running.task.id },
    { type: "redrive_task", taskId: waiting },
  ],
  obligation_unknown: () => [{ type: "recover_obligation", obligationId: "obl_none", custodian: "boss", reason: "x" }],
  obligation_not_overdue: ({ world, running, dead }) =>
    [running.task.id, dead].map((id) => {
      const obligationId = found(world.task(id).obligation, id).id;
      return { type: "recover_obligation", obligationId, custodian: "boss", reason: "x" };
    }),
  quota_exceeded: ({ world, offered, running }) => {
    world.quotas({ receiptsMax: 2 });
    return [world.receipt("accepted", offered), world.receipt("progress", running)];
  },
  tenant_suspended: ({ world }) => {
    world.suspend();
    return [bad(world, {})];
  },
};

/** The codes of leases and agents, where tasks are refused with them. */
const others: Readonly<Partial<Record<RefusalCode, (busy: Busy) => readonly Ask[]>>> = {
  forbidden: ({ world, dead, running }) => [
    { ...world.creation(), actor: actor("reader") },
    { type: "cancel_task", actor: world.as("a"), taskId: running.task.id, reason: null },
    { type: "redrive_task", actor: actor("reader"), taskId: dead },
    { type: "set_task_type", actor: actor("worker"), taskType: "x", settings: {} },
    world.polling("w.9", { actor: actor("reader") }),
    world.polling("w.9", { actor: world.as("a") }),
    world.polling("w.1", { actor: world.as("a") }),
  ],
  not_lease_holder: ({ world, running }) => [
    { type: "heartbeat_task", actor: world.as("a"), leaseId: running.lease.id, progress: null },
    { type: "release_task", actor: actor("reader"), leaseId: running.lease.id },
    world.receipt("complete", running, { status: "success" }, world.as("a")),
    world.receipt("complete", running.task.id, { status: "success", sourceSystem: "w.2" }),
  ],
  lease_unknown: ({ world }) => [
    { type: "heartbeat_task", leaseId: "lse_never", progress: null },
    { type: "release_task", leaseId: agentsLease(world) },
    { type: "heartbeat_task", leaseId: agentsLease(world), progress: null },
  ],
  lease_expired: ({ world, dead, waiting }) => [
    world.receipt("accepted", dead, { sourceSystem: "w.1" }),
    world.receipt("progress", waiting),
  ],
  lease_denied: ({ world }) => {
    world.quotas({ tasksMax: world.tasks().length });
    return [bad(world, {})];
  },
  transfer_refused: ({ running }) => [
    { type: "transfer_lease", version: null, leaseId: running.lease.id, toAgentId: "a" },
    { type: "downgrade_lease", version: null, leaseId: running.lease.id, predicate: "CONSUMES" },
  ],
  invalid_reason: ({ running }) => [
    { type: "cancel_task", taskId: running.task.id, reason: many(limits.reasonLengthMax + 1) },
  ],
  invalid_request_id: ({ world }) => [
    world.polling("w.1", { requestKey: "" }),
    world.polling("w.9", { requestKey: many(limits.keyLengthMax + 1) }),
  ],
  reserved_resource: ({ world }) => [bad(world, { intents: "MUTATES TASK:/1" })],
  invalid_resource: ({ world }) => [bad(world, { intents: "MUTATES nonsense" })],
  invalid_predicate: ({ world }) => [bad(world, { intents: "WRITES FILE:/a" })],
  duplicate_intent: ({ world }) => [bad(world, { intents: ["MUTATES FILE:/a", "MUTATES FILE:/a"] })],
  manifest_too_large: ({ world }) => [
    bad(world, { intents: Array.from({ length: limits.intentsMax + 1 }, (_, n) => `MUTATES FILE:/f${n}`) }),
  ],
  tenant_unknown: ({ world, running }) => [
    { ...world.creation(), tenant: "t9" },
    { ...world.polling("w.1"), tenant: "t9" },
    { ...world.receipt("progress", running), tenant: "t9" },
    { type: "set_task_type", tenant: "t9", taskType: "x", settings: {} },
  ],
};

function agentsLease(world: Pick<World, "leases">): string {
  return found(
    world.leases().find(({ holder }) => holder === "a"),
    "lease",
  ).id;
}

for (const [code, asks] of Object.entries({ ...others, ...ways }) as [RefusalCode, (busy: Busy) => readonly Ask[]][]) {
  test(`S3: of tasks, ${code} is refused as such, and nothing changes`, () => {
    const count = asks(createBusyWorld()).length;
    assert.ok(count > 0);
    for (let index = 0; index < count; index++) {
      const busy = createBusyWorld();
      busy.world.refused(code, found(asks(busy)[index], "case"));
    }
  });
}

test("S3: a refused task or receipt names its field and what is wrong with it, where one is at fault", () => {
  const busy = createBusyWorld();
  const { world } = busy;
  for (const code of ["invalid_task", "invalid_receipt"] as const) {
    for (const ask of ways[code](busy)) {
      const { field, problem } = world.refused(code, ask);
      assert.match(field ?? "", /^[a-z_.0-9]+$/);
      assert.ok((problem ?? "").length > 3, JSON.stringify(ask));
    }
  }
});

test("S3: what is at the limit is taken", () => {
  const world = createTaskWorld();
  const id = world.create({
    taskType: many(limits.idLengthMax),
    taskSummary: many(limits.receiptTextMax),
    taskBody: "é".repeat(limits.taskBodyBytesMax / 2),
    inputs: many(limits.inputsBytesMax - 2),
    requires: Array.from({ length: limits.taskRequiresMax }, (_, n) => many(126) + String(n).padStart(2, "0")),
    intents: Array.from({ length: limits.intentsMax }, (_, n) => `RENAMES FILE:/f${n} > FILE:/t${n}`),
    taskPriority: -limits.taskPriorityMax,
    maxAttempts: limits.taskAttemptsMax,
    concurrencyKey: many(limits.keyLengthMax),
    concurrencyLimit: limits.taskConcurrencyMax,
    idempotencyKey: many(limits.keyLengthMax),
    requeueDelayMs: 0,
    leaseDurationMs: limits.ttlMsMin,
  });
  const { requires } = world.task(id).spec;
  const offer = world.offered("w.1", { capabilities: requires, requestKey: many(limits.keyLengthMax) });
  assert.equal(offer.leases.length, 2 * limits.intentsMax);
  assert.equal(new Set(world.leases().map((lease) => lease.id)).size, 2 * limits.intentsMax + 1);
  world.beat(offer, many(limits.metadataBytesMax - 2));
});

test("S4: kinds of tasks are limited: types, each with each set of required capabilities", () => {
  const world = createTaskWorld();
  for (let n = 0; n < limits.taskLanesMax; n++) world.create({ taskType: `t${n}` });
  world.refused("lease_denied", world.creation({ taskType: "one more" }));
  const known = world.create({ taskType: "t0" });
  for (const { id, spec } of world.tasks()) if (spec.taskType === "t0" && id !== known) world.cancelTask(id);
  world.cancelTask(known);
  world.create({ taskType: "one more" });
});

test("S3: a task's manifest is read as an agent's is", () => {
  const world = createTaskWorld();
  const ask = world.creation({ intents: ["MUTATES FILE:/a", "MUTATES FILE:/b x0"] });
  assert.equal(world.refused("invalid_units", ask).field, "intents.1.units");
  assert.deepEqual(world.creation({ intents: "MUTATES FILE:/a" }).task.intents, [intentOf("MUTATES FILE:/a")]);
});
