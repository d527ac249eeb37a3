/** Faults in who may use which name, and in keys (L13, R7, S5). */
import type { Mutant } from "./planted.ts";

export const ownershipMutants: readonly Mutant[] = [
  {
    name: "names: any agent key takes up an agent",
    file: "memory/actors.ts",
    find: "if (isOwn(actor, agent.record.registeredBy)) return null;",
    replace: "if (isOwn(actor, agent.record.registeredBy) || actor.keyId !== undefined) return null;",
  },
  {
    name: "names: a name without an owner is anybody's",
    file: "memory/actors.ts",
    find: "return owner !== null && owner === actor.keyId;",
    replace: "return owner === null || owner === actor.keyId;",
  },
  {
    name: "names: an older instance's token takes its agent up",
    file: "memory/actors.ts",
    find: "if (actor.agentId !== null) return mayActFor(actor, agent);",
    replace: "if (actor.agentId !== null) return null;",
  },
  {
    name: "names: a supervisor that enrols a cell comes to own it",
    file: "commands/cell-enrol.ts",
    find: "keyId: known === undefined ? ownerOf(actor) : known.record.keyId,",
    replace: "keyId: ownerOf(actor),",
  },
  {
    name: "names: an agent can have a key's id",
    file: "commands/agents.ts",
    find: "if (id.startsWith(keyIdPrefix)) {",
    replace: 'if (id.startsWith(keyIdPrefix) && id === "") {',
  },
  {
    name: "names: an expired operator's key counts as the last but one",
    file: "commands/keys.ts",
    find: 'role === "operator" && (expiresAt === null || expiresAt > now);',
    replace: 'role === "operator" && (expiresAt === null || expiresAt > 0);',
  },
  {
    name: "names: a former secret outlives its key's end",
    file: "commands/keys.ts",
    find: "Math.min(now + overlapMs, key.expiresAt ?? Number.POSITIVE_INFINITY);",
    replace: "now + overlapMs;",
  },
  {
    name: "names: an older instance's token cancels its tasks",
    file: "commands/tasks.ts",
    find: 'if (agent !== null && "code" in agent) return agent;',
    replace: 'if (agent !== null && "code" in agent && agent.code === "agent_unknown") return agent;',
  },
];
