/** Why a policy does not allow something, in words: the policy, its rule, what was asked for, and what would be allowed. */
import type { PolicyAction } from "../contract/policy-records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal } from "../contract/replies.ts";
import { literalPrefixLength } from "../names/pattern.ts";
import type { Denial, Matcher, Question } from "./matching.ts";

/** How much of what is allowed a refusal lists. */
const listedMax = 8;

export function explain(denial: Denial, asked: Question, field: string | null): Refusal {
  const { part, matcher } = denial;
  const allowed = allowedInstead(denial, asked);
  const what = describe(asked);
  const by = part.scopesOf === null ? `The policy ${part.policy}` : `The ${part.policy}`;
  const rule = matcher === null || part.scopesOf !== null ? "" : ` (rule ${matcher.rule})`;
  return refuse("policy_denied", `${by}${rule} ${reasonOf(denial, asked, what, allowed)}; ${advice(part.scopesOf)}`, {
    ...(field !== null && { field }),
    policy: part.policy,
    ...(matcher !== null && { rule: matcher.rule }),
    asked: what,
    allowed,
  });
}

function reasonOf({ by, matcher }: Denial, { resource }: Question, what: string, allowed: readonly string[]): string {
  switch (by) {
    case "deny":
      return `does not allow ${what}`;
    case "allow":
      return allowed.length === 0
        ? `does not allow ${what}`
        : `allows ${allowed.join(", ")}, and ${what} is not within one of them`;
    case "depth": {
      const depth = resource === null ? 0 : literalPrefixLength(resource);
      const least = matcher?.limits.patternDepthMin ?? 1;
      return `wants ${least} plain ${least === 1 ? "segment" : "segments"} before a pattern's first wildcard, and ${resource?.text} has ${depth}`;
    }
    case "units":
      return `allows at most ${matcher?.limits.unitsMax} units, and ${what} asks for more`;
  }
}

function advice(scopesOf: string | null): string {
  return scopesOf === null
    ? "ask for what it allows, or ask an operator to change the policy."
    : "ask for what they allow, or ask an operator for a key with other scopes.";
}

/** Plain texts that one could ask for instead. */
function allowedInstead({ part, matcher, by }: Denial, { resource, action }: Question): readonly string[] {
  switch (by) {
    case "deny":
      return [];
    case "allow":
      return [...new Set(part.allows.flatMap((allow) => namesOf(allow, action)))].slice(0, listedMax);
    case "depth": {
      const literal = resource === null ? [] : resource.segments.slice(0, literalPrefixLength(resource));
      const missing = Array.from({ length: (matcher?.limits.patternDepthMin ?? 1) - literal.length }, () => "<name>");
      return [`${resource?.type ?? "TYPE"}:/${[...literal, ...missing].join("/")}/**`];
    }
    case "units":
      return [String(matcher?.limits.unitsMax ?? 1)];
  }
}

function namesOf({ resources, predicates, taskTypes, ids }: Matcher, action: PolicyAction): readonly string[] {
  const names = resources.map(({ text }) => text);
  if (action === "lease" && predicates.length > 0) {
    const verbs = predicates.join("|");
    return names.length === 0 ? [verbs] : names.map((name) => `${verbs} ${name}`);
  }
  return [...names, ...taskTypes, ...ids];
}

export function describe({ action, resource, predicate, taskType, id }: Question): string {
  const name = resource?.text ?? "";
  switch (action) {
    case "lease":
      return `${predicate ?? ""} ${name}`.trim();
    case "manage_resource":
      return `managing ${name}`;
    case "create_task":
      return `tasks of type ${taskType}`;
    case "work":
      return taskType === null ? `work as ${id}` : `work of type ${taskType} as ${id}`;
    case "register_agent":
      return `the agent ${id}`;
    case "host":
      return name === "" ? `the cell ${id}` : `${name} on the cell ${id}`;
  }
}
