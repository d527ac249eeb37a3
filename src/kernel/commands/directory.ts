/**
 * The directory: which tenants exist, and the keys and policies of all. Where tenants are spread over several shards, one
 * of them decides it, and the others adopt it as a whole. What an operator sets for a tenant is not part of it.
 *
 * Records are compared by what they say, so that one that is unchanged is not written again. What the directory does not
 * have any more is deleted, as if the command that did so there had come here.
 */
import type { AdoptDirectory } from "../contract/commands.ts";
import { type Policy, policy } from "../contract/policy-records.ts";
import { type Key, key, type Millis } from "../contract/records.ts";
import type { Reply } from "../contract/replies.ts";
import { requireOperator } from "../memory/actors.ts";
import { createEntry } from "../memory/entries.ts";
import { changed, type State } from "../memory/state.ts";
import { forgetPermissions, noteScopes, placePolicy } from "../policies/permissions.ts";
import { addTenant } from "./tenants.ts";

export function adoptDirectory(state: State, command: AdoptDirectory, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  // A tenant is never deleted.
  for (const { tenantId, createdAt } of command.tenants)
    if (!state.tenants.has(tenantId)) addTenant(state, tenantId, createdAt, now);
  adoptKeys(state, command.keys);
  adoptPolicies(state, command.policies);
  return { type: "done" };
}

function adoptKeys(state: State, given: readonly Key[]): void {
  const ids = new Set(given.map(({ id }) => id));
  for (const entry of [...state.keys.values()]) {
    if (ids.has(entry.record.id)) continue;
    state.keys.delete(entry.record.id);
    entry.alive = false;
    changed({ state }, entry);
  }
  for (const record of given) {
    const known = state.keys.get(record.id);
    if (known !== undefined && isSame(key, known.record, record)) continue;
    const entry = known ?? createEntry("key", record);
    entry.record = record;
    state.keys.set(record.id, entry);
    if (record.scopes !== null) noteScopes(state);
    changed({ state }, entry);
  }
}

function adoptPolicies(state: State, given: readonly Policy[]): void {
  const { entries } = state.policies;
  const ids = new Set(given.map(({ id }) => id));
  let hasChanged = false;
  for (const entry of [...entries.values()]) {
    if (ids.has(entry.record.id)) continue;
    entries.delete(entry.record.id);
    entry.alive = false;
    changed({ state }, entry);
    hasChanged = true;
  }
  for (const record of given) {
    const known = entries.get(record.id);
    if (known !== undefined && isSame(policy, known.record, record)) continue;
    changed({ state }, placePolicy(state.policies, record));
    hasChanged = true;
  }
  if (hasChanged) forgetPermissions(state.tenants.values());
}

/** Plain data, in the described order. */
function isSame<T extends object>(fields: { readonly [K in keyof T]: unknown }, one: T, other: T): boolean {
  const valuesOf = (record: T): string =>
    JSON.stringify((Object.keys(fields) as (keyof T)[]).map((name) => record[name]));
  return valuesOf(one) === valuesOf(other);
}
