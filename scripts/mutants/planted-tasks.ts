/** Wrong changes to what the kernel does with tasks, workers and receipts (T1–T13, R1–R5). */
import type { Mutant } from "./planted.ts";
import { boundTaskMutants } from "./planted-bound-tasks.ts";

export const taskMutants: readonly Mutant[] = [
  ...boundTaskMutants,
  // The queue (T7, T9, T12)
  {
    name: "tasks: priority does not count",
    file: "memory/task-state.ts",
    find: "return timestamp - spec.taskPriority * limits.taskAgeingMsPerLevel;",
    replace: "return timestamp;",
  },
  {
    name: "tasks: a worker with one of two capabilities is enough",
    file: "tasks/workers.ts",
    find: "return requires.every((tag) =>",
    replace: "return requires.length === 0 || requires.some((tag) =>",
  },
  {
    name: "tasks: a worker's own retry is not ahead for it",
    file: "commands/task-poll.ts",
    find: "if (isAffine) rank -= headStart(limits.taskAffinityLevels);",
    replace: "",
  },
  {
    name: "tasks: a key's slot is not given on when an attempt ends",
    file: "tasks/task-life.ts",
    find: "    task.key.running--;\n    offerSlots(turn, task.key);",
    replace: "    task.key.running--;",
  },
  {
    name: "tasks: a canceled task takes its key's turn with it",
    file: "tasks/task-life.ts",
    find: "if (wasReady && task.key !== null) offerSlots(turn, task.key);",
    replace: "",
  },
  {
    name: "tasks: a full key hides others of another limit",
    file: "memory/task-state.ts",
    find: "return concurrencyLimit === 1 ? kind :",
    replace: "return concurrencyLimit > 0 ? kind :",
  },
  {
    name: "tasks: what depends on a failed task runs all the same",
    file: "tasks/task-life.ts",
    find: 'if (task.record.status !== "succeeded") {',
    replace: 'if (task.record.status === "canceled") {',
  },
  {
    name: "the key of a creation is not noted",
    file: "tasks/task-queue.ts",
    find: "if (spec.idempotencyKey !== null) tenant.book.created.set(spec.idempotencyKey, task);",
    replace: "",
  },
  {
    name: "the key of a creation stays in memory when its task is over",
    file: "tasks/task-life.ts",
    find: "    tenant.book.created.delete(idempotencyKey);\n",
    replace: "    void 0;\n",
  },
  {
    name: "a key that no live task has is taken for a new one before history was asked",
    file: "commands/task-create.ts",
    find: 'return asksHistory ? { type: "task_key_unknown", key } : null;',
    replace: "return asksHistory === null ? null : null;",
  },

  // Manifests (T10)
  {
    name: "tasks: the other leases of a task outlive the one that ended",
    file: "tasks/task-life.ts",
    find: 'if (lease?.alive && lease.record.state !== "CLOSING") endLease(',
    replace: 'if (lease?.alive && lease.record.resource.startsWith("TASK:")) endLease(',
  },
  {
    name: "tasks: what a task's other leases free is not served",
    file: "leases/lease-life.ts",
    find: "if (!isTaskLease(entry.record)) freeNameOf(turn, entry);",
    replace: 'if (entry.holder.kind !== "task") freeNameOf(turn, entry);',
  },
  {
    name: "tasks: who is parked on a lease is not woken when it ends",
    file: "aftermath.ts",
    find: "      unparkFrom(turn, lease);\n      if (lease.",
    replace: "      if (lease.",
  },
  {
    name: "tasks: who is parked on a lease is not woken when it is weakened",
    file: "aftermath.ts",
    find: "return unparkFrom(turn, consequence.lease);",
    replace: "return;",
  },
  {
    name: "tasks: who is parked on a waiter is not woken when that is done",
    file: "aftermath.ts",
    find: "      unparkFrom(turn, request);\n",
    replace: "",
  },
  {
    name: "tasks: who was woken and cannot run does not bring the next",
    file: "tasks/task-parking.ts",
    find: "  wakeNext(turn, parking, task.lane);\n}",
    replace: "}",
  },
  {
    name: "tasks: a weaker successor keeps everybody parked",
    file: "tasks/task-parking.ts",
    find: "obstacle.record.resource === origin.resource && obstacle.strength >= origin.strength",
    replace: "obstacle.record.resource === origin.resource",
  },
  {
    name: "tasks: a manifest that never fits never queues",
    file: "tasks/task-manifest.ts",
    find: "task.passedOver > limits.taskPassedOverMax && insist(",
    replace: "task.passedOver < 0 && insist(",
  },
  {
    name: "tasks: a young task waits for the old",
    file: "tasks/task-manifest.ts",
    find: "if (!isOldest && obstaclesOf(tenant, task, claims).oldest < task.priority) return false;",
    replace: "",
  },

  // Its life and its ends (T2–T5, T8, T13)
  {
    name: "tasks: a wound burns the attempt",
    file: "tasks/task-life.ts",
    find: "if (isAccepted && !isLost && acceptedElsewhere(task) === undefined) {",
    replace: 'if (isAccepted && as === "RELEASED" && !isAcceptedByAnother(task)) {',
  },
  {
    name: "tasks: an attempt too many",
    file: "tasks/task-life.ts",
    find: 'if (attempts >= spec.maxAttempts) return die(turn, task, "max_retries_exceeded");\n  moveTask',
    replace: 'if (attempts > spec.maxAttempts) return die(turn, task, "max_retries_exceeded");\n  moveTask',
  },
  {
    name: "tasks: a revoked offer counts as refused",
    file: "tasks/task-life.ts",
    find: 'task.record.offers + (as === "REVOKED" ? 0 : 1)',
    replace: "task.record.offers + 1",
  },
  {
    name: "tasks: a zombie's complete counts while another has the task",
    file: "commands/submit-receipt.ts",
    find: 'if (record.live.length > 0) return refuse("stale_fence", "Another worker has the task now.", { taskId });',
    replace: "",
  },
  {
    name: "tasks: a late complete counts though others were granted its resources",
    file: "leases/late-results.ts",
    find: "for (const task of met) if (task !== holder) contestPast(turn, task);",
    replace: "",
  },
  {
    name: "tasks: a stale fence may complete",
    file: "commands/submit-receipt.ts",
    find: "&& (fence === null || one.fence === fence);",
    replace: "&& (fence === null || one.fence >= fence);",
  },
  {
    name: "tasks: an acceptance side by side is an attempt of its own",
    file: "commands/submit-receipt.ts",
    find: "record.attempts + (isCounted ? 1 : 0)",
    replace: "record.attempts + 1",
  },
  {
    name: "tasks: a called-off lease is extended by a heartbeat",
    file: "memory/task-state.ts",
    find: "if (attempt === undefined || attempt.canceled) return [];",
    replace: "if (attempt === undefined) return [];",
  },
  {
    name: "tasks: a cancelled worker keeps its lease as long as it likes",
    file: "tasks/task-life.ts",
    find: "Math.min(lease.record.expiresAt, turn.now + limits.taskCancelMs)",
    replace: "lease.record.expiresAt",
  },
  {
    name: "tasks: a third worker tries",
    file: "tasks/task-speculation.ts",
    find: "if (first === undefined || second !== undefined || first.canceled) return;",
    replace: "if (first === undefined || first.canceled) return;",
  },
  {
    name: "tasks: every preemptible worker is asked to make room",
    file: "tasks/task-preemption.ts",
    find: "if (isAnotherAsked(next, lease, turn.now)) continue;",
    replace: "",
  },
  {
    name: "tasks: a worker that ignores a preemption keeps its lease",
    file: "tasks/task-preemption.ts",
    find: 'endLeases(turn, [lease], "REVOKED", "preempted");\n    return true;',
    replace: "return false;",
  },
  {
    name: "tasks: a heartbeat wins time against a preemption",
    file: "leases/lease-life.ts",
    find: 'return typeof preemptBy === "number" ? Math.min(expiresAt, preemptBy) : expiresAt;',
    replace: "void preemptBy;\n  return expiresAt;",
  },
  {
    name: "tasks: a delayed task is urgent from its creation",
    file: "tasks/task-preemption.ts",
    find: "turn.now - (next.record.queuedAt ?? next.record.createdAt) <",
    replace: "turn.now - next.record.createdAt <",
  },
  {
    name: "tasks: an offer that was not delivered counts",
    file: "commands/tasks.ts",
    find: 'if (isTakenBack) endLeases(turn, [lease], "REVOKED", "undelivered");\n  else endLeases',
    replace: "void isTakenBack;\n  endLeases",
  },
  {
    name: "tasks: a worker that declined a task sees it first",
    file: "tasks/task-life.ts",
    find: "const lastWorker = acceptedAt === null ? task.record.lastWorker : workerId;",
    replace: "const lastWorker = workerId;",
  },
  {
    name: "tasks: a second attempt is announced to the worker that has the first",
    file: "memory/task-state.ts",
    find: "const runningOn = live[0]?.workerId ?? null;",
    replace: "const runningOn: string | null = live.length > 9 ? '' : null;",
  },
  {
    name: "tasks: held polls sleep when a full quota has room again",
    file: "leases/lease-life.ts",
    find: "if (tenant.book.isLeaseQuotaFull) offerAgain(turn);",
    replace: "void offerAgain;",
  },

  // Receipts and workers (R2–R5, T1)
  {
    name: "tasks: the same key with other content is the first receipt",
    file: "receipts/marks.ts",
    find: "if (mark.fingerprint !== receiptFingerprint(input)) return dedupeConflict();",
    replace: "",
  },
  {
    name: "tasks: a receipt's number is given twice",
    file: "receipts/receipts.ts",
    find: "updateCounters(turn, { receipts: sequence,",
    replace: "updateCounters(turn, { receipts: sequence - 1,",
  },
  {
    name: "receipts: a policy escalation always goes to the principal",
    file: "receipts/principals.ts",
    find: "    spec.supervisor ??\n",
    replace: "",
  },
  {
    name: "receipts: a task that nobody accepted is in no inbox",
    file: "tasks/task-life.ts",
    find: "if (!isOpen) openObligation(turn, task, supervisor);",
    replace: "",
  },
  {
    name: "receipts: a worker binds anybody",
    file: "receipts/principals.ts",
    find: "if (forPrincipal !== null && !isItselfOrFamily(forPrincipal, workerId))",
    replace: "if (forPrincipal === '')",
  },
  {
    name: "receipts: a worker says that the task was another",
    file: "receipts/principals.ts",
    find: "if (isAbove(actor)) return null;",
    replace: "if (actor.role !== 'reader') return null;",
  },
  {
    name: "receipts: any obligation will do",
    file: "receipts/principals.ts",
    find: "if (obligation.id === obligationId) return null;",
    replace: "return null;",
  },
  {
    name: "receipts: an offer's escalation is about the obligation of another",
    file: "receipts/receipts.ts",
    find: "isBound ? (task.record.obligation?.id ?? null) : null",
    replace: "isBound || task ? (task.record.obligation?.id ?? null) : null",
  },
  {
    name: "receipts: after one of two attempts the other's worker answers, not its custodian",
    file: "receipts/principals.ts",
    find: "return custodian ?? workerId;",
    replace: "void custodian;\n  return workerId;",
  },
  {
    name: "receipts: nobody is named as the sender",
    file: "receipts/receipts.ts",
    find: "draft.submittedBy = sender.submittedBy;",
    replace: "",
  },
  {
    name: "receipts: progress repeats the whole task",
    file: "receipts/receipts.ts",
    find: 'const own = phase === "progress" ? null : payload;',
    replace: "const own = payload;",
  },
  {
    name: "receipts: anybody discharges an obligation",
    file: "commands/custody.ts",
    find: "  if (refusal !== null) return refusal;\n  if (input.retry",
    replace: "  if (input.retry",
  },
  {
    name: "receipts: a late result passes as a custodian's word",
    file: "receipts/principals.ts",
    find: "return obligationId !== null || !past.some((one) => one.acceptedAt !== null && isMeant(one));",
    replace: "void [past, isMeant, obligationId];\n  return true;",
  },
  {
    name: "receipts: an obligation that is not overdue is recovered",
    file: "commands/custody.ts",
    find: 'if (task.kind !== "task" || task.record.obligation?.state !== "OVERDUE")',
    replace: 'if (task.kind !== "task" || task.record.obligation === null)',
  },
  {
    name: "receipts: no quota on the ledger",
    file: "deciding/admission.ts",
    find: 'if (draft.phase === "complete" || draft.phase === "escalate") return null;',
    replace: "if (draft.phase) return null;",
  },
  {
    name: "receipts: a worker uses up another's dedupe key",
    file: "receipts/marks.ts",
    find: 'return key.startsWith(idMark) ? key : `${submittedBy ?? ""}\\n${key}`;',
    replace: "void submittedBy;\n  return key;",
  },
  {
    name: "tasks: an escalated obligation stays with the worker",
    file: "tasks/task-life.ts",
    find: "if (other === undefined) moveObligation(turn, task, move, custodian);",
    replace: "if (other === undefined) moveObligation(turn, task, move, task.record.lastWorker ?? custodian);",
  },
  {
    name: "tasks: anybody's key may use a worker_id",
    file: "memory/actors.ts",
    find: "if (isOwn(actor, record.keyId)) return null;",
    replace: "if (record.keyId !== null) return null;",
  },
  {
    name: "tasks: a reclaimed lease keeps its fence",
    file: "commands/task-poll.ts",
    find: "noteReissued(turn, task);\n    offers.push",
    replace: "offers.push",
  },
  {
    name: "tasks: a poll that accepts leaves the receipt out",
    file: "commands/task-poll.ts",
    find: "const given = command.accept === true ?",
    replace: "const given = command.accept === null ?",
  },
  {
    name: "tasks: a poll that is repeated does not say what it accepted",
    file: "commands/task-poll.ts",
    find: "acceptedAs: accepted?.receiptId ?? null,",
    replace: "acceptedAs: record.live.length > 1 ? (accepted?.receiptId ?? null) : null,",
  },
  {
    name: "receipts: a key of another lease is taken",
    file: "receipts/receipts.ts",
    find: "if (keyLease !== null && keyLease !== input.leaseId)",
    replace: "if (keyLease !== null && input.leaseId === null)",
  },

  // Restoring
  {
    name: "tasks: a restored kernel forgets that a key's tasks run",
    file: "restore.ts",
    find: "if (task.key !== null) task.key.running++;",
    replace: "",
  },
  {
    name: "tasks: a restored kernel takes late results that were contested",
    file: "restore.ts",
    find: "awaitLateResult(turn, task);",
    replace: "",
  },
];
