/**
 * What workers do: poll, accept, report progress, complete, give back, escalate; and all of it too late, twice, in the
 * wrong order, after a crash, or in another worker's name. They act on the last reply that they got.
 */
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { PollTasks, SubmitReceipt } from "../../src/kernel/contract/task-commands.ts";
import { count } from "../counters.ts";
import {
  entropyOf,
  type HeldTask,
  type SimTenant,
  type SimWorker,
  supervisor,
  type World,
  workerActor,
} from "../world.ts";
import { ask } from "./ask.ts";
import { capabilities, taskTypes } from "./principals.ts";
import { type ReceiptKind, receiptFor } from "./receipts.ts";

/** Two keys share the workers, so that one can try to act for the other's. */
const keyIds = ["key-1", "key-1", "key-2"];

export function staff(world: World, tenant: SimTenant): void {
  const { random, size } = world;
  if (random.chance(0.8)) {
    // With `speculateShare` the type learns its usual duration, and slower attempts get a second worker (T8).
    const asked = { tenant: tenant.id, actor: supervisor, entropy: entropyOf(world) };
    ask(world, { ...asked, type: "set_task_type", taskType: "build", settings: { speculateShare: 0.1 } });
  }
  const howMany = size === "small" ? random.between(2, 4) : random.between(15, 25);
  for (let nth = 0; nth < howMany; nth++) {
    tenant.workers.push({
      tenant: tenant.id,
      id: `builder.${nth}`,
      keyId: random.pick(keyIds),
      capabilities: nth === 0 ? capabilities : random.pick([[], ["gpu"], capabilities]),
      held: [],
      past: [],
      polls: [],
      sent: [],
      crashed: false,
    });
  }
}

const habits = {
  poll: 90,
  pollAgain: 8,
  reclaim: 6,
  accept: 0,
  complete: 0,
  fail: 0,
  escalate: 0,
  progress: 0,
  heartbeat: 0,
  release: 0,
  generic: 0,
  again: 12,
  zombie: 14,
  forged: 6,
  bad: 4,
  crash: 5,
};

function habitsOf({ held, past }: SimWorker): typeof habits {
  const offered = held.some(({ isAccepted }) => !isAccepted);
  const accepted = held.some(({ isAccepted }) => isAccepted);
  return {
    ...habits,
    poll: held.length > 3 ? 10 : habits.poll,
    accept: offered ? 90 : 0,
    complete: accepted ? 80 : held.length > 0 ? 4 : 0,
    fail: accepted ? 20 : 0,
    escalate: held.length > 0 ? 10 : 0,
    progress: held.length > 0 ? 8 : 0,
    heartbeat: held.length > 0 ? 55 : 0,
    release: held.length > 0 ? 12 : 0,
    generic: held.length > 0 ? 5 : 0,
    zombie: past.length > 0 ? 25 : 0,
  };
}

export function workerTurn(world: World, tenant: SimTenant, worker: SimWorker): void {
  const { random } = world;
  if (worker.crashed) {
    if (random.chance(0.5)) return;
    worker.crashed = false;
    // It continues where it stopped, or restarts and reclaims its leases (T1).
    if (random.chance(0.5)) return;
    return poll(world, worker, true);
  }
  const habit = random.weighted(habitsOf(worker));
  switch (habit) {
    case "crash":
      worker.crashed = true;
      return;
    case "poll":
      poll(world, worker, random.chance(0.03));
      // Mostly it accepts an offer at once.
      if (random.chance(0.6)) for (const _ of worker.held.slice(0, 3)) submit(world, tenant, worker, "accept");
      return;
    case "reclaim":
      return poll(world, worker, true);
    case "pollAgain": {
      const last = worker.polls.at(-1);
      if (last !== undefined) hear(worker, ask(world, { ...last, entropy: entropyOf(world) }));
      return;
    }
    case "again": {
      const last = worker.sent.length > 0 ? random.pick(worker.sent) : undefined;
      if (last === undefined) return;
      return deliver(world, worker, { ...last, receipt: random.chance(0.15) ? altered(last) : last.receipt });
    }
    case "heartbeat":
      return heartbeat(world, worker);
    case "release":
    case "generic":
      return deliver(world, worker, leaseCommand(world, worker, habit));
    case "accept":
    case "complete":
    case "fail":
    case "escalate":
    case "progress":
    case "zombie":
    case "forged":
    case "bad":
      return submit(world, tenant, worker, habit);
  }
}

function altered({ receipt }: SubmitReceipt): SubmitReceipt["receipt"] {
  return { ...receipt, metadata: { said: "something else" } };
}

function poll(world: World, worker: SimWorker, reclaim: boolean): void {
  const { random } = world;
  if (reclaim) forget(worker, worker.held);
  if (random.chance(0.03)) worker.capabilities = random.pick([[], ["gpu"], capabilities]);
  const command: PollTasks = {
    type: "poll_tasks",
    tenant: worker.tenant,
    actor: random.chance(0.03) ? { ...workerActor(worker), keyId: "key-3" } : workerActor(worker),
    entropy: entropyOf(world),
    workerId: worker.id,
    capabilities: random.chance(0.9) ? worker.capabilities : null,
    maxTasks: random.pick([1, 1, 1, 2, 5, 100]),
    preferredKinds: random.chance(0.2) ? [random.pick(taskTypes)] : null,
    requestKey: random.chance(0.5) ? `poll-${random.below(2 ** 30)}` : null,
    reclaim,
    accept: random.chance(0.3),
  };
  if (command.requestKey !== null) worker.polls = [...worker.polls, command].slice(-3);
  const reply = ask(world, command);
  if (reclaim && reply.type === "offers" && reply.offers.length > 0) count(world.counters, "T1 leases reclaimed");
  // Some replies are lost: then it polls again with its request_id, or the offer expires.
  if (!random.chance(0.08)) hear(worker, reply);
}

function hear(worker: SimWorker, reply: Reply): void {
  if (reply.type !== "offers") return;
  for (const { task, lease } of reply.offers) {
    forget(
      worker,
      worker.held.filter(({ leaseId }) => leaseId === lease.id),
    );
    const isAccepted = task.live.some((one) => one.leaseId === lease.id && one.acceptedAt !== null);
    worker.held.push({ taskId: task.id, leaseId: lease.id, fence: lease.fence, isAccepted });
  }
}

/** Completed, lost, or from before a restart; a zombie may still send receipts for it. */
function forget(worker: SimWorker, which: readonly HeldTask[]): void {
  worker.held = worker.held.filter((one) => !which.includes(one));
  worker.past = [...worker.past, ...which].slice(-6);
}

function heartbeat(world: World, worker: SimWorker): void {
  const { random } = world;
  const accepted = worker.held.filter(({ isAccepted }) => isAccepted);
  const task = random.pick(accepted.length > 0 ? accepted : worker.held);
  const progress = random.pick([null, null, { done: random.below(100) }, "x".repeat(random.chance(0.02) ? 20_000 : 9)]);
  const asked = { tenant: worker.tenant, actor: actorFor(world, worker), entropy: entropyOf(world) };
  const { leaseId } = task;
  const reply = ask(world, { ...asked, type: "heartbeat_task", leaseId, progress });
  if (reply.type === "refused" && random.chance(0.7)) return forget(worker, [task]);
  if (reply.type !== "task_lease") return;
  const [directive] = reply.directives;
  if (directive === undefined) return;
  count(world.counters, `T8 directive ${directive}`);
  // It gives the task back, or ignores the directive; then it loses the lease in the end (T8).
  if (random.chance(directive === "preempt" ? 0.8 : 0.2)) return;
  const done = ask(world, { ...asked, type: "release_task", leaseId, entropy: entropyOf(world) });
  if (done.type === "lease" && directive === "preempt") count(world.counters, "T8 preempted for an urgent task");
  forget(worker, [task]);
}

function leaseCommand(world: World, worker: SimWorker, habit: "release" | "generic"): Command {
  const { random, store } = world;
  const { leaseId, taskId } = random.pick(worker.held);
  const asked = { tenant: worker.tenant, actor: actorFor(world, worker), entropy: entropyOf(world) };
  if (habit === "release") return { ...asked, type: "release_task", leaseId, undelivered: random.chance(0.2) };
  // T10: a task's leases are leases, so the general commands work on them as far as they keep them together.
  const leases = [...store.lease.values()].filter(
    ({ tenant, holder }) => tenant === worker.tenant && holder === taskId,
  );
  const one = leases.length > 0 ? random.pick(leases).id : leaseId;
  return random.pick<Command>([
    { ...asked, type: "heartbeat", leaseId: one, activity: true },
    { ...asked, type: "renew_lease", activity: false, leaseId: one, generation: null },
    { ...asked, type: "release_lease", leaseId: one, version: null },
    { ...asked, type: "transfer_lease", version: null, leaseId: one, toAgentId: "agent-0" },
    { ...asked, type: "downgrade_lease", version: null, leaseId: one, predicate: "CONSUMES" },
  ]);
}

function submit(world: World, tenant: SimTenant, worker: SimWorker, kind: ReceiptKind): void {
  const { random } = world;
  const wanted = worker.held.filter(({ isAccepted }) => (kind === "accept" ? !isAccepted : isAccepted));
  const pool = kind === "zombie" || kind === "forged" ? worker.past : wanted.length > 0 ? wanted : worker.held;
  const task = pool.length > 0 ? random.pick(pool) : null;
  const receipt = receiptFor(world, tenant, worker, task, kind);
  const asked = { tenant: worker.tenant, actor: actorFor(world, worker), entropy: entropyOf(world) };
  deliver(world, worker, { ...asked, type: "submit_receipt", receipt });
}

/** Mostly its own key; sometimes a supervisor's, or one that is not allowed. */
function actorFor({ random }: World, worker: SimWorker): Command["actor"] {
  if (random.chance(0.04)) return supervisor;
  return random.chance(0.04) ? { ...workerActor(worker), keyId: "key-3" } : workerActor(worker);
}

/** Sent at once, late, or twice. */
function deliver(world: World, worker: SimWorker, command: Command): void {
  const { random, mail, step } = world;
  const isLate = random.chance(0.05);
  if (isLate || random.chance(0.05)) {
    mail.push({ atStep: step + random.between(1, 60), command });
    count(world.counters, isLate ? "late command" : "repeated command");
    if (isLate) return;
  }
  const reply = ask(world, { ...command, entropy: entropyOf(world) });
  if (command.type === "submit_receipt") worker.sent = [...worker.sent, command].slice(-4);
  if (!random.chance(0.08)) learn(world, worker, command, reply);
}

/** Updates the worker's own view from a reply. */
function learn({ random }: World, worker: SimWorker, command: Command, reply: Reply): void {
  if (command.type === "release_task" && reply.type === "lease") {
    return forget(
      worker,
      worker.held.filter(({ leaseId }) => leaseId === command.leaseId),
    );
  }
  if (command.type !== "submit_receipt") return;
  const { phase, taskId, leaseId } = command.receipt;
  const meant = worker.held.filter((one) => one.taskId === taskId || one.leaseId === leaseId);
  if (reply.type === "refused") {
    if (random.chance(0.5)) forget(worker, meant);
    return;
  }
  if (phase === "accepted") for (const one of meant) one.isAccepted = true;
  if (phase === "complete" || phase === "escalate") forget(worker, meant);
}
