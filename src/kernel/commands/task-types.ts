/** T6: what a tenant has set for a type of task. */

import { limits } from "../contract/limits.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { SetTaskType } from "../contract/task-commands.ts";
import { requireAbove } from "../memory/actors.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { TaskTypeEntry } from "../memory/task-state.ts";
import { placeTaskType } from "../tasks/task-types.ts";
export function setTaskType(turn: Turn, command: SetTaskType): Reply {
  const { tenant } = turn;
  const refusal = requireAbove(command.actor) ?? findProblem(command);
  if (refusal !== null) return refusal;
  const known = tenant.book.types.get(command.taskType);
  if (known === undefined && tenant.book.types.size >= limits.taskTypesMax) {
    return refuse("lease_denied", `The tenant may have settings for ${limits.taskTypesMax} types of tasks.`, {
      reason: "quota",
    });
  }
  const entry = known ?? addType(tenant, command.taskType);
  const { settings } = command;
  const pick = (wished: number | null | undefined, before: number | null): number | null =>
    wished === undefined ? before : wished;
  const { record } = entry;
  entry.record = {
    ...record,
    leaseDuration: pick(settings.leaseDurationMs, record.leaseDuration),
    maxAttempts: pick(settings.maxAttempts, record.maxAttempts),
    maxOffers: pick(settings.maxOffers, record.maxOffers),
    requeueDelay: pick(settings.requeueDelayMs, record.requeueDelay),
    speculateShare: pick(settings.speculateShare, record.speculateShare),
  };
  changed(turn, entry);
  return { type: "task_type", taskType: entry.record };
}

/** Each number's smallest and greatest value, as callers name it. */
const ranges = {
  leaseDurationMs: [limits.ttlMsMin, limits.taskLeaseMsMax],
  maxAttempts: [1, limits.taskAttemptsMax],
  maxOffers: [1, limits.taskOffersMax],
  requeueDelayMs: [0, limits.taskDelayMsMax],
} as const;

function findProblem({ taskType, settings }: SetTaskType): Refusal | null {
  if (taskType.length === 0 || taskType.length > limits.idLengthMax) return wrong("task_type", "1 to 128 characters");
  for (const [name, [least, most]] of Object.entries(ranges) as [keyof typeof ranges, readonly [number, number]][]) {
    const value = settings[name];
    if (value === undefined || value === null) continue;
    if (!(Number.isSafeInteger(value) && value >= least && value <= most)) {
      const field = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return wrong(field, `a whole number from ${least} to ${most}`);
    }
  }
  const { speculateShare: share } = settings;
  if (share !== undefined && share !== null && !(share > 0 && share <= 1_000)) {
    return wrong("speculate_share", "a number above 0, at most 1,000");
  }
  return null;
}

function wrong(field: string, problem: string): Refusal {
  return refuse("invalid_task", `${field} is ${problem}.`, { field, problem });
}

function addType(tenant: TenantEntry, taskType: string): TaskTypeEntry {
  return placeTaskType(tenant, {
    tenant: tenant.record.id,
    taskType,
    leaseDuration: null,
    maxAttempts: null,
    maxOffers: null,
    requeueDelay: null,
    speculateShare: null,
    usualDuration: null,
    samples: 0,
  });
}
