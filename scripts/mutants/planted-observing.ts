/** Faults in observation updates and assumptions (A1, A4 to A6). */
import type { Mutant } from "./planted.ts";

export const observingMutants: readonly Mutant[] = [
  {
    name: "a downgrade leaves no trace of what was written",
    file: "commands/handing-over.ts",
    find: "    noteHandover(turn, one.record, turn.now, command.version);\n",
    replace: "",
  },
  {
    name: "a transfer leaves no trace of what was written",
    file: "commands/handing-over.ts",
    find: "    noteHandover(turn, one.record, now, command.version);\n",
    replace: "",
  },
  {
    name: "an update tells an agent of its own writes",
    file: "agents/observing.ts",
    find: "if (!entry.writes || entry.record.holder === this.holder) return false;",
    replace: "if (!entry.writes) return false;",
  },
  {
    name: "an update tells of readers",
    file: "agents/observing.ts",
    find: "if (!entry.writes || entry.record.holder === this.holder) return false;",
    replace: "if (entry.record.holder === this.holder) return false;",
  },
  {
    name: "an update forgets what the agent died for",
    file: "agents/observing.ts",
    find: "for (const concern of concerns) cover(concern.resource, Math.min(concern.since, since));",
    replace: "",
  },
  {
    name: "an update forgets the backlog",
    file: "agents/observing.ts",
    find: "for (const resource of resourcesOf(digest?.intentBacklog ?? [])) cover(resource, fallback);",
    replace: "",
  },
  {
    name: "an update forgets what the agent holds",
    file: "agents/observing.ts",
    find: "if (!covered.has(resource)) search.gather(resource, since, false);",
    replace: "",
  },
  {
    name: "an update does not look further back than the pause",
    file: "agents/observing.ts",
    find: "const look = looks ? lastLook(this.tenant, name, this.holder) : null;",
    replace: "const look = null as Write | null;",
  },
  {
    name: "the oldest changes are listed instead of the newest",
    file: "agents/observing.ts",
    find: "sort(newestFirst).slice(0, limits.changesListedMax)",
    replace: "sort(newestFirst).slice(-limits.changesListedMax)",
  },
  {
    name: "an update never says that it is truncated",
    file: "agents/observing.ts",
    find: "truncated: this.isCut || earliest < this.knownFrom,",
    replace: "truncated: false,",
  },
  {
    name: "what an agent died for is forgotten before it holds it",
    file: "agents/observing.ts",
    find: "const left = concerns.filter(({ resource }) => !isHeld(resource));",
    replace: "const left = concerns.filter(({ resource }) => isHeld(resource) && false);",
  },
  {
    name: "a lost lease is nobody's concern",
    file: "agents/agent-life.ts",
    find: "if (agent !== holder.record) updateAgent(turn, holder, agent);",
    replace: "",
  },
  {
    name: "who loses the last lease goes on",
    file: "agents/agent-life.ts",
    find: "  pauseIfBare(turn, holder);\n}\n",
    replace: "}\n",
  },
  {
    name: "EXECUTING can be said without a lease",
    file: "commands/agents.ts",
    find: 'if (to === "EXECUTING" && !holdsLive(turn, agent)) {',
    replace: 'if (to === "EXECUTING" && agent.record.epoch < 0) {',
  },
  {
    name: "EXECUTING by word skips the update",
    file: "commands/agents.ts",
    find: 'const observation = to === "EXECUTING" ? observe(turn, agent, since ?? turn.now, []) : null;',
    replace: "const observation = null;",
  },
  {
    name: "a heartbeat that collects skips the update",
    file: "commands/holding.ts",
    find: "const collected = extend(turn, lease, command.activity);",
    replace: "const collected = extend(turn, lease, command.activity) === null ? null : null;",
  },
  {
    name: "a grant that was never collected counts as seen",
    file: "memory/past.ts",
    find: "lease.version, lease.claimBy === null);",
    replace: "lease.version, true);",
  },
  {
    name: "a search for patterns skips what is newest",
    file: "memory/past.ts",
    find: 'below: (_node, branch) => (branch.newest < since() ? "skip" : "enter"),',
    replace: 'below: (_node, branch) => (branch.newest >= since() ? "skip" : "enter"),',
  },
  {
    name: "the last write of a name is forgotten with the others",
    file: "memory/past.ts",
    find: "if (entry.name.lastWrite !== entry || entry.record.version === null) return forget(place, entry);",
    replace: "if (entry.name.lastWrite !== entry || entry.writes) return forget(place, entry);",
  },
  {
    name: "what was superseded stays stored for ever",
    file: "memory/past.ts",
    find: "if (superseded !== null && past.kept.has(superseded)) forget(place, superseded);",
    replace: "",
  },
  {
    name: "an assumption of which nothing is known holds",
    file: "agents/observing.ts",
    find: 'if (last === null) return judged("unverified", null);',
    replace: 'if (last === null) return judged("holds", null);',
  },
  {
    name: "an unreported write fails no assumption",
    file: "agents/observing.ts",
    find: 'return judged(isNews ? "failed" : "unverified", null);',
    replace: 'return judged(isNews ? "unverified" : "unverified", null);',
  },
  {
    name: "a failed assumption keeps the digest",
    file: "commands/agents.ts",
    find: "const letting = isFailed ? replan(turn, agent) : null;",
    replace: "const letting = isFailed ? null : null;",
  },
  {
    name: "a restart forgets the writes of ended leases",
    file: "restore.ts",
    find: "  restorePast(restoring, ended);\n",
    replace: "",
  },
];
