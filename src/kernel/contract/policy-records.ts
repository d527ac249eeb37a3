/** Policies (S4): what roles and keys may ask for, as plain data; and the scopes of a key, which are a policy of its own. */
import { choice, type Field, given, integer, list, named, optional, text, time, usual, type Values } from "./field.ts";
import { agentId, keyId, resourceName, taskType, tenantId } from "./inputs.ts";
import { limits } from "./limits.ts";
import { predicates } from "./predicates.ts";

export const roles = ["operator", "supervisor", "agent", "worker", "reader", "cell"] as const;
export type Role = (typeof roles)[number];

/**
 * `allow`: of the actions that it names, the policy allows nothing that none of its `allow` rules matches. `deny`: what it
 * matches is refused, whatever else allows it. `limit`: leases that it matches keep within its limits.
 */
export const policyEffects = ["allow", "deny", "limit"] as const;
export type PolicyEffect = (typeof policyEffects)[number];

/** What a rule is about. Which of a rule's conditions concern an action is said in policies/matching.ts. */
export const policyActions = [
  /** To lease: acquire, renew, receive, downgrade to; and to create a task whose manifest names it. */
  "lease",
  /** To declare, fence, reset or withdraw a resource, and to act on the leases of others. */
  "manage_resource",
  /** To create a task; for those above also to cancel it, to redrive it, and to set up its type. */
  "create_task",
  /** To poll for tasks and to accept them. */
  "work",
  /** To register an agent or take it up; for those above also to pause it. */
  "register_agent",
  /** To enrol a cell, and to host resources on it. */
  "host",
] as const;
export type PolicyAction = (typeof policyActions)[number];

const error = "invalid_policy" as const;
const none: readonly never[] = [];
const some = <T>(items: Field<T>): Field<readonly T[] | null, readonly T[]> =>
  optional(list({ ...items, error }, { max: limits.policyItemsMax, error }), none as readonly T[]);

/** Matches an id or a type: itself, or with a final `*` all that begin so. */
const idPattern = text({ min: 1, max: limits.idLengthMax, error });

const conditions = {
  /** Names and patterns (C4); empty: any. */
  resources: some(resourceName),
  predicates: some(choice(predicates)),
  taskTypes: some(text({ ...taskType, error })),
  /** Of the agent, worker or cell. */
  ids: some(idPattern),
};

export const policyLimits = {
  /** How many segments of a pattern are plain names before its first wildcard, at least. */
  patternDepthMin: optional(integer({ min: 1, max: limits.policyDepthMax, error })),
  /** Capped, as by the tenant's own maximum (L2). */
  ttlMsMax: optional(integer({ min: limits.ttlMsMin, error })),
  /** The longest that a lease may live, however often it is extended (L10). */
  leaseTimeMsMax: optional(integer({ min: limits.ttlMsMin, error })),
  unitsMax: optional(integer({ min: 1, max: limits.unitsMax, error })),
};
export interface PolicyLimits extends Values<typeof policyLimits> {}

export const policyRule = {
  /** Shown in refusals; without one it is named by its number. */
  name: optional(text({ min: 1, max: limits.labelLengthMax, error })),
  effect: choice(policyEffects, { error }),
  actions: list(choice(policyActions, { error }), { min: 1, max: policyActions.length, error }),
  ...conditions,
  ...policyLimits,
};
export interface PolicyRule extends Values<typeof policyRule> {}
export const ruleDefault = usual(policyRule) as Omit<PolicyRule, "effect" | "actions">;

export const policyId = text({
  min: 1,
  max: limits.policyIdLengthMax,
  matching: { pattern: /^[a-z0-9][a-z0-9._-]*$/, words: "lower-case letters, digits and . _ -" },
  error,
});

/** As a caller gives it. To whom it applies: each of the three lists that is empty means all. */
export const policyInput = {
  description: optional(text({ max: limits.reasonLengthMax, error })),
  tenants: some(tenantId),
  roles: some(choice(roles)),
  keyIds: some(keyId),
  rules: list(given(policyRule), { max: limits.policyRulesMax, error }),
};

export const policyDefault = usual(policyInput) as Omit<Values<typeof policyInput>, "rules">;

export const policy = {
  id: named("policy_id", text()),
  description: optional(text()),
  tenants: policyInput.tenants,
  roles: policyInput.roles,
  keyIds: policyInput.keyIds,
  rules: list({ kind: "record", fields: policyRule } as Field<PolicyRule>),
  /** null: built in. */
  changedAt: optional(time()),
};
export interface Policy extends Values<typeof policy> {}

/** What a key may do, within what its role and the policies allow. What is empty or null limits nothing. */
export const keyScopes = {
  resources: conditions.resources,
  predicates: conditions.predicates,
  taskTypes: conditions.taskTypes,
  ids: conditions.ids,
  ...policyLimits,
};
export interface KeyScopes extends Values<typeof keyScopes> {}

export const defaultPolicyId = "default";

/** What holds until an operator sets a policy of this id: agents do not lease a whole type. */
export const builtInPolicy: Policy = {
  id: defaultPolicyId,
  description: "Built in: agents and workers lease no pattern that begins with a wildcard, such as FILE:/**.",
  tenants: none,
  roles: ["agent", "worker"],
  keyIds: none,
  rules: [
    {
      ...ruleDefault,
      name: "no-whole-type",
      effect: "limit",
      actions: ["lease"],
      patternDepthMin: 1,
    },
  ],
  changedAt: null,
};

/** One question of a dry run. */
export const policyCheck = {
  action: choice(policyActions, { error }),
  resource: optional(text({ ...resourceName, error })),
  predicate: optional(choice(predicates, { error })),
  taskType: optional(text({ ...taskType, error })),
  /** Of the agent, worker or cell. */
  id: optional(text({ ...agentId, min: 1, max: limits.idLengthMax, error })),
};
