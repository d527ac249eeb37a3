/**
 * What a policy makes of one question (S4). Rules are compiled once, when the policy is set: names parsed, and for each
 * action only the conditions that concern it.
 *
 *   an `allow` rule matches what it covers whole; a `deny` or `limit` rule what it overlaps: doubt is never in favour
 */
import {
  type KeyScopes,
  type Policy,
  type PolicyAction,
  type PolicyLimits,
  type PolicyRule,
  policyActions,
  ruleDefault,
} from "../contract/policy-records.ts";
import type { Predicate } from "../contract/predicates.ts";
import { literalPrefixLength, nameCovers, namesOverlap } from "../names/pattern.ts";
import { canonicalName, type ResourceName } from "../names/resource-name.ts";

type Condition = "resources" | "predicates" | "taskTypes" | "ids";

/** The conditions that concern an action; of a rule for several actions, the others are left out for it. */
export const conditionsOf: Readonly<Record<PolicyAction, readonly Condition[]>> = {
  lease: ["resources", "predicates", "ids"],
  manage_resource: ["resources"],
  create_task: ["taskTypes"],
  work: ["taskTypes", "ids"],
  register_agent: ["ids"],
  host: ["resources", "ids"],
};

/** One thing that a caller wants to do. */
export interface Question {
  readonly action: PolicyAction;
  /** null: none yet, as of a cell that has listed nothing. */
  readonly resource: ResourceName | null;
  readonly predicate: Predicate | null;
  /** null: any that is allowed, as of a worker that polls for whatever there is. */
  readonly taskType: string | null;
  /** Of the agent, worker or cell. */
  readonly id: string | null;
  readonly units: number;
  /** One of the resources that the pattern matches is leased, and not the pattern. */
  readonly isPick: boolean;
}

export const question = {
  resource: null,
  predicate: null,
  taskType: null,
  id: null,
  units: 1,
  isPick: false,
} satisfies Omit<Question, "action">;

/** A rule as far as it concerns one action. An empty condition is met by everything. */
export interface Matcher {
  /** Its name, or its number from 1. */
  readonly rule: string;
  readonly resources: readonly ResourceName[];
  readonly predicates: readonly string[];
  readonly taskTypes: readonly string[];
  readonly ids: readonly string[];
  readonly limits: PolicyLimits;
}

/** What one policy says about one action. */
export interface Part {
  readonly policy: string;
  /** The key whose scopes these are; null: a policy that is stored. */
  readonly scopesOf: string | null;
  readonly allows: readonly Matcher[];
  readonly denies: readonly Matcher[];
  readonly limits: readonly Matcher[];
}

export interface CompiledPolicy {
  readonly policy: Policy;
  /** Actions that it says nothing about are absent. */
  readonly parts: Readonly<Partial<Record<PolicyAction, Part>>>;
}

/** Why it is not allowed: the part, and the rule of it that matched; null: none of its `allow` rules did. */
export interface Denial {
  readonly part: Part;
  readonly matcher: Matcher | null;
  readonly by: "allow" | "deny" | "depth" | "units";
}

export function compilePolicy(policy: Policy): CompiledPolicy {
  return { policy, parts: partsOf(policy.id, null, policy.rules) };
}

/** The scopes of a key: a policy for it alone, which allows nothing else. */
export function compileScopes(keyId: string, scopes: KeyScopes): CompiledPolicy["parts"] {
  const { resources, predicates, taskTypes, ids, ...limits } = scopes;
  const rules: PolicyRule[] = [];
  const allow = (actions: readonly PolicyAction[], conditions: Partial<PolicyRule>): void => {
    rules.push({ ...ruleDefault, ...conditions, name: "scopes", effect: "allow", actions });
  };
  if (resources.length > 0 || predicates.length > 0) allow(["lease"], { resources, predicates });
  if (resources.length > 0) allow(["manage_resource"], { resources });
  if (taskTypes.length > 0) allow(["create_task"], { taskTypes });
  if (taskTypes.length > 0 || ids.length > 0) allow(["work"], { taskTypes, ids });
  if (ids.length > 0) allow(["register_agent"], { ids });
  if (resources.length > 0 || ids.length > 0) allow(["host"], { resources, ids });
  const hasLimits = Object.values(limits).some((limit) => limit !== null);
  if (hasLimits) rules.push({ ...ruleDefault, ...limits, name: "scopes", effect: "limit", actions: ["lease"] });
  return partsOf(`scopes of ${keyId}`, keyId, rules);
}

function partsOf(policy: string, scopesOf: string | null, rules: readonly PolicyRule[]): CompiledPolicy["parts"] {
  const parts: Partial<Record<PolicyAction, Part>> = {};
  for (const action of policyActions) {
    const part = { policy, scopesOf, allows: [] as Matcher[], denies: [] as Matcher[], limits: [] as Matcher[] };
    const lists = { allow: part.allows, deny: part.denies, limit: part.limits };
    for (const [index, rule] of rules.entries()) {
      if (rule.actions.includes(action)) lists[rule.effect].push(matcherOf(rule, action, index));
    }
    if (part.allows.length + part.denies.length + part.limits.length > 0) parts[action] = part;
  }
  return parts;
}

function matcherOf(rule: PolicyRule, action: PolicyAction, index: number): Matcher {
  const conditions = conditionsOf[action];
  const of = <C extends Condition>(condition: C): PolicyRule[C] | readonly [] =>
    conditions.includes(condition) ? rule[condition] : [];
  const { patternDepthMin, ttlMsMax, leaseTimeMsMax, unitsMax } = rule;
  return {
    rule: rule.name ?? String(index + 1),
    resources: of("resources").map(canonicalName),
    predicates: of("predicates"),
    taskTypes: of("taskTypes"),
    ids: of("ids"),
    limits: { patternDepthMin, ttlMsMax, leaseTimeMsMax, unitsMax },
  };
}

/** Null: all of them allow it. A policy without a rule about the action does. */
export function denialOf(parts: readonly Part[], asked: Question): Denial | null {
  for (const part of parts) {
    const denied = part.denies.find((matcher) => overlaps(matcher, asked));
    if (denied !== undefined) return { part, matcher: denied, by: "deny" };
    if (part.allows.length > 0 && !part.allows.some((matcher) => covers(matcher, asked)))
      return { part, matcher: null, by: "allow" };
    for (const matcher of part.limits) {
      const by = overlaps(matcher, asked) ? exceeded(matcher.limits, asked) : null;
      if (by !== null) return { part, matcher, by };
    }
  }
  return null;
}

function exceeded({ patternDepthMin, unitsMax }: PolicyLimits, { resource, isPick, units }: Question) {
  if (unitsMax !== null && units > unitsMax) return "units";
  if (patternDepthMin === null || resource === null || isPick) return null;
  return isBroad(resource, patternDepthMin) ? "depth" : null;
}

/** Whether a pattern has fewer plain segments before its first wildcard than it needs. */
export function isBroad(name: ResourceName, depthMin: number): boolean {
  return name.wild && literalPrefixLength(name) < depthMin;
}

/** Some of what is asked for is what the rule names. What is not known yet is asked about again when it is. */
export function overlaps({ resources, predicates, taskTypes, ids }: Matcher, asked: Question): boolean {
  const { resource, predicate, taskType, id } = asked;
  return (
    (resources.length === 0 || (resource !== null && resources.some((name) => namesOverlap(name, resource)))) &&
    (predicates.length === 0 || (predicate !== null && predicates.includes(predicate))) &&
    (taskTypes.length === 0 || (taskType !== null && matchesAny(taskTypes, taskType))) &&
    (ids.length === 0 || (id !== null && matchesAny(ids, id)))
  );
}

/** All of what is asked for is what the rule names. */
function covers({ resources, predicates, taskTypes, ids }: Matcher, asked: Question): boolean {
  const { resource, predicate, taskType, id } = asked;
  return (
    (resources.length === 0 || resource === null || resources.some((name) => nameCovers(name, resource))) &&
    (predicates.length === 0 || (predicate !== null && predicates.includes(predicate))) &&
    (taskTypes.length === 0 || taskType === null || matchesAny(taskTypes, taskType)) &&
    (ids.length === 0 || (id !== null && matchesAny(ids, id)))
  );
}

export function mayWorkOn(parts: readonly Part[], workerId: string, taskType: string): boolean {
  return denialOf(parts, { ...question, action: "work", id: workerId, taskType }) === null;
}

/** A pattern of ids is a text, or with a final `*` all that begin so. */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => (pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : pattern === text));
}
