/** Policies on the wire: their rules, the scopes of a key, and what a dry run asks. */
import { keyScopes, policyCheck, type policyInput, policyRule } from "../../kernel/contract/policy-records.ts";
import { shape, type Words } from "../schema/from-fields.ts";

const conditionWords = {
  resources: "Names and patterns, such as `FILE:/shop/src/**`; empty: any.",
  predicates: "Empty: any.",
  task_types: "Types of tasks; with a final `*` all that begin so; empty: any.",
  ids: "Ids of agents, workers or cells; with a final `*` all that begin so; empty: any.",
};

const limitWords = {
  pattern_depth_min:
    "How many plain segments a pattern has before its first wildcard, at least; 1 keeps out `FILE:/**`.",
  ttl_ms_max: "What a TTL is capped at.",
  lease_time_ms_max: "The longest that one lease may live, however often it is extended.",
  units_max: "The most units that one lease may take.",
};

export const rule = shape(
  policyRule,
  {
    name: "Shown in refusals; without one the rule is named by its number.",
    effect:
      "`allow`: of its actions, the policy allows nothing that no `allow` rule covers. `deny`: what it touches is refused. " +
      "`limit`: leases that it touches keep within its limits.",
    actions: "What the rule is about.",
    ...conditionWords,
    ...limitWords,
  },
  { title: "PolicyRule", description: "A rule matches where all its conditions do." },
);

export const scopes = shape(
  keyScopes,
  { ...conditionWords, ...limitWords },
  { title: "Scopes", description: "What a key is narrowed to. What is left out or empty limits nothing." },
);

export const check = shape(
  policyCheck,
  {
    action: "What is to be done.",
    id: "Of the agent, worker or cell.",
  },
  { title: "PolicyCheck" },
);

export const policyWords: Words<typeof policyInput> = {
  description: "What it is for.",
  tenants: "The tenants that it applies to; empty: all.",
  roles: "The roles that it applies to; empty: all.",
  key_ids: "The keys that it applies to, and the agents that they registered; empty: all.",
  rules: "None: everything is allowed.",
};
