/** Faults in what tasks do with cells, with choices, and after a restart (T8, T10). */
import type { Mutant } from "./planted.ts";

export const boundTaskMutants: readonly Mutant[] = [
  {
    name: "a worker never polls for one half while it works on the other",
    file: "../sdk/task-polls.ts",
    find: "if (!this.isFlowing || this.second !== null",
    replace: "if (this.isFlowing || this.second !== null",
  },
  {
    name: "both polls of a worker are held",
    file: "../sdk/task-polls.ts",
    find: "this.take(this.inputFor(free, false), 0)",
    replace: "this.take(this.inputFor(free, false), holdMs)",
  },
  {
    name: "heartbeats that got no answer in time go together again",
    file: "../sdk/task-beats.ts",
    find: "beat.one.goesAlone = timeout.aborted;",
    replace: "",
  },
  {
    name: "tasks: a task on a cell is offered before that is set up",
    file: "commands/task-poll.ts",
    find: "if (claims !== null && needsCells(tenant, claims)) prepare(",
    replace: 'if (claims !== null && task.record.id === "") prepare(',
  },
  {
    name: "tasks: a cell that fails is asked again at once",
    file: "tasks/task-binding.ts",
    find: "notBefore: turn.now + pause });",
    replace: "notBefore: turn.now + Math.min(pause, 1) });",
  },
  {
    name: "tasks: a restored kernel forgets what was prepared",
    file: "tasks/task-binding.ts",
    find: "  begin(tenant, task, lease.record.agentId);\n  makeReady(turn, task);\n  return true;",
    replace: "  return false;",
  },
  {
    name: "tasks: a heartbeat extends what is bound without a renewal",
    file: "commands/holding.ts",
    find: "if (one.record.cell === null) extendOne(turn, one, activity);",
    replace: "if (one.record.fence > 0) extendOne(turn, one, activity);",
  },
  {
    name: "tasks: an attempt outlives what a cell tears down",
    file: "leases/lease-life.ts",
    find: 'if (entry.holder.kind === "task") turn.state.consequences.push({ type: "task_lease_closing", lease: entry });',
    replace: "",
  },
  {
    name: "tasks: a task insists on what its own last attempt has not given back yet",
    file: "tasks/task-manifest.ts",
    find: 'const isPassedOver = isPoll && !(obstacle.kind === "lease" && obstacle.holder === task);',
    replace: "const isPassedOver = isPoll;",
  },
  {
    name: "tasks: a retry does not wait for its own teardown",
    file: "tasks/task-manifest.ts",
    find: "const closing = task.leaseCount === 0 ? null : findClosing(task, claims);",
    replace: "const closing = task.leaseCount < 0 ? findClosing(task, claims) : null;",
  },
  {
    name: "tasks: a task that may have any of several is not tried when one is freed",
    file: "requests/queue.ts",
    find: "if (tenant.book.choices.size > 0) freeChoices(turn, names);",
    replace: "",
  },
  {
    name: "tasks: a late result of a task that chose is measured by all it could have had",
    file: "leases/late-results.ts",
    find: "return [picked ?? resource, ...",
    replace: "void picked;\n  return [resource, ...",
  },
  {
    name: "tasks: any number of tasks is prepared for one worker",
    file: "commands/task-poll.ts",
    find: "offers.length + preparingFor(tenant, worker) >= wanted",
    replace: "offers.length >= wanted + preparingFor(tenant, worker)",
  },
  {
    name: "tasks: a worker's leases are revoked in the order in which memory has them",
    file: "memory/task-state.ts",
    find: "return [...leases].sort((a, b) => a.order - b.order);",
    replace: "return [...leases];",
  },
  {
    name: "tasks: no record says whom it asked to make room",
    file: "tasks/task-preemption.ts",
    find: "updateTask(turn, urgent, { roomRequest: { leaseId: attempt.leaseId, workerId: attempt.workerId, by } });",
    replace: "",
  },
  {
    name: "tasks: a task that a poll has not tried yet hides urgent ones behind it",
    file: "tasks/task-preemption.ts",
    find: "    setTaskAside(turn, next);\n",
    replace: "    if (putAside === 0) break;\n",
  },
  {
    name: "tasks: of those that wait for a key, the worker that had one before is not considered",
    file: "tasks/task-queue.ts",
    find: "return record.lastWorker === null ? lane.id :",
    replace: 'return record.status !== "dead" ? lane.id :',
  },
  {
    name: "tasks: a worker that was forgotten and comes back has had nothing before",
    file: "memory/task-state.ts",
    find: "if (record.lastWorker !== null) enterAffine",
    replace: "if (record.lastWorker !== null && tenant.book.workers.has(record.lastWorker)) enterAffine",
  },
  {
    name: "tasks: a parked task that is over the quota holds up others after a restart",
    file: "commands/task-poll.ts",
    find: "if (!isWithinQuota(tenant, task) && canRunNow(tenant, task)) return false;",
    replace: "if (!isWithinQuota(tenant, task)) return false;",
  },
  {
    name: "bound tasks: a restored task that is over expects late results",
    file: "restore.ts",
    find: " && mayComeLate && !isFinal(record)) awaitLateResult",
    replace: " && mayComeLate) awaitLateResult",
  },
];
