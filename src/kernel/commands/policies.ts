/** Policies and scopes as an operator sets them (S4): what is not well-formed is refused, so that a typing error opens nothing. */
import { checkValue, checkValues } from "../contract/bounds.ts";
import { type CreateKey, commands, type DeletePolicy, type SetPolicy } from "../contract/commands.ts";
import { type InputValues, wireName } from "../contract/field.ts";
import { limits } from "../contract/limits.ts";
import {
  defaultPolicyId,
  type KeyScopes,
  keyScopes,
  type Policy,
  type PolicyRule,
  policyDefault,
  policyInput,
  policyLimits,
  policyRule,
  ruleDefault,
} from "../contract/policy-records.ts";
import type { Millis } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import { readName } from "../deciding/manifest.ts";
import { requireOperator } from "../memory/actors.ts";
import { changed, type State } from "../memory/state.ts";
import { conditionsOf } from "../policies/matching.ts";
import { forgetPermissions, placePolicy } from "../policies/permissions.ts";

/** Changes apply to what is asked for from now on; what is held stays, and renewals are asked for again (G8). */
export function setPolicy(state: State, command: SetPolicy, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const { entries } = state.policies;
  const record = readPolicy(state, command.policyId, command.policy, now);
  if ("code" in record) return record;
  const known = entries.get(record.id);
  if (known === undefined && entries.size >= limits.policiesMax) {
    return refuse("invalid_policy", `There may be ${limits.policiesMax} policies; delete one first.`, {
      field: "policy_id",
    });
  }
  changed({ state }, placePolicy(state.policies, record));
  forgetPermissions(state.tenants.values());
  return { type: "policy", policy: record, created: known === undefined };
}

export function deletePolicy(state: State, command: DeletePolicy): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const { policyId } = command;
  const entry = state.policies.entries.get(policyId);
  if (entry === undefined) {
    const detail =
      policyId === defaultPolicyId
        ? "This policy is built in; to replace it, set one of the same id, with no rules to allow everything."
        : "There is no such policy.";
    return refuse("policy_unknown", detail, { field: "policy_id" });
  }
  state.policies.entries.delete(policyId);
  entry.alive = false;
  changed({ state }, entry);
  forgetPermissions(state.tenants.values());
  return { type: "policy", policy: entry.record, created: false };
}

/** With its id, as a dry run proposes it: what was left out is null. */
export type PolicyGiven = InputValues<typeof policyInput> & { readonly policyId: string };

/** As it would be stored. */
export function readPolicy(
  { tenants, keys }: Pick<State, "tenants" | "keys">,
  id: string,
  given: InputValues<typeof policyInput>,
  now: Millis | null,
): Policy | Refusal {
  const input = { ...policyDefault, ...withoutNulls(given) };
  const refusal =
    checkValue("policy_id", commands.set_policy.policyId, id) ?? checkValues(policyInput, { ...input, rules: [] });
  if (refusal !== null) return refusal;
  if (input.rules.length > limits.policyRulesMax) {
    return invalid("rules", `may be ${limits.policyRulesMax}; make it two policies`);
  }
  const rules: PolicyRule[] = [];
  for (const [index, given] of input.rules.entries()) {
    const rule = readRule({ ...ruleDefault, ...withoutNulls(given) }, `rules.${index}`);
    if ("code" in rule) return rule;
    rules.push(rule);
  }
  // A name that nobody has would leave open what was meant to be closed.
  const tenant = input.tenants.find((one) => !tenants.has(one));
  if (tenant !== undefined) return refuse("tenant_unknown", `There is no tenant ${tenant}.`, { field: "tenants" });
  const key = input.keyIds.find((one) => !keys.has(one));
  if (key !== undefined) return refuse("key_unknown", `There is no key ${key}.`, { field: "key_ids" });
  const { description, tenants: of, roles, keyIds } = input;
  return { id, description, tenants: of, roles, keyIds, rules, changedAt: now };
}

function withoutNulls<T extends object>(given: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)) as {
    [K in keyof T]: NonNullable<T[K]>;
  };
}

function readRule(rule: PolicyRule, path: string): PolicyRule | Refusal {
  const refusal = checkValues(policyRule, rule);
  if (refusal !== null) return { ...refusal, field: `${path}.${refusal.field}` };
  const { effect, actions } = rule;
  for (const condition of ["resources", "predicates", "taskTypes", "ids"] as const) {
    if (rule[condition].length === 0 || actions.some((action) => conditionsOf[action].includes(condition))) continue;
    const name = wireName(condition, policyRule[condition]);
    return invalid(`${path}.${name}`, `concern none of its actions (${actions.join(", ")}); leave them out`);
  }
  const given = Object.entries(policyLimits).filter(([key]) => rule[key as keyof typeof policyLimits] !== null);
  const [[limit] = []] = given;
  if (effect === "limit" && limit === undefined) {
    const names = Object.entries(policyLimits).map(([key, field]) => wireName(key, field));
    return invalid(`${path}.effect`, `limit takes one of ${names.join(", ")}`);
  }
  if (effect === "limit" && actions.some((action) => action !== "lease")) {
    return invalid(`${path}.actions`, "of a limit are lease, and no others");
  }
  if (effect !== "limit" && limit !== undefined) {
    const name = wireName(limit, policyLimits[limit as keyof typeof policyLimits]);
    return invalid(`${path}.${name}`, `is for rules with effect limit; write a rule of its own`);
  }
  const resources = readResources(rule.resources, `${path}.resources`);
  return "code" in resources ? resources : { ...rule, resources };
}

/** In their canonical spelling (C3). */
function readResources(resources: readonly string[], path: string): readonly string[] | Refusal {
  const names: string[] = [];
  for (const [index, text] of resources.entries()) {
    const name = readName(text, `${path}.${index}`);
    if ("code" in name) return name;
    names.push(name.text);
  }
  return names;
}

/**
 * Null: the key has none. An operator changes policies and creates keys, and a reader changes nothing: what they were
 * narrowed to would mean nothing.
 */
export function readScopes({ role, scopes }: CreateKey["key"]): KeyScopes | Refusal | null {
  if (scopes === null) return null;
  const read = { ...ruleDefault, ...withoutNulls(scopes) };
  const refusal = checkValues(keyScopes, read);
  if (refusal !== null) return { ...refusal, field: `scopes.${refusal.field}` };
  if (role === "operator" || role === "reader") {
    const detail = `A key with the role ${role} takes no scopes; create one with another role, such as supervisor.`;
    return refuse("invalid_key", detail, { field: "scopes" });
  }
  const resources = readResources(read.resources, "scopes.resources");
  if ("code" in resources) return resources;
  const { predicates, taskTypes, ids, patternDepthMin, ttlMsMax, leaseTimeMsMax, unitsMax } = read;
  const all = { resources, predicates, taskTypes, ids, patternDepthMin, ttlMsMax, leaseTimeMsMax, unitsMax };
  const isEmpty = Object.values(all).every((value) => value === null || (Array.isArray(value) && value.length === 0));
  return isEmpty ? null : all;
}

function invalid(field: string, problem: string): Refusal {
  return refuse("invalid_policy", `${field} ${problem}.`, { field });
}
