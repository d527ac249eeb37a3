/** What principals do: create tasks of every kind, create them twice, cancel and redrive them. */

import type { IntentInput } from "../../src/kernel/contract/inputs.ts";
import type { ReceiptInput, SetTaskType, TaskInput } from "../../src/kernel/contract/task-commands.ts";
import { count } from "../counters.ts";
import { isPattern } from "../model/names.ts";
import type { Random } from "../random.ts";
import { entropyOf, operator, type SimTenant, supervisor, type World } from "../world.ts";
import { ask } from "./ask.ts";
import { badTask } from "./bad-tasks.ts";
import { foreignTurn } from "./foreign.ts";
import { blankReceipt, blankTask } from "./inputs.ts";

export const taskTypes = ["build", "build", "review", "deploy"];
export const capabilities = ["gpu", "net"];
const keys: readonly (readonly [string, number])[] = [
  ["one", 1],
  ["one", 1],
  ["two", 2],
  ["mixed", 1],
  ["mixed", 3],
];
const creator = { role: "agent", agentId: null, epoch: null, keyId: "key-of-the-principal" } as const;
/** Enough for conflicts; an endless queue would only make the world slow. With few tasks, workers are idle. */
function liveMaxOf({ size, seed }: World): number {
  if (size === "large") return 250;
  return seed % 4 === 0 ? 7 : 30;
}

export function principalTurn(world: World, tenant: SimTenant): void {
  const { random } = world;
  const asked = { tenant: tenant.id, actor: creator, entropy: entropyOf(world) };
  const taskId = tenant.taskIds.length > 0 ? random.pick(tenant.taskIds) : "T-none";
  const alive = [...world.store.task.values()].filter(({ status }) => status !== "dead").length;
  const isFull = alive >= liveMaxOf(world);
  switch (
    random.weighted({
      create: isFull ? 5 : 100,
      again: 8,
      cancel: 14,
      redrive: 12,
      settings: 14,
      recover: 8,
      discharge: 6,
      foreign: 14,
      bad: 6,
    })
  ) {
    case "create":
      return create(world, tenant);
    case "again": {
      const last = tenant.created.length > 0 ? random.pick(tenant.created) : undefined;
      if (last === undefined) return;
      const task = random.chance(0.2) ? { ...last.task, taskSummary: "something else" } : last.task;
      return created(tenant, ask(world, { ...last, task, entropy: entropyOf(world) }), null);
    }
    case "cancel": {
      const actor = random.weighted({ creator: 8, supervisor: 2, stranger: 1 });
      const who = { creator, supervisor, stranger: { ...creator, keyId: "another-key" } }[actor];
      const reason = random.pick([null, "no longer wanted", "x".repeat(random.chance(0.05) ? 1_025 : 3)]);
      const running = [...world.store.task.values()].find(
        (one) => one.status === "accepted" && one.tenant === tenant.id,
      );
      const which = random.chance(0.4) ? (running?.id ?? taskId) : taskId;
      ask(world, { ...asked, actor: who, type: "cancel_task", taskId: which, reason });
      return;
    }
    case "redrive": {
      const dead = [...world.store.task.values()].find((task) => task.status === "dead" && task.tenant === tenant.id);
      ask(world, { ...asked, type: "redrive_task", taskId: random.chance(0.8) ? (dead?.id ?? taskId) : taskId });
      return;
    }
    case "settings": {
      const settings = settingsFor(random);
      ask(world, { ...asked, actor: operator, type: "set_task_type", taskType: random.pick(taskTypes), settings });
      return;
    }
    case "recover":
      return recover(world, tenant);
    case "discharge":
      return discharge(world, tenant);
    case "foreign":
      return foreignTurn(world, tenant);
    case "bad":
      ask(world, badTask(world, tenant));
      return;
  }
}

/** R5: mostly of an overdue obligation, by a supervisor. */
function recover(world: World, tenant: SimTenant): void {
  const { random } = world;
  const owed = [...world.store.task.values()].filter(
    (one) => one.tenant === tenant.id && one.obligation !== null && one.obligation.state !== "CLOSED",
  );
  const overdue = owed.filter(({ obligation }) => obligation?.state === "OVERDUE");
  const pool = overdue.length > 0 && random.chance(0.8) ? overdue : owed;
  const obligationId = pool.length > 0 ? (random.pick(pool).obligation?.id ?? "") : "obl_none";
  const asked = { tenant: tenant.id, actor: random.chance(0.9) ? supervisor : creator, entropy: entropyOf(world) };
  const custodian = random.pick(["somebody", "builder.0", random.chance(0.1) ? "" : "boss"]);
  const reply = ask(world, {
    ...asked,
    type: "recover_obligation",
    obligationId,
    custodian,
    reason: "its worker is gone",
  });
  if (reply.type === "obligation") count(world.counters, "R5 recovered");
}

/** R5, T13: the custodian of a task that nobody has completes it, or hands it on; and somebody else tries to. */
function discharge(world: World, tenant: SimTenant): void {
  const { random } = world;
  const owed = [...world.store.task.values()].filter(
    (one) =>
      one.tenant === tenant.id && one.live.length === 0 && one.obligation !== null && one.obligation.state !== "CLOSED",
  );
  if (owed.length === 0) return;
  const { id, obligation } = random.pick(owed);
  const custodian = obligation?.custodian ?? "nobody";
  const sourceSystem = random.weighted({ own: 8, other: 1, none: 1 });
  const source = { own: custodian, other: "somebody-else", none: null }[sourceSystem];
  const obligationId = random.pick([null, obligation?.id ?? null, "obl_another"]);
  const said = random.pick<Partial<ReceiptInput>>([
    { status: "success" },
    { status: "failure" },
    { status: "failure", retryRequested: true },
    { phase: "escalate", escalationClass: "owner", escalationReason: "not mine", escalationTo: "boss" },
    { phase: "progress", outcomeText: "looking into it" },
  ]);
  const receipt = { ...blankReceipt("complete", id), sourceSystem: source, obligationId, ...said };
  const asked = { tenant: tenant.id, actor: random.chance(0.8) ? supervisor : creator, entropy: entropyOf(world) };
  const reply = ask(world, { ...asked, type: "submit_receipt", receipt });
  if (reply.type === "receipt" && reply.receipt.phase === "complete") count(world.counters, "R5 discharged");
}

function create(world: World, tenant: SimTenant): void {
  const command = {
    tenant: tenant.id,
    actor: creator,
    entropy: entropyOf(world),
    type: "create_task",
    task: taskFor(world, tenant),
    endedDependencies: null,
  } as const;
  created(tenant, ask(world, command), command);
}

function created(tenant: SimTenant, reply: ReturnType<typeof ask>, command: SimTenant["created"][number] | null): void {
  if (reply.type !== "task") return;
  if (!tenant.taskIds.includes(reply.task.id)) tenant.taskIds = [...tenant.taskIds, reply.task.id].slice(-40);
  if (command?.task.idempotencyKey != null) tenant.created = [...tenant.created, command].slice(-6);
}

export function taskFor(world: World, tenant: SimTenant): TaskInput {
  const { random } = world;
  const intents = random.chance(0.5) ? taskIntents(world, tenant) : null;
  const [key, limit] = random.chance(0.3) ? random.pick(keys) : [null, null];
  const blank = blankTask(random.pick(taskTypes), random.pick(["lead", "owner"]));
  return {
    ...blank,
    taskSummary: random.chance(0.3) ? "some work" : null,
    taskBody: random.chance(0.3) ? "what to do" : null,
    inputs: random.chance(0.2) ? { files: 3 } : null,
    taskPriority: random.pick([null, null, 0, 5, -3, 40, 40]),
    requires: random.pick([null, null, null, ["gpu"], ["gpu", "net"]]),
    intents,
    delayMs: random.chance(0.15) ? random.pick([1, 500, 8_000]) : null,
    maxAttempts: random.pick([null, 1, 2, 3]),
    maxOffers: random.pick([null, 1, 2, 4]),
    leaseDurationMs: random.pick([null, 300, 3_000, 9_000, 9_000, 20_000]),
    requeueDelayMs: random.pick([0, 0, 100, 5_000, null]),
    dependsOn: dependenciesFor(world, tenant),
    concurrencyKey: key ?? null,
    concurrencyLimit: limit ?? null,
    speculative: intents === null && random.chance(0.3) ? true : null,
    preemptible: random.chance(0.6) ? true : null,
    idempotencyKey: random.chance(0.3) ? `create-${random.below(2 ** 30)}` : null,
    supervisor: random.chance(0.3) ? random.pick(["boss", "builder.0"]) : null,
  };
}

function dependenciesFor({ random }: World, { taskIds }: SimTenant): string[] | null {
  if (taskIds.length === 0 || !random.chance(0.25)) return null;
  const candidates = random.chance(0.6) ? taskIds.slice(-4) : taskIds;
  const ids = Array.from({ length: random.between(1, 2) }, () => random.pick(candidates));
  return random.chance(0.03) ? [...ids, "T-never-was"] : ids;
}

/** Sometimes a broad pattern, or any one that it matches; and sometimes what a cell hosts. */
function taskIntents(world: World, tenant: SimTenant): IntentInput[] | null {
  const { random } = world;
  const onCells = random.chance(0.4);
  const isFree = (name: string): boolean => !tenant.bound.includes(name) && !name.startsWith("PORT:");
  const free = tenant.names.filter((name) => onCells || isFree(name));
  const plain = free.filter((name) => !isPattern(name));
  const intents = new Map<string, IntentInput>();
  for (let nth = random.pick([1, 1, 2, 3]); nth > 0; nth--) {
    const names = plain.length > 0 && random.chance(0.7) ? plain : free;
    if (names.length === 0) return null;
    const resource = random.pick(names);
    const predicate = random.pick(["CONSUMES", "CONSUMES", "PROVIDES", "MUTATES", "MUTATES", "DEPENDS_ON", "RENAMES"]);
    const to = predicate === "RENAMES" ? plain.find((name) => name !== resource) : null;
    const units = tenant.counted.includes(resource) ? random.pick([null, 1, 1, 2, 4]) : null;
    const isChoice = isPattern(resource) && to === null && random.chance(0.5);
    const choice = isChoice ? ({ pick: "any" } as const) : {};
    const intent = { predicate: to === undefined ? "DELETES" : predicate, resource, units, to: to ?? null, ...choice };
    intents.set(`${intent.predicate} ${resource} ${to ?? ""}`, intent);
  }
  return [...intents.values()];
}

function settingsFor(random: Random): SetTaskType["settings"] {
  return random.pick<SetTaskType["settings"]>([
    { speculateShare: random.pick([0.1, 0.5, 1]) },
    { speculateShare: 0.2, leaseDurationMs: 9_000 },
    { leaseDurationMs: random.pick([300, 20_000]), requeueDelayMs: random.pick([0, 3_000]) },
    { maxAttempts: random.between(1, 4), maxOffers: random.between(1, 4) },
    { maxAttempts: null, maxOffers: null, leaseDurationMs: null, requeueDelayMs: null, speculateShare: null },
    { supervisor: random.pick(["chief", null]) },
    { maxAttempts: 0 },
  ]);
}
