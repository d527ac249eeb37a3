/**
 * Random moves with tasks, as in moves.ts: numbers that select from the present tasks and leases, so that fast-check
 * can draw and shrink a list of moves, and two kernels can play it.
 */
import fc from "fast-check";
import type { Actor, Command, Entropy } from "../src/kernel/contract/commands.ts";
import { limits } from "../src/kernel/contract/limits.ts";
import { quotasDefault, type Strategy } from "../src/kernel/contract/records.ts";
import type { TaskAttempt } from "../src/kernel/contract/task-records.ts";
import type { State } from "../src/kernel/memory/state.ts";
import { plainReceipt, plainTask } from "../src/kernel/testing/tasks-world.ts";
import { intentOf } from "../src/kernel/testing/test-world.ts";

const verbs = {
  create: 60,
  poll: 90,
  accept: 50,
  complete: 40,
  escalate: 10,
  progress: 6,
  heartbeat: 14,
  bind: 60,
  tear_down: 40,
  give_back: 12,
  cancel: 8,
  redrive: 8,
  set_type: 4,
  acquire: 30,
  release_all: 14,
  revoke: 6,
  fence: 3,
  reset: 5,
  declare: 5,
  quota: 4,
  suspend: 1,
  resume: 3,
} as const;
type Verb = keyof typeof verbs;

export interface TaskMove {
  readonly verb: Verb;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly flag: boolean;
  /** How far time advances before the move: by N ms, or to N ms beside the next deadline. */
  readonly clock: { readonly type: "by" | "deadline"; readonly ms: number };
}

const clock = fc.oneof(
  { weight: 12, arbitrary: fc.constant({ type: "by" as const, ms: 0 }) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3_000 }).map((ms) => ({ type: "by" as const, ms })) },
  { weight: 5, arbitrary: fc.integer({ min: -1, max: 1 }).map((ms) => ({ type: "deadline" as const, ms })) },
  { weight: 1, arbitrary: fc.constant({ type: "by" as const, ms: 61_000 }) },
  // By then every worker is forgotten.
  { weight: 1, arbitrary: fc.constant({ type: "by" as const, ms: limits.workerIdleMs + 1 }) },
);

export const anyTaskMove: fc.Arbitrary<TaskMove> = fc.record({
  verb: fc.oneof(...Object.entries(verbs).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) }))),
  a: fc.nat({ max: 99 }),
  b: fc.nat({ max: 99 }),
  c: fc.nat({ max: 99 }),
  flag: fc.boolean(),
  clock,
});

const asked = { tenant: "t1", actor: { role: "operator", agentId: null, epoch: null } satisfies Actor };
const agents = ["old", "young"];
const manifests = [
  ["MUTATES FILE:/a"],
  ["CONSUMES FILE:/a", "MUTATES FILE:/b"],
  ["MUTATES FILE:/a/**"],
  ["CONSUMES GPU:/0 x1"],
  ["CONSUMES GPU:/0 x2", "CONSUMES FILE:/b"],
  ["RENAMES FILE:/b > FILE:/c"],
  ["MUTATES TPU:/0"],
  ["MUTATES TPU:/1", "CONSUMES FILE:/a"],
  ["MUTATES TPU:/* any"],
  ["CONSUMES FILE:/b", "CONSUMES TPU:/* any"],
  ["CONSUMES GPU:/* any"],
];
/** On a cell that somebody reports for. */
const bound = ["TPU:/0", "TPU:/1"];

export function openingOf(strategy: Strategy): Command[] {
  const entropy = [1, 2] as const;
  return [
    { ...asked, entropy, type: "create_tenant", tenantId: "t1" },
    { ...asked, entropy, type: "set_tenant_settings", tenantId: "t1", settings: { strategy } },
    { ...asked, entropy, type: "declare_resource", refillMs: null, resource: "GPU:/0", capacity: 2, cell: null },
    ...bound.map((resource): Command => {
      return { ...asked, entropy, type: "declare_resource", refillMs: null, resource, capacity: null, cell: "c1" };
    }),
    ...agents.map((agentId): Command => ({ ...asked, entropy, type: "register_agent", agentId, labels: null })),
  ];
}

function pick<T>(list: readonly T[], at: number): T | undefined {
  return list[at % Math.max(1, list.length)];
}

/** Built from the kernel that was never restored; both kernels get the same command. */
export function commandOf(move: TaskMove, state: State, entropy: Entropy): Command {
  const { a, b, c, flag } = move;
  const who = { ...asked, entropy };
  const agentId = pick(agents, a) ?? "";
  const tasks = [...(state.tenants.get("t1")?.tasks.values() ?? [])]
    .map(({ record }) => record)
    .sort((one, other) => one.timestamp - other.timestamp);
  const attempts = tasks.flatMap(({ id, live, past }) => {
    const known: readonly Pick<TaskAttempt, "leaseId" | "workerId">[] = flag ? live : [...live, ...past];
    return known.map(({ leaseId, workerId }) => ({ taskId: id, leaseId, workerId }));
  });
  const attempt = pick(attempts, a) ?? { taskId: "T-none", leaseId: "lse_none", workerId: "w.0" };
  const dedupeKey = b < 60 ? null : `k${b % 5}`;
  const receipt = { ...plainReceipt, taskId: attempt.taskId, leaseId: attempt.leaseId, dedupeKey };
  const resource = pick(["FILE:/a", "FILE:/b", "GPU:/0", ...bound], a) ?? "";
  switch (move.verb) {
    case "create": {
      const isSpeculative = a % 5 === 0;
      return {
        ...who,
        type: "create_task",
        endedDependencies: null,
        task: {
          ...plainTask,
          taskType: b % 3 === 0 ? "test" : "build",
          taskBody: flag ? "body" : null,
          taskPriority: c % 4,
          requires: b % 7 === 0 ? ["gpu"] : null,
          intents: isSpeculative || a % 2 === 0 ? null : (pick(manifests, c) ?? []).map(intentOf),
          delayMs: b % 6 === 0 ? 2_000 : null,
          maxAttempts: 1 + (a % 3),
          maxOffers: 1 + (b % 4),
          leaseDurationMs: 1_000 * (1 + (c % 9)),
          requeueDelayMs: 1_000 * (a % 3),
          dependsOn: c % 6 === 0 ? tasks.slice(-1).map(({ id }) => id) : null,
          concurrencyKey: a % 4 === 1 ? "key" : null,
          concurrencyLimit: a % 8 === 1 ? 2 : null,
          speculative: isSpeculative,
          preemptible: flag,
          idempotencyKey: b % 9 === 0 ? `i${c % 4}` : null,
        },
      };
    }
    case "poll":
      return {
        ...who,
        type: "poll_tasks",
        workerId: `w.${a % 4}`,
        capabilities: b % 3 === 0 ? ["gpu"] : null,
        maxTasks: 1 + (c % 3),
        preferredKinds: b % 5 === 0 ? ["test"] : null,
        requestKey: c % 5 === 0 ? `p${b % 3}` : null,
        reclaim: flag && a % 6 === 0,
        accept: b % 4 === 0,
      };
    case "accept":
      return { ...who, type: "submit_receipt", receipt: { ...receipt, phase: "accepted" } };
    case "complete": {
      const status = pick(["success", "success", "failure", "failure", "canceled"], c) ?? "success";
      const retryRequested = b % 2 === 0;
      return { ...who, type: "submit_receipt", receipt: { ...receipt, phase: "complete", status, retryRequested } };
    }
    case "escalate": {
      const why = { escalationClass: "other", escalationReason: "why", retryRequested: flag };
      return { ...who, type: "submit_receipt", receipt: { ...receipt, phase: "escalate", ...why } };
    }
    case "progress":
      return { ...who, type: "submit_receipt", receipt: { ...receipt, phase: "progress", outcomeText: `${c % 3}` } };
    case "heartbeat":
      return { ...who, type: "heartbeat_task", leaseId: attempt.leaseId, progress: flag ? { at: b } : undefined };
    case "bind":
    case "tear_down": {
      const wanted = move.verb === "bind" ? "BINDING" : "CLOSING";
      const type = {
        bind: ["bind_confirmed", "bind_failed"],
        tear_down: ["teardown_confirmed", "teardown_failed"],
      } as const;
      const leases = [...(state.tenants.get("t1")?.leases.values() ?? [])]
        .map(({ record }) => record)
        .filter((lease) => lease.state === wanted && lease.cellBy !== null)
        .sort((one, other) => one.fence - other.fence);
      const { id = "lse_none", generation = 1 } = pick(leases, a) ?? {};
      const report = { cellId: null, leaseId: id, generation, coordinate: "here:1", reason: "why" };
      return { ...who, type: type[move.verb][b % 6 === 0 ? 1 : 0], ...report };
    }
    case "give_back":
      return { ...who, type: "release_task", leaseId: attempt.leaseId };
    case "cancel":
      return { ...who, type: "cancel_task", taskId: pick(tasks, a)?.id ?? "T-none", reason: flag ? "why" : null };
    case "redrive": {
      const dead = tasks.filter(({ status }) => status === "dead");
      return { ...who, type: "redrive_task", taskId: pick(dead, a)?.id ?? "T-none" };
    }
    case "set_type":
      return {
        ...who,
        type: "set_task_type",
        taskType: "build",
        settings: { speculateShare: flag ? 1 : null, maxAttempts: 1 + (a % 3) },
      };
    case "acquire":
      return {
        ...who,
        type: "acquire",
        agentId,
        intents: (pick(manifests, c) ?? []).map(intentOf),
        ttlMs: 1_000 * (1 + (b % 9)),
        waitTimeoutMs: 3_000 * (b % 3),
        standbyMs: 0,
        idleTimeoutMs: null,
        purpose: null,
        tokens: false,
        dryRun: false,
        requestKey: null,
      };
    case "release_all":
      return { ...who, type: "release_all", agentId, leaseIds: null, versions: null };
    case "revoke": {
      const targets = [{ agentId: `w.${b % 4}` }, { resourcePrefix: resource }, { leaseId: attempt.leaseId }];
      return { ...who, type: "revoke", target: pick(targets, c) ?? { agentId }, reason: "test" };
    }
    case "fence":
      return { ...who, type: "fence_resource", resource, reason: "test" };
    case "reset":
      return { ...who, type: "reset_resource", resource, probed: true };
    case "declare":
      return flag
        ? {
            ...who,
            type: "declare_resource",
            refillMs: null,
            resource: pick(bound, b) ?? "",
            capacity: null,
            cell: a % 3 > 0 ? "c1" : null,
          }
        : { ...who, type: "declare_resource", refillMs: null, resource: "GPU:/0", capacity: 1 + (a % 3), cell: null };
    case "quota": {
      const leasesMax = flag ? quotasDefault.leasesMax : 1 + (a % 8);
      return { ...who, type: "set_tenant_quotas", tenantId: "t1", quotas: { ...quotasDefault, leasesMax } };
    }
    case "suspend":
      return { ...who, type: "suspend_tenant", tenantId: "t1", reason: "test" };
    case "resume":
      return { ...who, type: "resume_tenant", tenantId: "t1", reason: null };
  }
}
