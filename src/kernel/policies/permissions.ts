/**
 * Which policies apply to a credential, and what they come to together. Every one of them must allow a thing: a policy
 * narrows, and never widens. They are compiled when somebody first asks, and again after a change.
 */
import type { Actor } from "../contract/commands.ts";
import {
  builtInPolicy,
  defaultPolicyId,
  type KeyScopes,
  type Policy,
  type PolicyAction,
  policyActions,
  type Role,
  roles,
} from "../contract/policy-records.ts";
import type { Refusal } from "../contract/replies.ts";
import type { Entry, LeaseEntry, State, TenantEntry, Turn } from "../memory/state.ts";
import { canonicalName } from "../names/resource-name.ts";
import { explain } from "./explain.ts";
import {
  type CompiledPolicy,
  compilePolicy,
  compileScopes,
  denialOf,
  type Matcher,
  overlaps,
  type Part,
  type Question,
  question,
} from "./matching.ts";

export interface PolicyEntry extends Entry<"policy"> {
  compiled: CompiledPolicy;
}

/** What is set for all tenants together (S4). */
export interface Policies {
  readonly entries: Map<string, PolicyEntry>;
  /** Whether a credential with scopes was ever seen; until then only roles matter. */
  hasScopes: boolean;
}

/** What one credential may do. */
export interface Permissions {
  readonly parts: Readonly<Record<PolicyAction, readonly Part[]>>;
  /** How deep the pattern of any lease must be; of rules that have no conditions. */
  readonly depthMin: number;
  /** Of `parts.lease`: those that say more than that. */
  readonly leaseParts: readonly Part[];
  /** Whether one of them limits how long a lease lives. */
  readonly limitsLeaseTime: boolean;
}

interface RolePermissions {
  /** Of every credential of the role, unless its key is named by a policy or has scopes. */
  readonly plain: Permissions;
  readonly byKey: Map<string, Permissions>;
}

export interface TenantPermissions {
  readonly byRole: Readonly<Record<Role, RolePermissions>>;
  /** Whether it matters which key it is. */
  readonly isByKey: boolean;
  /** Whether any lease of the tenant may have a limit on its life. */
  readonly limitsLeaseTime: boolean;
}

/** Keys whose permissions are kept compiled; with more of them all are compiled again. */
const keptMax = 10_000;

const builtIn = compilePolicy(builtInPolicy);

/** New, restored, or in the place of the one that has its id. */
export function placePolicy({ entries }: Policies, record: Policy): PolicyEntry {
  const compiled = compilePolicy(record);
  const known = entries.get(record.id);
  if (known !== undefined) return Object.assign(known, { record, compiled });
  const entry: PolicyEntry = { kind: "policy", record, compiled, alive: true, row: 0, changedIn: 0, bytes: 0 };
  entries.set(record.id, entry);
  return entry;
}

/** After any change of policies, or the first key with scopes. */
export function forgetPermissions(tenants: Iterable<TenantEntry>): void {
  for (const tenant of tenants) tenant.permissions = null;
}

/** A credential with scopes was seen: from now on it matters which key it is. */
export function noteScopes({ policies, tenants }: State): void {
  if (policies.hasScopes) return;
  policies.hasScopes = true;
  forgetPermissions(tenants.values());
}

/** Each policy that holds, the built-in one if no other has its place. */
export function policiesIn({ entries }: Policies): readonly CompiledPolicy[] {
  const stored = Array.from(entries.values(), ({ compiled }) => compiled);
  return entries.has(defaultPolicyId) ? stored : [builtIn, ...stored];
}

export function permissionsOf(tenant: TenantEntry, actor: Actor): Permissions {
  const { byRole, isByKey } = tenant.permissions ?? prepare(tenant);
  const { plain, byKey } = byRole[actor.role];
  if (!isByKey) return plain;
  const { keyId, scopes } = credentialOf(tenant, actor);
  if (keyId === null) return plain;
  const known = byKey.get(keyId);
  if (known !== undefined) return known;
  if (byKey.size >= keptMax) byKey.clear();
  const permissions = permissionsFor(tenant, policiesIn(tenant.policies), { role: actor.role, keyId, scopes });
  byKey.set(keyId, permissions);
  return permissions;
}

/** The caller, as far as policies know it. */
export interface Credential {
  readonly role: Role;
  readonly keyId: string | null;
  readonly scopes: KeyScopes | null;
}

/** An agent's token is what the key was that it was issued to. */
export function credentialOf({ agents }: TenantEntry, { role, agentId, keyId, scopes }: Actor): Credential {
  const agent = agentId === null ? undefined : agents.get(agentId)?.record;
  if (agent === undefined) return { role, keyId: keyId ?? null, scopes: scopes ?? null };
  return { role, keyId: agent.keyId, scopes: agent.scopes };
}

export function permissionsFor(
  { record: { id: tenantId } }: TenantEntry,
  policies: readonly CompiledPolicy[],
  { role, keyId, scopes }: Credential,
): Permissions {
  const parts = policies
    .filter(({ policy }) => appliesTo(policy, tenantId, role, keyId))
    .map((compiled) => compiled.parts);
  if (keyId !== null && scopes !== null) parts.push(compileScopes(keyId, scopes));
  return combine(parts);
}

export function appliesTo({ tenants, roles, keyIds }: Policy, tenantId: string, role: Role, keyId: string | null) {
  return (
    (tenants.length === 0 || tenants.includes(tenantId)) &&
    (roles.length === 0 || roles.includes(role)) &&
    (keyIds.length === 0 || (keyId !== null && keyIds.includes(keyId)))
  );
}

function combine(compiled: readonly CompiledPolicy["parts"][]): Permissions {
  const parts = {} as Record<PolicyAction, readonly Part[]>;
  for (const action of policyActions) parts[action] = compiled.flatMap((of) => of[action] ?? []);
  const limits = parts.lease.flatMap((part) => part.limits);
  return {
    parts,
    depthMin: Math.max(0, ...parts.lease.filter(isDepthOnly).map(depthOf)),
    leaseParts: parts.lease.filter((part) => !isDepthOnly(part)),
    limitsLeaseTime: limits.some((matcher) => matcher.limits.leaseTimeMsMax !== null),
  };
}

/** It limits the depth of every pattern, and says nothing else: that is what the built-in policy does. */
function isDepthOnly({ allows, denies, limits }: Part): boolean {
  if (allows.length + denies.length > 0) return false;
  return limits.every(({ resources, predicates, ids, limits: { ttlMsMax, leaseTimeMsMax, unitsMax } }) => {
    const isOther = ttlMsMax !== null || leaseTimeMsMax !== null || unitsMax !== null;
    return !isOther && resources.length + predicates.length + ids.length === 0;
  });
}

function depthOf({ limits }: Part): number {
  return Math.max(0, ...limits.map((matcher) => matcher.limits.patternDepthMin ?? 0));
}

export function prepare(tenant: TenantEntry): TenantPermissions {
  const policies = policiesIn(tenant.policies);
  const byRole = {} as Record<Role, RolePermissions>;
  for (const role of roles) {
    const plain = permissionsFor(tenant, policies, { role, keyId: null, scopes: null });
    byRole[role] = { plain, byKey: new Map() };
  }
  const { hasScopes } = tenant.policies;
  tenant.permissions = {
    byRole,
    isByKey: hasScopes || policies.some(({ policy }) => policy.keyIds.length > 0),
    limitsLeaseTime:
      hasScopes || policies.some(({ policy }) => policy.rules.some(({ leaseTimeMsMax }) => leaseTimeMsMax !== null)),
  };
  return tenant.permissions;
}

/** Null: the policies allow it. `field`: the part of the command that asks for it. */
export function whyNotPermitted(
  { tenant }: Pick<Turn, "tenant">,
  actor: Actor,
  asked: Question,
  field: string | null,
): Refusal | null {
  const parts = permissionsOf(tenant, actor).parts[asked.action];
  if (parts.length === 0) return null;
  const denial = denialOf(parts, asked);
  return denial === null ? null : explain(denial, asked, field);
}

/** L10: how long the lease may live by the policies for its holder; null: they do not limit it. */
export function leaseTimeMax(tenant: TenantEntry, { holder, record }: LeaseEntry): number | null {
  const { limitsLeaseTime } = tenant.permissions ?? prepare(tenant);
  if (!limitsLeaseTime || holder.kind === "task") return null;
  const { id, epoch } = holder.record;
  const permissions = permissionsOf(tenant, { role: "agent", agentId: id, epoch });
  if (!permissions.limitsLeaseTime) return null;
  const { resource, predicate, units } = record;
  const asked = { ...question, action: "lease", resource: canonicalName(resource), predicate, id, units } as const;
  return limitOf(permissions, asked, "leaseTimeMsMax")?.most ?? null;
}

export interface FoundLimit {
  readonly most: number;
  readonly part: Part;
  readonly matcher: Matcher;
}

/** The least of the limits that apply; null: there is none. */
export function limitOf(
  { leaseParts }: Permissions,
  asked: Question,
  limit: "ttlMsMax" | "leaseTimeMsMax",
): FoundLimit | null {
  let found: FoundLimit | null = null;
  for (const part of leaseParts) {
    for (const matcher of part.limits) {
      const most = matcher.limits[limit];
      if (most === null || (found !== null && found.most <= most) || !overlaps(matcher, asked)) continue;
      found = { most, part, matcher };
    }
  }
  return found;
}
