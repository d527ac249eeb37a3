/** Faults in steps over very many records (L14), in steps that throw (S2), and in the search of broad patterns (C5). */
import type { Mutant } from "./planted.ts";

const ofTheEngine = ["src/engine/step-faults.test.ts"];

export const longStepMutants: readonly Mutant[] = [
  {
    name: "a heartbeat for very many leases comes too late for those that end before their slice",
    file: "settle.ts",
    find: "    visitIfWalked(turn, lease);\n    if (lease.rank > turn.now) return;",
    replace: "",
  },
  {
    name: "a heartbeat for very many leases counts twice for one that was about to end",
    file: "leases/lease-walk.ts",
    find: "this.visitedEarly.add(lease);",
    replace: "",
  },
  {
    name: "a take-up of very many leases re-issues what began after it",
    file: "leases/lease-walk.ts",
    find: "lease.order > this.fence || ",
    replace: "",
  },
  {
    name: "a walk over very many leases touches those of others",
    file: "leases/lease-walk.ts",
    find: "lease.holder !== this.agent || ",
    replace: "",
  },
  {
    name: "a take-up of very many leases is answered before they are re-issued",
    file: "commands/agents.ts",
    find: "return isMany ? walkLeases(turn, agent, issueAgain) : null;",
    replace: "if (isMany) walkLeases(turn, agent, issueAgain);\n  return null;",
  },
  {
    name: "an answer lists all of very many leases",
    file: "commands/holding.ts",
    find: "if (this.kept.length < limits.leasesListedMax) this.kept.push(lease);",
    replace: "this.kept.push(lease);",
  },
  {
    name: "an agent that is about to be wounded with many others loses its age",
    file: "commands/holding.ts",
    find: "if (over.leaseEnd(lease)?.reason === woundedReason) return pauseWounded(turn, lease);",
    replace: "",
  },
  {
    name: "of very many holders in the way the older ones are wounded too",
    file: "requests/wounding.ts",
    find: "if (lease.holder === holder || lease.holder.priority <= priority) return false;",
    replace: "if (lease.holder === holder) return false;",
  },
  {
    name: "with very many in the way a requester that may not wait waits for an older holder",
    file: "deciding/decide.ts",
    find: "const isRefused = isMany && isOldest ? null :",
    replace: "const isRefused = isMany ? null :",
  },
  {
    name: "a release of very many leases loses their versions",
    file: "requests/sweep.ts",
    find: "endLeases(turn, [lease], end.as, end.reason, end.versionOf);",
    replace: "endLeases(turn, [lease], end.as, end.reason);",
  },
  {
    name: "an agent that released very many leases goes on with its unit of work",
    file: "commands/holding.ts",
    find: "  completeIfDone(turn, agent);\n  return answerAfter(turn, letting,",
    replace: "  return answerAfter(turn, letting,",
  },
  {
    name: "while very many are wounded the requester has no place in line",
    file: "commands/acquire.ts",
    find: "const waitTimeout = Math.max(manifest.waitTimeout, turn.tenant.record.settings.waitTimeoutMsDefault);",
    replace: "const waitTimeout = manifest.waitTimeout;",
  },
  {
    name: "patterns that differ after their last wildcard are taken for others",
    file: "names/pattern.ts",
    find: "if (isWild(left) || isWild(right)) break;\n    if (left !== right) return false;\n  }\n  return true;",
    replace: "if (left !== right) return false;\n  }\n  return true;",
  },
  {
    name: "a lease that is being revoked is still honoured",
    file: "commands/holding.ts",
    find: "if (sweeps.length === 0 || lease === undefined || !endIfSwept(turn, lease)) return lease;",
    replace: "if (sweeps.length >= 0) return lease;",
  },
  {
    name: "a sweep ends what began after it",
    file: "requests/sweep.ts",
    find: 'if (lease.record.state === "CLOSING" || lease.order > this.fence) return null;',
    replace: 'if (lease.record.state === "CLOSING") return null;',
  },
  {
    name: "a waiter is granted what is being fenced",
    file: "requests/queue.ts",
    find: 'if (request.record.state !== "WAITING" || isRequestSwept(tenant, request) || !fits(tenant, request)) continue;',
    replace: 'if (request.record.state !== "WAITING" || !fits(tenant, request)) continue;',
  },
  {
    name: "what a crash cut short is not completed",
    file: "unfinished.ts",
    find: "if (!isCutShort(tenant)) return;",
    replace: "if (isCutShort(tenant)) return;",
  },
  {
    name: "a task leaves before its dependents know how it ended",
    file: "tasks/task-life.ts",
    find: "task.leaseCount > 0 || task.dependents !== null) return;",
    replace: "task.leaseCount > 0) return;",
  },
  {
    name: "an older holder is overlooked",
    file: "deciding/seniority.ts",
    find: "if (left < 0 || obstructs(older.holder, claims, place)) return false;",
    replace: "if (left < 0) return false;",
  },
  {
    name: "a broad pattern counts the requester's own leases",
    file: "deciding/obstacles.ts",
    find: "countBelow(obstacles, node, held - (own.get(node) ?? 0));",
    replace: "countBelow(obstacles, node, held);",
  },
  {
    name: "an obstacle that was looked at is counted again",
    file: "deciding/obstacles.ts",
    find: "const count = held - (tallies.leases.get(node) ?? 0);",
    replace: "const count = held;",
  },
  {
    name: "what was counted below a narrow pattern is counted again below a broader one",
    file: "deciding/obstacles.ts",
    find: "if (tallies.counted.has(node)) {",
    replace: "if (node.parent === node) {",
  },
  {
    name: "waiters below a broad pattern are not counted",
    file: "deciding/obstacles.ts",
    find: "if (waiting > 0) eachWaitingBelow(branch, (one) => addWaitingAt(obstacles, one, weakest, holder, place));",
    replace: "",
  },
  {
    name: "conflicting leases are restored without a word",
    file: "stored-conflicts.ts",
    find: "const found = conflictAt(node, now);",
    replace: "const found = now < 0 ? conflictAt(node, now) : null;",
  },
  {
    name: "a quota by type does not wake the tasks that wait for it",
    file: "deciding/admission.ts",
    find: 'if (kind.parked !== null) state.consequences.push({ type: "kind_freed", kind });',
    replace: "",
  },
  {
    name: "an exception in the kernel leaves memory as it is",
    file: "../engine/engine.ts",
    find: "if (isFirst) this.drop();",
    replace: "",
    tests: ofTheEngine,
  },
  {
    name: "a store that is open is opened again",
    file: "../engine/engine.ts",
    find: "await this.store.close().catch(() => undefined);",
    replace: "",
    tests: ofTheEngine,
  },
  {
    name: "a deadline that throws is tried for ever",
    file: "../engine/set-aside.ts",
    find: "const failuresMax = 2;",
    replace: "const failuresMax = Number.POSITIVE_INFINITY;",
    tests: ofTheEngine,
  },
];
