/** Tasks, polls and settings that are mostly refused: each must leave everything as it was (S3). */
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { TaskInput } from "../../src/kernel/contract/task-commands.ts";
import { entropyOf, operator, type SimTenant, type World } from "../world.ts";
import { blankTask } from "./inputs.ts";

const spoilt: readonly Partial<TaskInput>[] = [
  { taskType: "" },
  { taskType: "two\nlines" },
  { principalAi: "" },
  { taskPriority: 1_001 },
  { taskPriority: 0.5 },
  { delayMs: -1 },
  { maxAttempts: 0 },
  { maxOffers: 1e9 },
  { leaseDurationMs: 1 },
  { leaseDurationMs: Number.NaN },
  { requires: ["a\nb"] },
  { requires: Array.from({ length: 33 }, (_, nth) => `c${nth}`) },
  { concurrencyLimit: 2 },
  { concurrencyKey: "" },
  { taskBody: "x".repeat(102_401) },
  { inputs: "x".repeat(65_537) },
  { speculative: true, intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] },
  { intents: [{ predicate: "READS", resource: "FILE:/a" }] },
  { intents: [{ predicate: "MUTATES", resource: "TASK:/x" }] },
  { intents: [{ predicate: "MUTATES", resource: "PORT:/p" }] },
  { intents: [{ predicate: "MUTATES", resource: "nonsense" }] },
  { dependsOn: ["T-never-was"] },
  { idempotencyKey: "" },
];

export function badTask(world: World, tenant: SimTenant): Command {
  const { random } = world;
  const asked = { tenant: tenant.id, actor: operator, entropy: entropyOf(world) };
  const blank = blankTask("build", "lead");
  const poll = { capabilities: null, preferredKinds: null, requestKey: null, reclaim: false, maxTasks: 1 };
  return random.pick<() => Command>([
    () => ({ ...asked, type: "create_task", task: { ...blank, ...random.pick(spoilt) }, endedDependencies: null }),
    () => ({ ...asked, type: "create_task", task: { ...blank, ...random.pick(spoilt) }, endedDependencies: null }),
    () => ({ ...asked, type: "poll_tasks", workerId: random.pick(["", "nodot", ".x", "a b.c"]), ...poll }),
    () => ({ ...asked, type: "poll_tasks", workerId: "builder.1", ...poll, maxTasks: random.pick([0, 1.5, 1_001]) }),
    () => ({ ...asked, type: "cancel_task", taskId: "T-never-was", reason: null }),
    () => ({ ...asked, type: "redrive_task", taskId: random.pick([...tenant.taskIds, "T-never-was"]) }),
    () => ({ ...asked, type: "set_task_type", taskType: "build", settings: { speculateShare: 0 } }),
    () => ({ ...asked, type: "set_task_type", taskType: "", settings: {} }),
    () => ({ ...asked, type: "heartbeat_task", leaseId: "lse_none", progress: null }),
    () => ({ ...asked, type: "release_task", leaseId: "lse_none" }),
  ])();
}
