/**
 * What follows from what a turn has changed, in a fixed order:
 *
 *   1. consequences, first come, first served, with those that they cause themselves (`followUp`);
 *   2. waiters for all names that were freed, together, in queue order (W3), and from 1 again until nothing is left.
 *
 * It happens once, at the end of a command or of a settled deadline. Only three commands ask for it earlier: a wound
 * (W7) and a poll that wounds follow up before they grant, so that the loser's late result is known to be contested
 * (T13); and a cell's enrolment is answered with the grants that it made possible.
 *
 * Each case below is one event and everyone that it concerns. This file alone knows both.
 */

import type { Consequence } from "./memory/consequences.ts";
import type { State, Turn } from "./memory/state.ts";
import type { ResourceName } from "./names/resource-name.ts";
import { serve } from "./requests/queue.ts";
import { noteEndedLease } from "./requests/request-life.ts";
import { serveStandby } from "./requests/standby.ts";
import { leaveKeyOfLease } from "./requests/stored-keys.ts";
import { taskBound, taskUnbound } from "./tasks/task-binding.ts";
import { taskLeaseEnded } from "./tasks/task-life.ts";
import { unparkFrom } from "./tasks/task-parking.ts";
import { unbarAll, wakeUnqueued, wakeWaitingTask } from "./tasks/task-queue.ts";

export function conclude(turn: Turn): void {
  const { consequences, freed: names } = turn.state;
  if (consequences.length === 0 && names.length === 0) return;
  const freed = serveWaiters(turn);
  if (freed.length === 0 || turn.tenant.standby.count === 0) return;
  serveStandby(turn, freed);
  followUp(turn);
}

/** Follows up, and serves waiters until nothing more is freed. Returns all that was: what stands by comes after (W14). */
export function serveWaiters(turn: Turn): readonly ResourceName[] {
  const { state } = turn;
  if (state.consequences.length > 0) followUp(turn);
  if (state.freed.length === 0) return nothing;
  const freed: ResourceName[] = [];
  while (state.freed.length > 0) {
    const names = takeFreed(state);
    for (const name of names) freed.push(name);
    serve(turn, names);
    followUp(turn);
  }
  return freed;
}

const nothing: readonly ResourceName[] = [];

export function followUp(turn: Turn): void {
  const { consequences } = turn.state;
  for (const consequence of consequences) follow(turn, consequence);
  consequences.length = 0;
}

/** The names that are to be served now; what is freed from here on is for the next round. */
export function takeFreed(state: State): readonly ResourceName[] {
  const names = state.freed;
  state.freed = [];
  return names;
}

function follow(turn: Turn, consequence: Consequence): void {
  switch (consequence.type) {
    case "lease_ended": {
      const { lease } = consequence;
      if (lease.request !== null) noteEndedLease(turn, lease.request, lease.record);
      else if (lease.record.requestKey !== null) leaveKeyOfLease(turn, lease);
      if (lease.parked !== null) unparkFrom(turn, lease);
      if (lease.holder.kind === "task") taskLeaseEnded(turn, lease);
      return;
    }
    case "lease_weakened":
      return unparkFrom(turn, consequence.lease);
    case "request_left": {
      const { request } = consequence;
      unparkFrom(turn, request);
      if (request.holder.kind === "task") wakeUnqueued(turn, request.holder);
      return;
    }
    case "units_freed":
      return unparkFrom(turn, consequence.resource);
    case "task_fits":
      return wakeWaitingTask(turn, consequence.task);
    case "kind_freed":
      return unparkFrom(turn, consequence.kind);
    case "readiness_changed":
      return unbarAll(turn);
    case "choice_freed":
      return unparkFrom(turn, consequence.choice);
    case "task_lease_closing":
      return taskLeaseEnded(turn, consequence.lease);
    case "task_bound":
      return taskBound(turn, consequence.task);
    case "task_unbound":
      return taskUnbound(turn, consequence.task, consequence.failure);
  }
}
