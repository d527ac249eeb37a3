/** Wrong changes to what policies, scopes and the quota on lease time refuse (S4, L10). */
import type { Mutant } from "./planted.ts";

export const policyMutants: readonly Mutant[] = [
  {
    name: "policies: a deny rule is ignored",
    file: "policies/matching.ts",
    find: "if (denied !== undefined) return",
    replace: "if (denied === null) return",
  },
  {
    name: "policies: an allow rule is met by what it only touches",
    file: "policies/matching.ts",
    find: "resources.some((name) => nameCovers(name, resource))",
    replace: "resources.some((name) => namesOverlap(name, resource))",
  },
  {
    name: "policies: what no allow rule names is allowed",
    file: "policies/matching.ts",
    find: "if (part.allows.length > 0 && !part.allows.some",
    replace: "if (part.allows.length < 0 && !part.allows.some",
  },
  {
    name: "policies: a prefix of ids matches only itself",
    file: "policies/matching.ts",
    find: 'pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : pattern === text',
    replace: "pattern === text",
  },
  {
    name: "policies: agents lease a whole type",
    file: "deciding/permit.ts",
    find: "if (claim.name.wild && claim.intent.pick === null && isBroad(claim.name, depthMin))",
    replace: "if (claim.name.wild && claim.intent.pick !== null && isBroad(claim.name, depthMin))",
  },
  {
    name: "policies: the target of a rename is not checked",
    file: "deciding/permit.ts",
    find: "    const denial = denialOf(parts.lease, asked);\n    if (denial !== null) return explain(denial, asked, `intents",
    replace:
      "    const denial = isTarget ? null : denialOf(parts.lease, asked);\n    if (denial !== null) return explain(denial, asked, `intents",
  },
  {
    name: "policies: what is picked from is not checked",
    file: "policies/matching.ts",
    find: "  for (const part of parts) {\n    const denied",
    replace: "  if (asked.isPick) return null;\n  for (const part of parts) {\n    const denied",
  },
  {
    name: "policies: the ttl is not capped",
    file: "deciding/permit.ts",
    find: "return { ...manifest, ttl: cap.most, warnings",
    replace: "return { ...manifest, warnings",
  },
  {
    name: "the quota on lease time is ignored",
    file: "leases/lease-life.ts",
    find: "Math.min(now + ttl, acquiredAt + most)",
    replace: "now + ttl",
  },
  {
    name: "policies: the lease time of a policy is ignored",
    file: "leases/lease-life.ts",
    find: "most === null ? byQuota : Math.min(byQuota, acquiredAt + most)",
    replace: "most === null ? byQuota : byQuota",
  },
  {
    name: "policies: a renewal is not asked for again",
    file: "commands/holding.ts",
    find: " ?? whyNotPermittedAgain(turn, command.actor, together);",
    replace: " ?? void whyNotPermittedAgain ?? null;",
  },
  {
    name: "policies: the receiver of a transfer is not checked",
    file: "deciding/permit.ts",
    find: 'const by: Actor = isAbove(actor) ? actor : { role: "agent", agentId: id, epoch };',
    replace: "const by: Actor = isAbove(actor) || epoch > 0 ? actor : actor;",
  },
  {
    name: "policies: scopes are ignored when work is offered",
    file: "commands/task-poll.ts",
    find: "(work.length === 0 || mayWorkOn(work, worker.record.id, lane.taskType))",
    replace: "(work.length >= 0 || mayWorkOn(work, worker.record.id, lane.taskType))",
  },
  {
    name: "policies: a task's manifest is not checked",
    file: "deciding/permit.ts",
    find: "  const denied = whyNotClaimed(permissions, claims, agentId);\n  if (denied !== null) return denied;\n",
    replace: "",
  },
  {
    name: "policies: an agent loses the scopes of its key",
    file: "policies/permissions.ts",
    find: "return { role, keyId: agent.keyId, scopes: agent.scopes };",
    replace: "return { role, keyId: agent.keyId, scopes: null };",
  },
  {
    name: "policies: a restored kernel forgets that there are scopes",
    file: "restore.ts",
    find: "if (credentials.some(({ record }) => record.scopes !== null)) noteScopes(state);",
    replace: "void credentials;",
  },
  {
    name: "policies: a change is not noticed",
    file: "commands/policies.ts",
    find: '  forgetPermissions(state.tenants.values());\n  return { type: "policy", policy: record, created',
    replace: '  return { type: "policy", policy: record, created',
  },
  {
    name: "policies: a cell claims what it may not host",
    file: "commands/cells.ts",
    find: 'checkValues(kept, said) ?? whyNotPermitted(turn, actor, asked, "resource");',
    replace: "checkValues(kept, said) ?? (asked.id === actor.role ? null : null);",
  },
  {
    name: "policies: a scoped supervisor acts on any lease",
    file: "commands/holding.ts",
    find: "if (isAbove(actor)) return whyNotManaged(turn, actor, lease) ?? lease;",
    replace: "if (isAbove(actor)) return (actor.role === null ? whyNotManaged(turn, actor, lease) : null) ?? lease;",
  },
  {
    name: "policies: what was accepted cannot be completed after a change",
    file: "commands/submit-receipt.ts",
    find: 'if (phase !== "accepted" && !isAbove(actor)) return null;',
    replace: "if (phase === null && !isAbove(actor)) return null;",
  },
];
