/** T6: what a tenant has set for a type of task. */

import { checkTaskType, checkTaskTypeSettings } from "../contract/inputs.gen.ts";
import { limits } from "../contract/limits.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { SetTaskType } from "../contract/task-commands.ts";
import { requireAbove } from "../memory/actors.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { TaskTypeEntry } from "../memory/task-state.ts";
import { cappedLease, leaseWarnings } from "../tasks/task-input.ts";
import { placeTaskType } from "../tasks/task-types.ts";

export function setTaskType(turn: Turn, command: SetTaskType): Reply {
  const { tenant } = turn;
  const refusal = requireAbove(command.actor) ?? checkTaskType(command) ?? checkTaskTypeSettings(command.settings);
  if (refusal !== null) return refusal;
  const known = tenant.book.types.get(command.taskType);
  if (known === undefined && tenant.book.types.size >= limits.taskTypesMax) {
    return refuse("lease_denied", `The tenant may have settings for ${limits.taskTypesMax} types of tasks.`, {
      reason: "quota",
    });
  }
  const entry = known ?? addType(tenant, command.taskType);
  const { settings } = command;
  const pick = (wanted: number | null | undefined, before: number | null): number | null =>
    wanted === undefined ? before : wanted;
  const { record } = entry;
  entry.record = {
    ...record,
    leaseDuration: pick(cappedLease(settings.leaseDurationMs), record.leaseDuration),
    maxAttempts: pick(settings.maxAttempts, record.maxAttempts),
    maxOffers: pick(settings.maxOffers, record.maxOffers),
    requeueDelay: pick(settings.requeueDelayMs, record.requeueDelay),
    speculateShare: pick(settings.speculateShare, record.speculateShare),
  };
  changed(turn, entry);
  return { type: "task_type", taskType: entry.record, warnings: leaseWarnings(settings.leaseDurationMs) };
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
