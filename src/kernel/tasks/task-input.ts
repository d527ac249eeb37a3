/** Decodes a task's description: each fault names its field and what is wrong with it, and nothing is guessed (S3). */
import { invalid } from "../contract/bounds.ts";
import { checkTask, taskSpecOf } from "../contract/inputs.gen.ts";
import { limits } from "../contract/limits.ts";
import type { Refusal } from "../contract/refusals.ts";
import type { TaskInput } from "../contract/task-commands.ts";
import type { TaskSpec } from "../contract/task-records.ts";
import { leavesChoice, needsCells } from "../deciding/claims.ts";
import { readIntents } from "../deciding/manifest.ts";
import type { TenantEntry } from "../memory/state.ts";

export function readTask(tenant: TenantEntry, input: TaskInput): TaskSpec | Refusal {
  const problem = checkTask(input);
  if (problem !== null) return problem;
  if (input.concurrencyLimit !== null && input.concurrencyKey === null) {
    return invalid("invalid_task", "concurrency_limit", "needs a concurrency_key");
  }
  const read = input.intents === null || input.intents.length === 0 ? noIntents : readIntents(tenant, input.intents);
  if ("code" in read) return read;
  if (needsCells(tenant, read.claims)) {
    return invalid("invalid_task", "intents", "must not name bound resources; acquire them as an agent");
  }
  if (leavesChoice(read.intents)) {
    return invalid("invalid_task", "intents", "must name their resources, without pick");
  }
  if (input.speculative === true && read.intents.length > 0) {
    return invalid("invalid_task", "speculative", "must be left out where there are intents (T8)");
  }
  const type = tenant.book.types.get(input.taskType)?.record;
  return taskSpecOf(input, {
    requires: input.requires === null ? none : [...new Set(input.requires)].sort(),
    intents: read.intents,
    maxAttempts: input.maxAttempts ?? type?.maxAttempts ?? limits.taskAttemptsDefault,
    maxOffers: input.maxOffers ?? type?.maxOffers ?? limits.taskOffersDefault,
    leaseDurationMs: cappedLease(input.leaseDurationMs ?? type?.leaseDuration ?? limits.taskLeaseMsDefault),
    requeueDelayMs: input.requeueDelayMs ?? type?.requeueDelay ?? limits.taskRequeueMsDefault,
    dependsOn: input.dependsOn === null ? none : [...new Set(input.dependsOn)],
  });
}

const none: readonly string[] = [];
const noIntents = { intents: [], claims: [] } as const;

/** L2: a longer duration is capped, and the reply says so. */
export function cappedLease<T extends number | null | undefined>(ms: T): T | number {
  return typeof ms === "number" ? Math.min(ms, limits.taskLeaseMsMax) : ms;
}

export function leaseWarnings(ms: number | null | undefined): readonly string[] {
  return ms === cappedLease(ms) ? none : [`lease_duration_ms was capped at ${limits.taskLeaseMsMax}.`];
}
