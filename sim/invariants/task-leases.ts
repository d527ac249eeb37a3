/** A task's leases are granted, extended and ended together (T10), and its concurrency limit holds (T12). */

import { limits } from "../../src/kernel/contract/limits.ts";
import type { Lease } from "../../src/kernel/contract/records.ts";
import type { Task } from "../../src/kernel/contract/task-records.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, type TenantView } from "./tenant-view.ts";

export function checkTaskLeases(view: TenantView, { store, now, settled }: Step): void {
  const byTask = new Map<string, Lease[]>();
  for (const lease of store.lease.values()) {
    if (lease.tenant !== view.tenant.id || lease.holder === lease.agentId) continue;
    if (!view.tasks.has(lease.holder)) violated("T10", "a lease's task is not live", lease);
    const known = byTask.get(lease.holder);
    if (known === undefined) byTask.set(lease.holder, [lease]);
    else known.push(lease);
  }
  for (const task of view.tasks.values()) checkTogether(task, byTask.get(task.id) ?? [], settled ? now : null);
  checkConcurrency(view);
}

function checkTogether(task: Task, leases: readonly Lease[], now: number | null): void {
  const own = leases.filter(({ resource }) => resource === `TASK:/${task.id}`);
  if (own.length !== task.live.length) violated("T10", "a task's leases and its attempts disagree", task, ...own);
  for (const attempt of task.live) {
    const lease = own.find(({ id }) => id === attempt.leaseId);
    if (lease === undefined) violated("T10", "an attempt has no lease", task, attempt);
    if (lease.fence !== attempt.fence) violated("L11", "an attempt's fence is not its lease's", task, lease);
    if (lease.agentId !== attempt.workerId) violated("T10", "an attempt's lease is another worker's", task, lease);
    if (attempt.canceled && now !== null && lease.expiresAt > now + limits.taskCancelMs) {
      violated("T13", "a canceled attempt is live past its deadline", task, lease);
    }
  }
  const claims = claimsOf(task.spec.intents, task.picked);
  const others = leases.filter((lease) => !own.includes(lease) && lease.state !== "CLOSING");
  if (task.live.length === 0 && others.length > 0) return checkPrepared(task, others, claims.length);
  if (others.length !== (task.live.length > 0 ? claims.length : 0)) {
    violated(
      "T10",
      `a task with ${task.live.length} attempts has ${others.length} of ${claims.length} leases`,
      task,
      ...others,
    );
  }
  const [first] = own;
  for (const lease of others) {
    if (first === undefined) violated("T10", "a task's resources outlive its lease", task, lease);
    if (lease.expiresAt !== first.expiresAt || lease.agentId !== first.agentId) {
      violated("T10", "a task's leases do not end together", first, lease);
    }
    const isBound = others.some(({ cell }) => cell !== null);
    if (lease.fence < first.fence && lease.generation === first.generation && !isBound) {
      violated("T10", "a task's own lease does not have the smallest fence", first, lease);
    }
    if (!claims.some(({ resource, predicate }) => resource === lease.resource && predicate === lease.predicate)) {
      violated("T10", "a task holds a lease that is not in its manifest", task, lease);
    }
  }
}

/** T10, G6: leased to a queued task while cells set all of it up, and then until a worker collects it. */
function checkPrepared(task: Task, leases: readonly Lease[], claimCount: number): void {
  if (task.status !== "queued") violated("T10", `a ${task.status} task without an attempt has leases`, task, ...leases);
  if (leases.length !== claimCount) violated("T10", "a task is prepared with a part of its manifest", task, ...leases);
  const isBinding = leases.every(({ state }) => state === "BINDING");
  if (!isBinding && !leases.every(({ state, claimBy }) => state === "ACTIVE" && claimBy !== null))
    violated("T10", "a task is prepared in parts", task, ...leases);
  if (!leases.some(({ cell }) => cell !== null)) violated("T10", "a task is prepared though no cell is in it", task);
}

/**
 * The last task that started had a limit that allowed it, so one of the running tasks has a limit of at least their
 * number.
 */
function checkConcurrency({ tasks }: TenantView): void {
  const running = new Map<string, Task[]>();
  for (const task of tasks.values()) {
    const key = task.spec.concurrencyKey;
    if (key === null || task.live.length === 0) continue;
    running.set(key, [...(running.get(key) ?? []), task]);
  }
  for (const [key, ofKey] of running) {
    const most = Math.max(...ofKey.map(({ spec }) => spec.concurrencyLimit));
    if (ofKey.length > most) violated("T12", `${ofKey.length} tasks run under the key ${key}, ${most} may`, ...ofKey);
  }
}

/** T1: what a poll returns, the worker really holds. */
export function checkOffers({ command, reply, store, changes, events }: Step): void {
  if (command?.type !== "poll_tasks" || reply?.type !== "offers") return;
  const change = changes.find((one) => one.kind === "worker" && one.after?.id === command.workerId);
  const before = change?.kind === "worker" ? change.before : store.worker.get(`${command.tenant} ${command.workerId}`);
  const isRepeated = before?.polls.some(({ requestKey }) => requestKey === command.requestKey) ?? false;
  if (isRepeated && events.some(({ type }) => type === "task.offered")) {
    violated("T1", "a repeated poll got a new offer", command, reply);
  }
  for (const { task, lease, leases } of reply.offers) {
    for (const one of [lease, ...leases]) {
      const live = store.lease.get(`${one.tenant} ${one.id}`);
      if (live?.agentId !== command.workerId) violated("T1", "a poll was answered with an unknown lease", task, one);
      if (live.fence !== one.fence) violated("L11", "a poll was answered with an old fence", one, live);
    }
  }
}
