/**
 * A queued task is in exactly one queue, for a reason that still holds (see src/kernel/memory/task-state.ts): a parked
 * task has a live obstacle that conflicts, whose end wakes the task, so no wake-up is lost.
 */
import type { TenantEntry } from "../../src/kernel/memory/state.ts";
import type { TaskEntry } from "../../src/kernel/memory/task-state.ts";
import { claimsConflict, unitsIn, unitsLeft } from "../model/conflicts.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf, type TenantView } from "./tenant-view.ts";

export function checkPlaces(view: TenantView, { state, settled }: Step): void {
  const tenant = state.tenants.get(view.tenant.id);
  if (tenant === undefined) return;
  let ready = 0;
  let alive = 0;
  for (const task of tenant.tasks.values()) {
    alive++;
    if (task.place === "ready") ready++;
    checkPlace(state, tenant, task);
    if (task.place === "parked" && settled) checkParked(view, task);
  }
  if (alive !== view.tasks.size) violated("S1", `${alive} tasks in memory, ${view.tasks.size} in the store`);
  if (tenant.book.readyCount !== ready) violated("T13", `${ready} tasks are ready, ${tenant.book.readyCount} counted`);
  checkCounts(tenant);
}

function checkPlace(state: Step["state"], { book }: TenantEntry, task: TaskEntry): void {
  const { record, place, lane, key, parking } = task;
  const isQueued = record.status === "queued" || record.status === "retry_pending";
  if (isQueued === (place === "none")) violated("T13", `a ${record.status} task stands in place "${place}"`, record);
  if ((place === "dependent") !== (isQueued && record.waitingOn.length > 0)) {
    violated("T12", `a task that waits for ${record.waitingOn.length} others is ${place}`, record);
  }
  const isDelayed = isQueued && record.waitingOn.length === 0 && record.notBefore !== null;
  if ((place === "delayed") !== isDelayed) violated("T12", `a task is ${place}`, record);
  if (isDelayed && (!state.ends.heap.includes(task) || task.rank !== record.notBefore)) {
    violated("T12", "a delayed task has no deadline", record);
  }
  const inLane = lane.ready.heap.includes(task);
  const inKey = [...(key?.waiting.values() ?? [])].some(({ heap }) => heap.includes(task));
  if (inLane !== (place === "ready"))
    violated("T13", `a task that is ${place} is ${inLane ? "" : "not "}in its lane`, record);
  if (inKey !== (place === "keyed"))
    violated("T12", `a task that is ${place} does${inKey ? "" : " not"} wait for its key`, record);
  if (book.barred.has(task) !== (place === "barred"))
    violated("T13", `a task that is ${place} is among the barred`, record);
  if (place !== "parked" && place !== "ready" && parking !== null)
    violated("T10", `a task that is ${place} is parked on something`, record);
  if (record.status === "retry_pending" && place !== "delayed") violated("T5", "a retry is not delayed", record);
  if (!isQueued && task.open.size > 0) violated("T10", "a task that is not queued waits for its resources", record);
  if (task.open.size > 1) violated("T10", "a task waits twice for its resources", record);
}

/** What it is parked on is live, lists it, and conflicts with it. */
function checkParked({ field, waiters, tenant }: TenantView, task: TaskEntry): void {
  const { record, parking, open, lane } = task;
  if (parking === null) {
    if (open.size !== 1) violated("T10", "a task is parked on nothing", record);
    return; // Whether its turn has come (W3) is checked in waits.ts.
  }
  if (!parking.returning.has(task) && !parking.lanes.get(lane)?.heap.includes(task)) {
    violated("T10", "a task is not where it is parked", record);
  }
  const { obstacle: parkedOn } = parking;
  if (parkedOn === null) {
    // Their obstacle is gone: they return one by one, and one of the lane is ready before this one.
    if (!lane.ready.heap.some((one) => one.parking === parking)) violated("T10", "nothing will wake a task", record);
    return;
  }
  if (parkedOn.parked !== parking) violated("T10", "what a task is parked on does not list it", record);
  if (parkedOn.kind === "kind") {
    const { name, units } = parkedOn;
    const wanted = record.spec.intents.reduce((sum, intent) => {
      const own = [intent.resource, intent.to].filter((one) => one?.startsWith(`${name}:`)).length;
      return sum + own * intent.units;
    }, 0);
    if (units + wanted <= (tenant.quotas.kinds[name] ?? Number.POSITIVE_INFINITY))
      violated("G2", "a task is parked on a quota that has room for it", record, parkedOn.units);
    return;
  }
  if (parkedOn.kind === "choice") {
    if (!record.spec.intents.some(({ pick, resource }) => pick !== null && resource === parkedOn.pattern.text))
      violated("T10", "a task is parked on a choice that it does not have", record);
    return; // Whether one of them is free, with all else, is checked in task-waits.ts.
  }
  if (!parkedOn.alive) violated("T10", "a task is parked on something that has ended", record, parkedOn.record);
  const claims = claimsOf(record.spec.intents);
  switch (parkedOn.kind) {
    case "lease": {
      const { record: lease } = parkedOn;
      const isOwn = lease.holder === record.id;
      // Its own last attempt's, while a cell tears it down (G6).
      const conflicts = isOwn ? lease.state === "CLOSING" : claims.some((claim) => claimsConflict(field, claim, lease));
      if (!conflicts) violated("T10", "a task is parked on a lease that is not in its way", record, lease);
      break;
    }
    case "request": {
      const { record: request } = parkedOn;
      const conflicts = claimsOf(request.intents, request.picked).some((one) =>
        claims.some((claim) => claimsConflict(field, claim, one)),
      );
      if (request.state !== "WAITING" || !conflicts) {
        violated("T10", "a task is parked on a request that is not in its way", record, request);
      }
      break;
    }
    case "resource": {
      const { name } = parkedOn.record;
      if (unitsLeft(field, name, waiters) >= unitsIn(claims, name)) {
        violated("T10", "a task is parked on a resource that has units left", record, parkedOn.record);
      }
      break;
    }
  }
}

/** The maintained counters equal a fresh count. */
function checkCounts({ tasks, book }: TenantEntry): void {
  const lanes = new Map<string, number>();
  const keys = new Map<string, { count: number; running: number }>();
  let dedupes = 0;
  let owed = 0;
  for (const { record, lane, key, preparedFor } of tasks.values()) {
    lanes.set(lane.id, (lanes.get(lane.id) ?? 0) + 1);
    if (key !== null) {
      const known = keys.get(key.name) ?? { count: 0, running: 0 };
      keys.set(key.name, {
        count: known.count + 1,
        running: known.running + (record.live.length > 0 || preparedFor !== null ? 1 : 0),
      });
    }
    const isOver = record.status === "succeeded" || record.status === "failed" || record.status === "canceled";
    if (!isOver) dedupes += record.dedupes.length;
    if (record.obligation !== null && record.obligation.state !== "CLOSED") {
      owed++;
      const listed = [...(book.custodians.get(record.obligation.custodian) ?? [])].some((one) => one.record === record);
      if (!listed) violated("R5", "an open obligation is in nobody's inbox", record);
    }
  }
  for (const { record } of book.foreign.values()) {
    owed++;
    dedupes += record.dedupes.length;
  }
  for (const { id, count } of book.lanes.values()) {
    if (lanes.get(id) !== count) violated("T13", `lane ${id} counts ${count} tasks of ${lanes.get(id) ?? 0}`);
  }
  if (book.lanes.size !== lanes.size) violated("T13", `${book.lanes.size} lanes for ${lanes.size} kinds of tasks`);
  for (const { name, count, running } of book.keys.values()) {
    const known = keys.get(name);
    if (known?.count !== count || known.running !== running) {
      violated("T12", `key ${name} counts ${running} of ${count}, there are`, known);
    }
  }
  const listed = [...book.custodians.values()].reduce((sum, { size }) => sum + size, 0);
  if (listed !== owed) violated("R5", `${listed} obligations are in inboxes, ${owed} are open`);
  const { size } = book.dedupes;
  if (size !== dedupes) violated("R3", `${size} keys are known, the tasks have ${dedupes}`);
}
