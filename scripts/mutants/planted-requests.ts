/** Faults in how requests stand by, are collected and answered (W5, W8, W10, W14), and in lease time (L10). */
import type { Mutant } from "./planted.ts";

export const requestMutants: readonly Mutant[] = [
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
    find: 'decide(tenant, holder, picked, now).type !== "grant"',
    replace: 'decide(tenant, holder, picked, now).type === "die"',
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
    find: "becomePaused(turn, agent, true);",
    replace: "becomePaused(turn, agent, false);",
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
    find: "if ((claim as WaitingClaim).intent.pick === null) requests.add(",
    replace: "if ((claim as WaitingClaim).intent.pick !== null) requests.add(",
  },
];
