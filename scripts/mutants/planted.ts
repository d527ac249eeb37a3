/**
 * Small wrong changes to the kernel, each of which some test must find. `find` is exact and stands once in the file, so
 * that a mutant whose code has moved on is noticed and brought up to date, and never quietly changes nothing.
 */
import { auditMutants } from "./planted-audit.ts";
import { byteMutants } from "./planted-bytes.ts";
import { cellMutants } from "./planted-cells.ts";
import { edgeMutants } from "./planted-edges.ts";
import { foreignMutants } from "./planted-foreign.ts";
import { historyMutants } from "./planted-history.ts";
import { longStepMutants } from "./planted-long-steps.ts";
import { observingMutants } from "./planted-observing.ts";
import { ownershipMutants } from "./planted-ownership.ts";
import { policyMutants } from "./planted-policies.ts";
import { requestMutants } from "./planted-requests.ts";
import { taskMutants } from "./planted-tasks.ts";

export interface Mutant {
  /** What is wrong then. */
  readonly name: string;
  /** In src/kernel. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The tests that must find it, where those of the kernel cannot. */
  readonly tests?: readonly string[];
}

export const mutants: readonly Mutant[] = [
  ...taskMutants,
  ...auditMutants,
  ...byteMutants,
  ...edgeMutants,
  ...foreignMutants,
  ...policyMutants,
  ...cellMutants,
  ...historyMutants,
  ...observingMutants,
  ...longStepMutants,
  ...ownershipMutants,
  ...requestMutants,
  // Time (L3, L4, L9, L10)
  {
    name: "a lease lives a millisecond too long",
    file: "memory/state.ts",
    find: "firstRank(ends) : Math.min(firstRank(waits), firstRank(ends));",
    replace: "firstRank(ends) + 1 : Math.min(firstRank(waits), firstRank(ends) + 1);",
  },
  {
    name: "a wait lives a millisecond too long",
    file: "memory/state.ts",
    find: "Math.min(firstRank(waits), firstRank(ends));",
    replace: "Math.min(firstRank(waits) + 1, firstRank(ends));",
  },
  {
    name: "timeouts are settled after grants",
    file: "settle.ts",
    find: "if (wait !== undefined && wait.rank <= now) return endWaitDue(",
    replace:
      "if (wait !== undefined && wait.rank <= now && (firstOf(state.ends)?.rank ?? now + 1) > now) return endWaitDue(",
  },
  {
    name: "a slice does one too many",
    file: "settle.ts",
    find: "if (settled >= limit) return true;",
    replace: "if (settled > limit) return true;",
  },
  {
    name: "a lease is held twice",
    file: "leases/lease-life.ts",
    find: "return holder.record.restarting && record.heldUntil === null;",
    replace: "return holder.record.restarting;",
  },
  {
    name: "a hold that is long over still begins",
    file: "settle.ts",
    find: 'if ((held.heldUntil ?? 0) <= turn.now) return endOneLease(turn, lease, "EXPIRED", null, null);',
    replace: "",
  },
  {
    name: "a held lease is revived without VERIFY_ALL",
    file: "deciding/extension.ts",
    find: 'if (lease.state !== "HELD" || lease.verified) return null;',
    replace: "return null;",
  },
  {
    name: "a capped TTL is not capped",
    file: "deciding/manifest.ts",
    find: "    ttl = settings.ttlMsMax;\n",
    replace: "",
  },
  {
    name: "nobody loses a grant it does not collect",
    file: "leases/lease-life.ts",
    find: 'if (claimBy !== null && claimBy < expiresAt && claimBy <= idleAt) return { at: claimBy, cause: "unclaimed" };',
    replace: "",
  },
  {
    name: "idle leases are not noticed",
    file: "leases/lease-life.ts",
    find: 'return idleAt < expiresAt ? { at: idleAt, cause: "idle" } : { at: expiresAt, cause: "expired" };',
    replace: 'return { at: expiresAt, cause: "expired" };',
  },
  {
    name: "the heap does not lift what takes a removed item's slot",
    file: "index/heap.ts",
    find: "if (slot > 0 && isBefore(last, heap[(slot - 1) >> 1] ?? last)) rise(heap, last, slot);\n  else sink",
    replace: "sink",
  },

  // Conflicts and their index (C1–C7)
  {
    name: "two providers get along",
    file: "contract/predicates.ts",
    find: "PROVIDES: PROVIDING,",
    replace: "PROVIDES: SHARED,",
  },
  {
    name: "`**` in a lease must take at least one segment",
    file: "index/resource-search.ts",
    find: "if (pattern.segment === DEEP) return walk(pattern, depth, through);",
    replace: "if (pattern.segment === DEEP) return walk(pattern, depth + 1, through);",
  },
  {
    name: "a glob overlap is missed: two patterns in one segment never meet",
    file: "index/resource-search.ts",
    find: "return segmentsOverlap(segment, pattern.segment) && walk(pattern, depth + 1, through);",
    replace:
      "return !isWildSegment(segment) && segmentsOverlap(segment, pattern.segment) && walk(pattern, depth + 1, through);",
  },
  {
    name: "a subtree's count is not taken down",
    file: "index/resource-tree.ts",
    find: "countAbove(side, node, item.strength, -1);",
    replace: "",
  },
  {
    name: "a node at which somebody waits is tidied away",
    file: "index/resource-tree.ts",
    find: "if (!isEmpty(node) || (node.waiting !== null && !isEmpty(node.waiting))) return false;",
    replace: "if (!isEmpty(node)) return false;",
  },
  {
    name: "a node with others below it is tidied away",
    file: "index/resource-tree.ts",
    find: "if (branch !== null || node.mark !== null) return false;",
    replace: "if (node.mark !== null) return false;",
  },
  {
    name: "names whose hashes collide are one",
    file: "index/hash-tables.ts",
    find: "&& this.textOf(item) === text) return at;",
    replace: ") return at;",
  },
  {
    name: "only the first intent of a manifest is looked at",
    file: "deciding/decide.ts",
    find: "if (!isObstructed(tenant, claim, agent, place, units)) continue;",
    replace: "if (claim !== claims[0]?.claim || !isObstructed(tenant, claim, agent, place, units)) continue;",
  },
  {
    name: "one's own units are not counted",
    file: "deciding/manifest.ts",
    find: "if (lease.node === resource.node) units += lease.record.units;",
    replace: "",
  },
  {
    name: "units of waiters ahead are not reserved",
    file: "deciding/manifest.ts",
    find: "return resource.heldUnits + unitsAhead(resource, place) + unitsClaimed <=",
    replace: "return resource.heldUnits + unitsClaimed <=",
  },
  {
    name: "units are not given back",
    file: "leases/lease-life.ts",
    find: "resource.heldUnits -= entry.record.units;",
    replace: "resource.heldUnits -= 1;",
  },
  {
    name: "a half of a rename is left alive",
    file: "requests/request-life.ts",
    find: 'const halves = lease.holder.kind === "task" ? [lease] : withLinked(turn.tenant, lease);',
    replace: "const halves = [lease];",
  },
  {
    name: "a pattern over a fenced resource is granted",
    file: "deciding/admission.ts",
    find: "const fencedOne = findResource(tenant, name, ({ record }) => record.fenced);",
    replace:
      "const exact = tenant.resources.get(name.text); const fencedOne = exact?.record.fenced ? exact : undefined;",
  },
  {
    name: "a fenced resource is granted",
    file: "deciding/admission.ts",
    find: "const fencedOne = findResource(tenant, name, ({ record }) => record.fenced);",
    replace: "const fencedOne = findResource(tenant, name, () => false);",
  },

  // Waiting (W1–W12)
  {
    name: "Wait-Die looks at the first holder only",
    file: "deciding/obstacles.ts",
    find: "obstacles.oldest = Math.min(obstacles.oldest, lease.holder.priority);",
    replace: "if (obstacles.leases.size === 1) obstacles.oldest = lease.holder.priority;",
  },
  {
    name: "Wait-Die looks at holders, not at waiters",
    file: "deciding/obstacles.ts",
    find: "obstacles.oldest = Math.min(obstacles.oldest, claim.request.holder.priority);",
    replace: "",
  },
  {
    name: "the young wait and the old die",
    file: "deciding/decide.ts",
    find: "if (isWaitDie && !isOldest && obstacles.oldest < priority)",
    replace: "if (isWaitDie && !isOldest && obstacles.oldest > priority)",
  },
  {
    name: "a young reader overtakes an old writer that waits",
    file: "deciding/obstacles.ts",
    find: "if (this.found !== null || node.waiting === null) continue;",
    replace: "if (this.found !== null || node.waiting === null || this.weakest === EXCLUSIVE) continue;",
  },
  {
    name: "a waiter overtakes one that conflicts and is ahead",
    file: "requests/queue.ts",
    find: "isFree(tenant, claim, request.holder, claim, unitsClaimed(claims, claim))",
    replace: "isFree(tenant, claim, request.holder, { order: 0, suborder: 0 }, unitsClaimed(claims, claim))",
  },
  {
    name: "a waiting manifest is granted when one of its intents fits",
    file: "requests/queue.ts",
    find: "return request.claims.every(",
    replace: "return request.claims.some(",
  },
  {
    name: "waiters are served last come, first served",
    file: "requests/queue.ts",
    find: "(isBefore(a, b) ? -1 : 1)",
    replace: "(isBefore(a, b) ? 1 : -1)",
  },
  {
    name: "waiters are not served when a lease is released",
    file: "memory/state.ts",
    find: "if (isAwaited(turn.tenant)) turn.state.freed.push(nameOf(lease));",
    replace: "",
  },
  {
    name: "waiters are not served when a lease is weakened",
    file: "leases/lease-life.ts",
    find: 'type: "lease_weakened", lease: entry });\n  freeNameOf(turn, entry);',
    replace: 'type: "lease_weakened", lease: entry });',
  },
  {
    name: "DIE takes a fresh timestamp",
    file: "agents/agent-life.ts",
    find: "concerned(entry, paused, over, pausedAt)",
    replace: 'concerned(entry, cause === "die" ? { ...paused, priority: turn.now + 1 } : paused, over, pausedAt)',
  },
  {
    name: "a grant does not forgive the deaths before it",
    file: "agents/agent-life.ts",
    find: "    attempts: 0,\n    pausedAt: null,\n    pausedFor: null,",
    replace: "    pausedAt: null,\n    pausedFor: null,",
  },
  {
    name: "a completed unit keeps its age for the next",
    file: "agents/agent-life.ts",
    find: 'return state === "COMPLETED" || state === "ABORTED";',
    replace: 'return state === "ABORTED";',
  },
  {
    name: "the first DIE's hint is doubled already",
    file: "deciding/verdicts.ts",
    find: "2 ** Math.min(attempt - 1, 40)",
    replace: "2 ** Math.min(attempt, 40)",
  },
  {
    name: "a weaker lease of one's own covers",
    file: "deciding/obstacles.ts",
    find: " || strengths[record.predicate] < strengths[claim.intent.predicate]) continue;",
    replace: ") continue;",
  },
  {
    name: "a dry run that dies counts",
    file: "commands/acquire.ts",
    find: "if (command.dryRun) return predict(",
    replace: 'if (command.dryRun && decision.type !== "die") return predict(',
  },
  {
    name: "keys are forgotten with the first newer request that ends",
    file: "requests/request-life.ts",
    find: "if (remembered.size > limits.requestMemoryPerTenantMax)",
    replace: "if (remembered.size > 1)",
  },
  {
    name: "the key of a wait that timed out stays taken",
    file: "requests/request-life.ts",
    find: "if (request.record.key !== null) agent.keys.delete(request.record.key);",
    replace: "",
  },
  {
    name: "seventeen blockers are named",
    file: "deciding/verdicts.ts",
    find: "leases.slice(0, limits.blockersListedMax)",
    replace: "leases.slice(0, limits.blockersListedMax + 1)",
  },
  {
    name: "the old is wounded by the young",
    file: "deciding/decide.ts",
    find: "return lease.holder.priority > priority &&",
    replace: "return lease.holder.priority < priority &&",
  },
  {
    name: "a closing lease is wounded again, and not waited for",
    file: "deciding/decide.ts",
    find: "else mustWait = true;",
    replace: 'else mustWait ||= lease.record.state !== "CLOSING";',
  },
  {
    name: "a wounded lease is free before its cell has torn it down",
    file: "deciding/decide.ts",
    find: "(wounds.has(lease) || obstacles.leases.has(lease))) mustWait = true;",
    replace: "(wounds.has(lease) || obstacles.leases.has(lease))) mustWait ||= false;",
  },
  {
    name: "the old waits behind young ones that wait",
    file: "deciding/decide.ts",
    find: "const place = isWaitDie ? lastPlace :",
    replace: "const place = tenant !== null ? lastPlace :",
  },
  {
    name: "a transfer may turn a wait round",
    file: "commands/handing-over.ts",
    find: "if (waitDie ? holder.priority < priority : holder.priority > priority) continue;",
    replace: "if (waitDie || holder.priority > priority) continue;",
  },

  // Leases, agents and cells (L11, L13, A3, G2, G7)
  {
    name: "a re-issued lease keeps its fence",
    file: "leases/lease-life.ts",
    find: "const fence = nextFence(turn);",
    replace: "const fence = entry.record.fence;",
  },
  {
    name: "a stranger may release",
    file: "commands/holding.ts",
    find: 'if (actor.role !== "agent" || actor.agentId !== holder.record.id) return notHolder(leaseId);',
    replace: 'if (actor.role !== "agent") return notHolder(leaseId);',
  },
  {
    name: "a stale epoch may heartbeat",
    file: "commands/holding.ts",
    find: "if (actor.epoch !== holder.record.epoch) {",
    replace: "if ((actor.epoch ?? 0) > holder.record.epoch) {",
  },
  {
    name: "a stale epoch may acquire",
    file: "memory/actors.ts",
    find: "if (actor.epoch !== agent.record.epoch) {",
    replace: "if ((actor.epoch ?? 0) > agent.record.epoch) {",
  },
  {
    name: "the older instance's leases are not re-issued",
    file: "commands/agents.ts",
    find: 'if (lease.record.state === "CLOSING") return;\n  reissue(turn, lease, lease.record);',
    replace: "void reissue;",
  },
  {
    name: "an agent that holds a lease is forgotten",
    file: "agents/agent-life.ts",
    find: "return leaseCount > 0 || open.size > 0 || standby !== null;",
    replace: "return open.size > 0 || standby !== null;",
  },
  {
    name: "the last lease of a quota is denied",
    file: "deciding/decide.ts",
    find: "tenant.leases.size + tenant.waitingClaims + claims.length > quotas.leasesMax",
    replace: "tenant.leases.size + tenant.waitingClaims + claims.length >= quotas.leasesMax",
  },
  {
    name: "a failed teardown frees the resource",
    file: "resources/cell-life.ts",
    find: "fence(turn, nameOf(lease), reason);",
    replace: "void reason;",
  },
  {
    name: "one bound lease grants the whole manifest",
    file: "requests/request-life.ts",
    find: "if (leases.some((lease) => lease.record.cellBy !== null)) return;",
    replace: "",
  },
  {
    name: "a restored kernel forgets how much is waited for",
    file: "restore.ts",
    find: 'if (record.state === "WAITING") enqueue(turn, request);',
    replace: "",
  },
];
