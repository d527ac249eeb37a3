/** Operating: policies (S4). Plain data, set by operators, shown to those they concern, and tested before they are set. */
import { choice, list, optional, without } from "../../kernel/contract/field.ts";
import { agentId, intentGiven, keyId } from "../../kernel/contract/inputs.ts";
import { limits } from "../../kernel/contract/limits.ts";
import {
  policyActions,
  policyCheck,
  policy as policyFields,
  policyId,
  policyInput,
} from "../../kernel/contract/policy-records.ts";
import { roles } from "../../kernel/contract/records.ts";
import type { QueryOf } from "../answers/queries.ts";
import * as shapes from "../leases/shapes.ts";
import { ok, operationsOf } from "../operation.ts";
import { partDecoderOf } from "../schema/convert.ts";
import { paging } from "../schema/fields.ts";
import { inputs, outputs } from "../schema/from-fields.ts";
import * as schema from "../schema/schema.ts";
import { check, policyWords, rule } from "./policy-shapes.ts";
import { guarding, operating, watching } from "./roles.ts";

const { command, query } = operationsOf("Operating");

const policy = schema.record(
  outputs(policyFields, {
    policy_id: "The policy's id.",
    ...policyWords,
    changed_at: "When it was set; null: it is built in.",
  }),
  { title: "Policy" },
);

const { rules: rulesWords, ...otherWords } = policyWords;
const terms = {
  ...inputs(without(policyInput, "rules"), otherWords),
  rules: schema.list(rule, { maxItems: limits.policyRulesMax, description: rulesWords, "x-error": "invalid_policy" }),
};

const idWords = { policy_id: "The policy's id: lower-case letters, digits and `. _ -`." };
const example = { policy_id: "ci" };

export const setPolicy = command({
  name: "set_policy",
  method: "PUT",
  path: "/v1/policies/{policy_id}",
  fields: { ...inputs({ policyId }, idWords), ...terms },
  roles: operating,
  locksOut: true,
  summary: "Sets a policy",
  description:
    "What it leaves out is empty: the whole policy is replaced. Every policy that applies must allow a thing. It holds for " +
    "what is asked for from then on, renewals too; what is held stays, with the limits on its time. `default` takes the " +
    "place of the built-in one, which keeps agents and workers from leasing a whole type such as `FILE:/**`.",
  example: {
    ...example,
    description: "CI works in the shop, and not on its migrations",
    roles: ["agent"],
    rules: [
      { effect: "allow", actions: ["lease"], resources: ["FILE:/shop/**"] },
      { name: "migrations", effect: "deny", actions: ["lease"], resources: ["FILE:/shop/migrations/**"] },
      { effect: "limit", actions: ["lease"], lease_time_ms_max: 3_600_000 },
    ],
  },
  replies: [ok(policy, "Replaced."), ok(policy, "Set.", 201)],
  errors: ["invalid_policy", "invalid_resource", "reserved_resource", "tenant_unknown", "key_unknown"],
});

export const listPolicies = query({
  name: "list_policies",
  path: "/v1/policies",
  fields: { ...paging },
  roles: watching,
  summary: "Lists policies",
  description:
    "For operators all of them, for others those that concern their tenant; the built-in one while it holds.",
  example: { limit: 20 },
  replies: [ok(shapes.page("policies", policy), "One page.")],
});

export const getPolicy = query({
  name: "get_policy",
  path: "/v1/policies/{policy_id}",
  fields: inputs({ policyId }, idWords),
  roles: watching,
  summary: "Shows a policy",
  description: "`default` is the built-in one until it is set.",
  example: { policy_id: "default" },
  replies: [ok(policy, "The policy.")],
  errors: ["policy_unknown"],
});

export const deletePolicy = command({
  name: "delete_policy",
  method: "DELETE",
  path: "/v1/policies/{policy_id}",
  fields: inputs({ policyId }, idWords),
  roles: operating,
  summary: "Deletes a policy",
  description: "From then on it refuses nothing. In the place of `default` the built-in one holds again.",
  example,
  replies: [ok(policy, "The deleted policy.")],
  errors: ["policy_unknown"],
});

/** What a dry run is about: a credential, and what it would do. */
const subject = {
  role: optional(choice(roles)),
  keyId: optional(keyId),
  agentId: optional(agentId),
  intents: optional(list(intentGiven, { max: limits.intentsMax })),
};

type Test = QueryOf<"test_policies">;
const decodePolicy = partDecoderOf<Test["policy"]>({ policyId, ...policyInput });
const decodeCheck = partDecoderOf<NonNullable<Test["checks"]>[number]>(policyCheck);

export const testPolicies = query({
  name: "test_policies",
  method: "POST",
  path: "/v1/policies/test",
  fields: {
    ...inputs(subject, {
      role: "Of a credential with this role, and no scopes.",
      key_id: "Of this key.",
      agent_id: "Of this agent's token. Without a role, key or agent: of the caller.",
      intents: "What would be leased.",
    }),
    checks: schema.optional(
      schema.list(check, { maxItems: limits.policyChecksMax, description: "What else would be done." }),
    ),
    policy: schema.optional(
      schema.record(
        { ...inputs({ policyId }, idWords), ...terms },
        { description: "One that is not set: it takes the place of the one with its id." },
      ),
    ),
  },
  roles: guarding,
  summary: "Tests what policies allow",
  description:
    "Changes nothing. Each intent and each check is answered, with the policy and rule that refuse it and what they would " +
    "allow. Agents, workers and cells test only what they may do themselves.",
  example: { role: "agent", intents: [{ predicate: "MUTATES", resource: "FILE:/**" }] },
  replies: [
    ok(
      schema.record(
        {
          allowed: schema.flag({ description: "Whether all of it is allowed." }),
          policies: schema.list(schema.text(), { description: "Those that apply." }),
          results: schema.list(
            schema.record({
              action: schema.choice(policyActions),
              asked: schema.text(),
              allowed: schema.flag(),
              ttl_ms_max: schema.nullable(
                schema.integer({ description: "What its TTL would be capped at; null: the policies say nothing." }),
              ),
              policy: schema.sometimes(schema.text({ description: "The one that refuses it." })),
              rule: schema.sometimes(schema.nullable(schema.text())),
              detail: schema.sometimes(schema.text()),
              allowed_instead: schema.sometimes(schema.list(schema.text())),
            }),
          ),
        },
        { title: "PolicyVerdict" },
      ),
      "What is allowed, and why not.",
    ),
  ],
  errors: ["invalid_policy", "key_unknown", "tenant_unknown"],
  decode: (input, { tenant, actor }) => ({
    type: "test_policies",
    tenant,
    actor,
    role: input.role ?? null,
    keyId: input.key_id ?? null,
    agentId: input.agent_id ?? null,
    intents: input.intents ?? null,
    checks: input.checks == null ? null : input.checks.map(decodeCheck),
    policy: input.policy == null ? null : decodePolicy(input.policy),
  }),
});
