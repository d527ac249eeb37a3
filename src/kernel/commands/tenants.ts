/** Tenants and keys: who owns everything below, what they may use, and who may speak for them. */

import { conclude } from "../aftermath.ts";
import type {
  CreateKey,
  CreateTenant,
  DeleteKey,
  SetTenantQuotas,
  SetTenantSettings,
  SuspendTenant,
} from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import {
  type Millis,
  quotasDefault,
  settingsDefault,
  type TenantQuotas,
  type TenantSettings,
} from "../contract/records.ts";
import { type Refusal, refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { countKinds } from "../deciding/quotas.ts";
import { requireOperator } from "../memory/actors.ts";
import { createKeyEntry, createTenantEntry } from "../memory/entries.ts";
import { changed, emit, type State, type Turn } from "../memory/state.ts";
import { endLeases, endRequest } from "../requests/ending.ts";
import { announceAll } from "../tasks/lanes.ts";
import { unbarAll } from "../tasks/task-queue.ts";

const tenantIdPattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export function createTenant(state: State, command: CreateTenant, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const { tenantId: id } = command;
  if (!tenantIdPattern.test(id)) {
    return refuse("invalid_tenant_id", "A tenant's id has 1 to 63 lower-case letters, digits, _ and -.", {
      field: "tenant_id",
    });
  }
  if (state.tenants.has(id))
    return refuse("tenant_exists", "There is a tenant of this id already.", { field: "tenant_id" });
  const tenant = createTenantEntry(
    { id, suspended: false, suspendReason: null, settings: settingsDefault, quotas: quotasDefault, createdAt: now },
    { tenant: id, fence: 0, priority: 0, arrival: 0, epochFloor: 0, leaseTimeMs: 0, windowStart: 0, receipts: 0 },
  );
  state.tenants.set(id, tenant);
  const turn = { state, tenant, now };
  changed(turn, tenant);
  changed(turn, tenant.counters);
  emit(turn, { type: "tenant.created", tenant: id, at: now });
  return { type: "tenant", tenant: tenant.record, created: true };
}

/** Suspending ends all that the tenant has and refuses what is new (W9) until it is resumed. */
export function suspendTenant(state: State, command: SuspendTenant, now: Millis): Reply {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const suspended = command.type === "suspend_tenant";
  if (tenant.record.suspended === suspended) return { type: "tenant", tenant: tenant.record, created: false };
  tenant.record = { ...tenant.record, suspended, suspendReason: suspended ? command.reason : null };
  changed(turn, tenant);
  emit(turn, { type: suspended ? "tenant.suspended" : "tenant.resumed", tenant: tenant.record.id, at: now });
  if (suspended) {
    const requests = [...tenant.requests.values()].sort((a, b) => a.record.arrival - b.record.arrival);
    for (const request of requests) endRequest(turn, request, "PAUSED", "tenant_suspended");
    const leases = [...tenant.leases.values()].sort((a, b) => a.order - b.order);
    endLeases(turn, leases, "REVOKED", "tenant_suspended");
    conclude(turn);
  } else {
    unbarAll(turn);
    announceAll(turn);
  }
  return { type: "tenant", tenant: tenant.record, created: false };
}

export function setTenantSettings(state: State, command: SetTenantSettings, now: Millis): Reply {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const settings: TenantSettings = { ...tenant.record.settings, ...command.settings };
  const { strategy, ...numbers } = settings;
  if (strategy !== "wait_die" && strategy !== "wound_wait") {
    return refuse("invalid_settings", "strategy is wait_die or wound_wait.", { field: "strategy" });
  }
  const wrong = Object.entries(numbers).find(([, value]) => !(Number.isSafeInteger(value) && value >= 1));
  if (wrong !== undefined) {
    const field = wireName(wrong[0]);
    return refuse("invalid_settings", `${field} is a whole number of at least 1.`, { field });
  }
  if (settings.ttlMsMax < limits.ttlMsMin) {
    return refuse("invalid_settings", `ttl_ms_max is at least ${limits.ttlMsMin}.`, { field: "ttl_ms_max" });
  }
  if (strategy !== tenant.record.settings.strategy && tenant.waitingCount > 0) {
    return refuse("strategy_in_use", "Requests are waiting; the strategy is switched only while nobody waits.", {
      field: "strategy",
    });
  }
  tenant.record = { ...tenant.record, settings };
  changed(turn, tenant);
  emit(turn, { type: "tenant.changed", tenant: tenant.record.id, at: now });
  return { type: "tenant", tenant: tenant.record, created: false };
}

export function setTenantQuotas(state: State, command: SetTenantQuotas, now: Millis): Reply {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const quotas: TenantQuotas = { ...tenant.record.quotas, ...command.quotas };
  const { kinds, ...numbers } = quotas;
  const wrongKind = whyNotKinds(kinds);
  if (wrongKind !== null) return refuse("invalid_quotas", wrongKind, { field: "kinds" });
  for (const [field, value] of Object.entries(numbers) as [keyof TenantQuotas, number | null][]) {
    const mayBeNull = field === "leaseTimeMsMax" || field === "tenantLeaseTimeMsMax";
    if (value === null ? mayBeNull : Number.isSafeInteger(value) && value >= 0) continue;
    return refuse("invalid_quotas", `${wireName(field)} is a whole number${mayBeNull ? " or null" : ""}.`, {
      field: wireName(field),
    });
  }
  tenant.record = { ...tenant.record, quotas };
  changed(turn, tenant);
  countKinds(tenant);
  unbarAll(turn);
  emit(turn, { type: "tenant.changed", tenant: tenant.record.id, at: now });
  return { type: "tenant", tenant: tenant.record, created: false };
}

const kindPattern = /^[A-Z][A-Z0-9_]*$/;

/** Tasks are not resources that one could have too many of: they have a quota of their own. */
function whyNotKinds(kinds: TenantQuotas["kinds"]): string | null {
  const entries = Object.entries(kinds);
  if (entries.length > limits.kindsMax) return `kinds names at most ${limits.kindsMax} types.`;
  for (const [kind, most] of entries) {
    if (!kindPattern.test(kind) || kind === "TASK") return `${kind.slice(0, 64)} is not the type of a resource.`;
    if (!(Number.isSafeInteger(most) && most >= 0)) return `The quota on ${kind} is a whole number.`;
  }
  return null;
}

/** Refusals name fields as callers write them. */
function wireName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A turn of the tenant that the command is about, which need not be the operator's own. */
function findForOperator(
  state: State,
  { tenantId, actor }: Pick<SuspendTenant, "tenantId" | "actor">,
  now: Millis,
): Turn | Refusal {
  const refusal = requireOperator(actor);
  if (refusal !== null) return refusal;
  const tenant = state.tenants.get(tenantId);
  if (tenant === undefined) return refuse("tenant_unknown", "There is no such tenant.", { field: "tenant_id" });
  return { state, tenant, now };
}

export function createKey(state: State, command: CreateKey, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const { key } = command;
  if (!state.tenants.has(key.tenant))
    return refuse("tenant_unknown", "There is no such tenant; create it first.", { field: "tenant_id" });
  if (key.id.length === 0 || key.id.length > limits.idLengthMax || (key.label ?? "").length > limits.labelLengthMax) {
    return refuse("invalid_key", "The key's id or label is too long.", { field: "label" });
  }
  if (state.keys.has(key.id)) return refuse("key_exists", "There is a key of this id already.", { field: "key_id" });
  const entry = createKeyEntry({ ...key, createdAt: now });
  state.keys.set(key.id, entry);
  changed({ state }, entry);
  return { type: "key", key: entry.record };
}

export function deleteKey(state: State, command: DeleteKey): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const entry = state.keys.get(command.keyId);
  if (entry === undefined) return refuse("key_unknown", "There is no such key.", { field: "key_id" });
  state.keys.delete(command.keyId);
  entry.alive = false;
  changed({ state }, entry);
  return { type: "key", key: entry.record };
}
