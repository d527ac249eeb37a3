/** Faults in how requests stand by, are collected and answered (W5, W8, W10, W14), in lease time (L10), and in keys (T1, T12). */
import type { Mutant } from "./planted.ts";

export const requestMutants: readonly Mutant[] = [
  {
    name: "C7: both halves of a second rename are linked to the first one's",
    file: "deciding/manifest.ts",
    find: "linkedIndex: claimAt + 1 }",
    replace: "linkedIndex: 1 }",
    tests: ["src/kernel/deciding/conflicts.test.ts"],
  },
  // DIE's hint (W5)
  {
    name: "a hint outgrows what the holders take",
    file: "deciding/verdicts.ts",
    find: "Math.min(retryMsCap, doubled, Math.max(retryMsBase, likelyMs(obstacles, now)))",
    replace: "Math.min(retryMsCap, doubled)",
  },
  {
    name: "a hint forgets those that wait ahead",
    file: "deciding/verdicts.ts",
    find: "const inTurnMs = longest * obstaclesTotal(obstacles);",
    replace: "const inTurnMs = longest;",
  },

  // Collecting (W8) and what is over (W10)
  {
    name: "a heartbeat does not collect a bound lease",
    file: "commands/holding.ts",
    find: "  if (collected !== null) collect(turn, collected);\n  if (activity) {",
    replace: "  if (activity) {",
  },
  {
    name: "a supervisor's read collects",
    file: "commands/requests.ts",
    find: 'return role === "agent" || keyId === undefined;',
    replace: "return role !== null || keyId === undefined;",
  },
  {
    name: "an acquire sent again collects though it says that it does not",
    file: "commands/acquire.ts",
    find: "describeRequest(turn, known, command.collect !== false)",
    replace: "describeRequest(turn, known)",
  },
  {
    name: "a restored lease does not know the key that it stands for",
    file: "restore.ts",
    find: "entry.holder.keys.set(record.requestKey, entry);",
    replace: "void entry;",
  },
  {
    name: "the key of an ended lease is free at once",
    file: "requests/stored-keys.ts",
    find: "  holder.keys.delete(record.requestKey);\n  noteKeyOfEnded(tenant, record);",
    replace: "  holder.keys.delete(record.requestKey);\n  void tenant;",
  },
  {
    name: "a lease that is handed over takes its giver's key along",
    file: "commands/handing-over.ts",
    find: "one.request ?? requestCarriedBy(turn, giver, one)",
    replace: "one.request",
  },
  {
    name: "an uncollected grant does not say by when it must be collected",
    file: "requests/describe.ts",
    find: "claimBy: claimByOf(tenant, request),",
    replace: "claimBy: request.record === null ? claimByOf(tenant, request) : null,",
  },
  {
    name: "a grant that is over is GRANTED",
    file: "requests/describe.ts",
    find: "if (record.ended.length > 0 && record.ended.length === record.leaseIds.length) return describeEnd(record);",
    replace: "",
  },

  // Wounds (W7)
  {
    name: "who is wounded and lets go of the rest is as young as a newcomer",
    file: "requests/request-life.ts",
    find: "for (const lease of leases) pauseWounded(turn, lease);",
    replace: "void pauseWounded;",
  },

  // Keys beyond what memory keeps (W10)
  {
    name: "a key that memory has no room for is left to nobody",
    file: "requests/stored-keys.ts",
    find: 'if (key === null || state !== "GRANTED" || forgetAt === null || forgetAt <= now) return null;',
    replace: 'if (key === null || state !== "GRANTED" || forgetAt === null || forgetAt > 0) return null;',
  },
  {
    name: "keys that the store has from before a restart are not looked up",
    file: "index/key-filter.ts",
    find: "  if (olderUntil > now) return true;\n",
    replace: "",
  },
  {
    name: "a key that was looked up is looked up for ever",
    file: "commands/acquire.ts",
    find: "  if (command.keyLookedUp === true) return null;\n",
    replace: "",
  },
  {
    name: "the store answers for another body under the same key",
    file: "commands/ended.ts",
    find: "return first === fingerprint ? endedRefusal(",
    replace: "return first.length + fingerprint.length > 0 ? endedRefusal(",
  },
  {
    name: "a request without a record tells anybody how it ended",
    file: "commands/ended.ts",
    find: "const seen = ended.filter((lease) => maySee(command.actor, lease));",
    replace: "const seen = ended;",
  },

  // Lease time (L10), withdrawal and renewal (G8, G12), held bound leases (L9)
  {
    name: "live lease time is not counted",
    file: "leases/lease-life.ts",
    find: "    bookedAt: bookLeaseTime(turn, lease),\n",
    replace: "",
  },
  {
    name: "a lease over midnight is booked whole",
    file: "deciding/admission.ts",
    find: "return now - Math.max(bookedAt ?? acquiredAt, windowAt(now));",
    replace: "return now - (bookedAt ?? acquiredAt);",
  },
  {
    name: "a holder avoids the tenant's idle timeout",
    file: "leases/lease-life.ts",
    find: "return most === null || wanted === null ? (most ?? wanted) : Math.min(most, wanted);",
    replace: "return wanted ?? most;",
  },
  {
    name: "a renewal counts as activity",
    file: "leases/lease-life.ts",
    find: 'const isActive = activity || lease.state === "HELD"',
    replace: 'const isActive = activity || lease.state !== "BINDING"',
  },
  {
    name: "a heartbeat extends what was withdrawn",
    file: "deciding/extension.ts",
    find: "  const withdrawn = tenant.resources.size === 0 ? null : whyWithdrawn(tenant, lease);\n  if (withdrawn !== null) return withdrawn;\n",
    replace: "",
  },
  {
    name: "a renewal skips admission",
    file: "deciding/extension.ts",
    find: "whyNotAdmitted(tenant, one) ?? whyTimeIsUp(",
    replace: "whyTimeIsUp(",
  },
  {
    name: "a held lease on a cell is revived without its cell",
    file: "commands/holding.ts",
    find: 'const rebinds = state === "HELD" && cell !== null;',
    replace: 'const rebinds = state === "HELD" && cell === "";',
  },
  {
    name: "a cell's report ends a lease that is held for a restart",
    file: "commands/cells.ts",
    find: '    if (holdTornDown(turn, lease)) return { type: "done" };\n',
    replace: "",
  },

  // Standby (W14)
  {
    name: "an agent that holds something stands by",
    file: "requests/standby.ts",
    find: "standbyMs === 0 || agent.leaseCount > 0 ||",
    replace: "standbyMs === 0 ||",
  },
  {
    name: "an agent that stands by stands by again",
    file: "requests/standby.ts",
    find: " || agent.standby !== null) return false;",
    replace: ") return false;",
  },
  {
    name: "what stands by is not tried when a name is freed",
    file: "aftermath.ts",
    find: "  serveStandby(turn, freed);\n",
    replace: "",
  },
  {
    name: "the youngest that stands by is served first",
    file: "requests/standby-index.ts",
    find: "order: agent.priority,",
    replace: "order: -agent.priority,",
  },
  {
    name: "what stands by is served in order of arrival",
    file: "requests/standby-index.ts",
    find: "order: agent.priority,",
    replace: "order: request.record.arrival,",
  },
  {
    name: "what stands by does not respect waiters and quotas",
    file: "requests/standby.ts",
    find: 'decide(tenant, holder, picked, now, turn.state.sliceMax).type !== "grant"',
    replace: 'decide(tenant, holder, picked, now, turn.state.sliceMax).type === "die"',
  },
  {
    name: "one that does not fit keeps those behind it from being tried",
    file: "requests/standby.ts",
    find: "    advance(cursors, cursor, claim);",
    replace: "    removeFrom(cursors, cursor);",
  },
  {
    name: "an agent that is granted something goes on standing by",
    file: "commands/acquire.ts",
    find: "function grant(turn: Turn, agent: AgentEntry, manifest: Manifest, command: Acquire): Reply {\n  if (agent.standby !== null) endStandby(turn, agent.standby, agent);\n",
    replace: "function grant(turn: Turn, agent: AgentEntry, manifest: Manifest, command: Acquire): Reply {\n",
  },
  {
    name: "an agent that is handed a lease goes on standing by",
    file: "commands/handing-over.ts",
    find: "  if (receiver.standby !== null) endStandby(turn, receiver.standby, receiver);\n",
    replace: "",
  },
  {
    name: "what stands by ends as a wait does",
    file: "settle.ts",
    find: '  if (wait.record.state === "STANDBY" && wait.holder.kind === "agent") return endStandby(turn, wait, wait.holder);\n',
    replace: "",
  },
  {
    name: "a death after standing by is not counted",
    file: "requests/standby.ts",
    find: 'becomePaused(turn, agent, "die", ',
    replace: 'becomePaused(turn, agent, "wait", ',
  },
  {
    name: "a restored kernel forgets what stands by",
    file: "restore.ts",
    find: '  if (record.state === "STANDBY") enterStandby(turn, request, holder);\n',
    replace: "",
  },
  {
    name: "a fenced resource is stood by for",
    file: "resources/resource-life.ts",
    find: "if (isWaitedFor(claim as WaitingClaim, name)) requests.add(",
    replace: "if (!isWaitedFor(claim as WaitingClaim, name)) requests.add(",
  },

  // Keys of polls and creations (T1, T12)
  {
    name: "tasks: a poll forgets what it has offered when the next one is answered",
    file: "commands/task-poll.ts",
    find: "poll.leaseIds.filter((id) => leases.get(id) !== undefined)",
    replace: "poll.leaseIds.filter((id) => leases.get(id) === undefined)",
  },
  {
    name: "tasks: fingerprints of version 0.1 are compared with today's",
    file: "names/fingerprint.ts",
    find: "stored?.includes(oldForm) === true ? oldTaskFingerprint(task) : taskFingerprint(task)",
    replace: "taskFingerprint(task)",
  },
  {
    name: "observing: what is asked for during a pause counts as seen until then",
    file: "agents/agent-life.ts",
    find: "concerned(entry, paused, over, pausedAt)",
    replace: "concerned(entry, paused, over, turn.now)",
  },
];
