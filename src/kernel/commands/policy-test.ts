/** A dry run of policies (S4): what a credential would be allowed, by those that hold or with one that is only proposed. */
import { checkValues } from "../contract/bounds.ts";
import type { Actor } from "../contract/commands.ts";
import type { IntentInput } from "../contract/inputs.ts";
import { limits } from "../contract/limits.ts";
import { type Policy, type PolicyAction, policyCheck, type Role } from "../contract/policy-records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal } from "../contract/replies.ts";
import { type Claim, readIntents, readName } from "../deciding/manifest.ts";
import { ttlCap } from "../deciding/permit.ts";
import { agentOf, findTenant, isAbove } from "../memory/actors.ts";
import type { State, TenantEntry } from "../memory/state.ts";
import { describe, explain } from "../policies/explain.ts";
import { compilePolicy, denialOf, type Question, question } from "../policies/matching.ts";
import {
  appliesTo,
  type Credential,
  credentialOf,
  type Permissions,
  permissionsFor,
  policiesIn,
} from "../policies/permissions.ts";
import { type PolicyGiven, readPolicy } from "./policies.ts";

export interface PolicyCheck {
  readonly action: PolicyAction;
  readonly resource: string | null;
  readonly predicate: Question["predicate"];
  readonly taskType: string | null;
  readonly id: string | null;
}

/** Whose permissions: of a role, a key or an agent; of the caller where none of them is given. */
export interface PolicyTest {
  readonly tenant: string;
  readonly actor: Actor;
  readonly role: Role | null;
  readonly keyId: string | null;
  readonly agentId: string | null;
  readonly intents: readonly IntentInput[] | null;
  readonly checks: readonly PolicyCheck[] | null;
  /** Takes the place of the one that has its id. */
  readonly policy: PolicyGiven | null;
}

export interface TestedCheck {
  readonly action: PolicyAction;
  readonly asked: string;
  readonly isAllowed: boolean;
  /** Of what is not allowed. */
  readonly denial: Refusal | null;
  /** What its ttl would be capped at; null: the policies say nothing. */
  readonly ttlMsMax: number | null;
}

export interface PolicyVerdict {
  readonly isAllowed: boolean;
  /** The policies that apply, in the order in which they are asked. */
  readonly policies: readonly string[];
  readonly results: readonly TestedCheck[];
}

export function testPolicies(state: State, test: PolicyTest): PolicyVerdict | Refusal {
  const tenant = findTenant(state, test.tenant);
  if ("code" in tenant) return tenant;
  const { actor } = test;
  // An older instance's token learns nothing (A3).
  const agent = actor.agentId === null ? null : agentOf({ tenant }, { actor, agentId: actor.agentId });
  if (agent !== null && "code" in agent) return agent;
  const credential = subjectOf(state, tenant, test);
  if ("code" in credential) return credential;
  const proposed = test.policy === null ? null : readPolicy(state, test.policy.policyId, test.policy, null);
  if (proposed !== null && "code" in proposed) return proposed;
  const questions = questionsOf(tenant, test, test.agentId ?? test.actor.agentId);
  if ("code" in questions) return questions;
  const policies = policiesWith(tenant, proposed);
  const permissions = permissionsFor(tenant, policies, credential);
  const results = questions.map((one) => resultOf(permissions, one));
  const { role, keyId, scopes } = credential;
  const applying = policies.filter(({ policy }) => appliesTo(policy, tenant.record.id, role, keyId));
  const names = applying.map(({ policy }) => policy.id);
  return {
    isAllowed: results.every(({ isAllowed }) => isAllowed),
    policies: scopes === null ? names : [...names, `scopes of ${keyId}`],
    results,
  };
}

function subjectOf({ keys }: State, tenant: TenantEntry, test: PolicyTest): Credential | Refusal {
  const { actor, role, keyId, agentId, policy } = test;
  const isOther = role !== null || keyId !== null || agentId !== null || policy !== null;
  if (isOther && !isAbove(actor) && actor.role !== "reader") {
    return refuse("forbidden", "To test what others may do, or another policy, takes a supervisor's or reader's key.");
  }
  if (role !== null) return { role, keyId: null, scopes: null };
  if (keyId !== null) {
    const key = keys.get(keyId)?.record;
    const isSeen = key !== undefined && (actor.role === "operator" || key.tenant === tenant.record.id);
    if (!isSeen) return refuse("key_unknown", "There is no such key.", { field: "key_id" });
    return { role: key.role, keyId, scopes: key.scopes };
  }
  if (agentId === null) return credentialOf(tenant, actor);
  const agent = tenant.agents.get(agentId)?.record;
  if (agent === undefined) return refuse("agent_unknown", "There is no such agent.", { field: "agent_id" });
  return credentialOf(tenant, { role: "agent", agentId, epoch: agent.epoch });
}

/** The proposed one at the end, where it would be stored, or in the place of the one with its id. */
function policiesWith({ policies }: TenantEntry, proposed: Policy | null) {
  const stored = policiesIn(policies);
  if (proposed === null) return stored;
  return [...stored.filter(({ policy }) => policy.id !== proposed.id), compilePolicy(proposed)];
}

interface Tested {
  readonly question: Question;
  readonly claim: Claim | null;
  readonly field: string;
}

function questionsOf(tenant: TenantEntry, { intents, checks }: PolicyTest, id: string | null): Tested[] | Refusal {
  const asked: Tested[] = [];
  if (intents !== null && intents.length > 0) {
    const read = readIntents(tenant, intents);
    if ("code" in read) return read;
    for (const { claim } of read.claims) {
      const { predicate, units, pick } = claim.intent;
      const about = { ...question, resource: claim.name, predicate, units, id, isPick: pick !== null };
      asked.push({ question: { ...about, action: "lease" }, claim, field: "intents" });
    }
  }
  for (const [index, check] of (checks ?? []).entries()) {
    const field = `checks.${index}`;
    const invalid = checkValues(policyCheck, check);
    if (invalid !== null) return { ...invalid, field: `${field}.${invalid.field}` };
    const resource = check.resource === null ? null : readName(check.resource, `${field}.resource`);
    if (resource !== null && "code" in resource) return resource;
    asked.push({ question: { ...question, ...check, resource, id: check.id ?? id }, claim: null, field });
  }
  if (asked.length === 0 || asked.length > limits.policyChecksMax) {
    const detail = `Give intents or checks to test, ${limits.policyChecksMax} at most.`;
    return refuse("invalid_policy", detail, { field: "checks" });
  }
  return asked;
}

function resultOf(permissions: Permissions, { question: asked, claim, field }: Tested): TestedCheck {
  const denial = denialOf(permissions.parts[asked.action], asked);
  const cap = claim === null ? null : ttlCap(permissions, [{ claim, linkedIndex: null }], asked.id);
  return {
    action: asked.action,
    asked: describe(asked),
    isAllowed: denial === null,
    denial: denial === null ? null : explain(denial, asked, field),
    ttlMsMax: cap?.most ?? null,
  };
}
