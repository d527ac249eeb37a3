/** S4: the evaluator against a second one, which reads the policies as they are stored and tries every path. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Policy, type PolicyRule, policyActions, ruleDefault } from "../contract/policy-records.ts";
import { predicates } from "../contract/predicates.ts";
import { canonicalName } from "../names/resource-name.ts";
import { compilePolicy, denialOf, type Question, question } from "./matching.ts";

/**
 * All paths of up to five segments over two letters: small enough to say of each whether a pattern has it, and deep enough
 * for whatever a rule and a question of at most three segments each have in common.
 */
const letters = ["a", "b"];
const depthMax = 5;
const paths: readonly string[][] = Array.from({ length: depthMax }).reduce<string[][]>(
  (shorter) => [[], ...shorter.flatMap((path) => letters.map((letter) => [...path, letter]))],
  [[]],
);

/** Rules name literals with at most a final `**`: there covering is exact. */
const literal = fc.array(fc.constantFrom(...letters), { maxLength: 2 });
const ruleName = fc
  .tuple(literal, fc.boolean())
  .map(([segments, deep]) => `FILE:/${[...segments, ...(deep ? ["**"] : [])].join("/")}`);
const askedName = fc
  .array(fc.constantFrom("a", "b", "*", "**"), { maxLength: 3 })
  .map((segments) => `FILE:/${segments.join("/")}`);
const idPatterns = fc.array(fc.constantFrom("ci-1", "ci-*", "c*", "*", "w.1"), { maxLength: 2 });

const anyRule: fc.Arbitrary<PolicyRule> = fc
  .record({
    effect: fc.constantFrom("allow" as const, "allow" as const, "deny" as const, "limit" as const),
    actions: fc.subarray([...policyActions], { minLength: 1 }),
    resources: fc.array(ruleName, { maxLength: 2 }),
    predicates: fc.subarray(predicates.slice(0, 3)),
    taskTypes: idPatterns,
    ids: idPatterns,
    patternDepthMin: fc.option(fc.integer({ min: 1, max: 2 })),
    unitsMax: fc.option(fc.integer({ min: 1, max: 2 })),
  })
  .map((rule) => ({ ...ruleDefault, ...rule }));

const anyPolicy: fc.Arbitrary<Policy> = fc
  .array(anyRule, { maxLength: 4 })
  .map((rules) => ({ id: "p", description: null, tenants: [], roles: [], keyIds: [], rules, changedAt: 0 }));

const anyQuestion: fc.Arbitrary<Question> = fc
  .record({
    action: fc.constantFrom(...policyActions),
    name: askedName,
    predicate: fc.constantFrom(...predicates.slice(0, 3)),
    text: fc.constantFrom("ci-1", "ci-2", "w.1", "x"),
    units: fc.integer({ min: 1, max: 3 }),
    isPick: fc.boolean(),
    isOpen: fc.boolean(),
  })
  .map(questionFor);

interface Drawn extends Pick<Question, "action" | "units" | "isPick"> {
  readonly name: string;
  readonly predicate: (typeof predicates)[number];
  readonly text: string;
  readonly isOpen: boolean;
}

function questionFor({ action, name, predicate, text, units, isPick, isOpen }: Drawn): Question {
  const resource = canonicalName(name);
  switch (action) {
    case "lease":
      return { ...question, action, resource, predicate, id: text, units, isPick };
    case "manage_resource":
      return { ...question, action, resource };
    case "create_task":
      return { ...question, action, taskType: text };
    case "work":
      return { ...question, action, taskType: isOpen ? null : text, id: text };
    case "register_agent":
      return { ...question, action, id: text };
    case "host":
      return { ...question, action, resource: isOpen ? null : resource, id: text };
  }
}

/** What the page on policies says, word for word. */
function isAllowed({ rules }: Policy, asked: Question): boolean {
  const about = rules.filter(({ actions }) => actions.includes(asked.action));
  const allows = about.filter(({ effect }) => effect === "allow");
  if (about.some((rule) => rule.effect === "deny" && matches(rule, asked, "some"))) return false;
  if (allows.length > 0 && !allows.some((rule) => matches(rule, asked, "all"))) return false;
  return about
    .filter((rule) => rule.effect === "limit" && matches(rule, asked, "some"))
    .every(({ unitsMax, patternDepthMin }) => {
      if (unitsMax !== null && asked.units > unitsMax) return false;
      const { resource, isPick } = asked;
      if (patternDepthMin === null || resource === null || !resource.wild || isPick) return true;
      const plain = resource.segments.findIndex((segment) => segment.includes("*"));
      return plain >= patternDepthMin;
    });
}

function matches(rule: PolicyRule, asked: Question, how: "some" | "all"): boolean {
  const { action, resource, predicate, taskType, id } = asked;
  const isUnknown = how === "all";
  if (["lease", "manage_resource", "host"].includes(action) && rule.resources.length > 0) {
    if (resource === null) return isUnknown && matchesId(rule.ids, id);
    const wanted = pathsOf(resource.text);
    const isHit = rule.resources.some((name) =>
      how === "all" ? isWithin(wanted, resource.text, name) : wanted.some((path) => has(name, path)),
    );
    if (!isHit) return false;
  }
  if (action === "lease" && rule.predicates.length > 0 && !rule.predicates.some((one) => one === predicate))
    return false;
  if (["create_task", "work"].includes(action) && rule.taskTypes.length > 0) {
    if (taskType === null ? !isUnknown : !matchesId(rule.taskTypes, taskType)) return false;
  }
  return !["lease", "work", "register_agent", "host"].includes(action) || matchesId(rule.ids, id);
}

/** Deeper paths than are listed are reached by `**` alone, which only a rule with a final `**` covers. */
function isWithin(wanted: readonly (readonly string[])[], asked: string, name: string): boolean {
  if (asked.includes("**") && !name.endsWith("**")) return asked === name;
  return wanted.every((path) => has(name, path));
}

function pathsOf(name: string): readonly (readonly string[])[] {
  return paths.filter((path) => has(name, path));
}

function has(name: string, path: readonly string[]): boolean {
  const pattern = name.slice("FILE:/".length).split("/").filter(Boolean);
  const expression = pattern
    .map((segment) => (segment === "**" ? "(/[^/]+)*" : segment === "*" ? "/[^/]+" : `/${segment}`))
    .join("");
  return new RegExp(`^${expression}$`).test(path.map((segment) => `/${segment}`).join(""));
}

function matchesId(patterns: readonly string[], text: string | null): boolean {
  if (patterns.length === 0) return true;
  return (
    text !== null && patterns.some((one) => new RegExp(`^${one.replace(".", "\\.").replace("*", ".*")}$`).test(text))
  );
}

test("S4: the evaluator allows what a naive reading of the policy allows", () => {
  let denied = 0;
  fc.assert(
    fc.property(anyPolicy, anyQuestion, (policy, asked) => {
      const part = compilePolicy(policy).parts[asked.action];
      const isRefused = part !== undefined && denialOf([part], asked) !== null;
      if (isRefused) denied++;
      assert.equal(!isRefused, isAllowed(policy, asked));
    }),
    { numRuns: 5_000 },
  );
  assert(denied > 200);
});
