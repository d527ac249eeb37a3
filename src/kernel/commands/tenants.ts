/** Tenants: who owns everything below, and what they may use. */
import { conclude } from "../aftermath.ts";
import { checkValues } from "../contract/bounds.ts";
import {
  type CreateTenant,
  commands,
  type ForgetEnds,
  type SetTenantQuotas,
  type SetTenantSettings,
  type SuspendTenant,
} from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import {
  type Millis,
  quotasDefault,
  settingsDefault,
  type Tenant,
  type TenantQuotas,
  type TenantSettings,
  tenantQuotas,
  tenantSettings,
} from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import { countKinds } from "../deciding/admission.ts";
import { requireOperator } from "../memory/actors.ts";
import { createTenantEntry } from "../memory/entries.ts";
import { forgetEnds } from "../memory/past.ts";
import { changed, emit, type State, type TenantEntry, type Turn } from "../memory/state.ts";
import { announceAll } from "../memory/task-state.ts";
import { answerAfter, type Later, suspension, sweep } from "../requests/sweep.ts";
import { unparkFrom } from "../tasks/task-parking.ts";
import { unbarAll } from "../tasks/task-queue.ts";

/** S8: before history is pruned. */
export function forgetEndedLeases(state: State, { actor, before, keep }: ForgetEnds): Reply {
  const refusal = requireOperator(actor);
  if (refusal !== null) return refusal;
  return { type: "forgotten", count: forgetEnds(state, before, keep, limits.endsForgottenAtOnceMax) };
}

export function createTenant(state: State, command: CreateTenant, now: Millis): Reply {
  const refusal = requireOperator(command.actor);
  if (refusal !== null) return refusal;
  const invalid = checkValues(commands.create_tenant, command);
  if (invalid !== null) return invalid;
  const { tenantId: id } = command;
  if (state.tenants.has(id))
    return refuse("tenant_exists", "There is a tenant of this id already.", { field: "tenant_id" });
  const tenant = addTenant(state, id, now, now);
  return { type: "tenant", tenant: tenant.record, created: true };
}

export function addTenant(state: State, id: string, createdAt: Millis, now: Millis): TenantEntry {
  const tenant = createTenantEntry(
    { id, suspended: false, suspendReason: null, settings: settingsDefault, quotas: quotasDefault, createdAt },
    {
      tenant: id,
      fence: 0,
      priority: 0,
      arrival: 0,
      epochFloor: 0,
      keysStoredUntil: 0,
      taskKeysStored: false,
      taskKeysStoredUntil: 0,
      leaseTimeMs: 0,
      windowStart: 0,
      receipts: 0,
      receiptBytes: 0,
    },
    state.policies,
  );
  state.tenants.set(id, tenant);
  const turn = { state, tenant, now };
  changed(turn, tenant);
  changed(turn, tenant.counters);
  emit(turn, { type: "tenant.created", tenant: id, at: now });
  return tenant;
}

/** Suspending ends all that the tenant has and refuses what is new (W9) until it is resumed. */
export function suspendTenant(state: State, command: SuspendTenant, now: Millis): Reply | Later<Reply> {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const suspended = command.type === "suspend_tenant";
  // While it is being suspended, which ends all that it has, neither answer is true yet (L14).
  const underWay = tenant.record.suspended ? (tenant.sweeps.at(-1) ?? null) : null;
  if (tenant.record.suspended === suspended) return answerAfter(turn, underWay, describeTenant);
  return suspended ? suspend(turn, command) : answerAfter(turn, underWay, resume);
}

function describeTenant({ tenant: { record } }: Turn): Reply {
  return { type: "tenant", tenant: record, created: false };
}

function suspend(turn: Turn, { reason }: SuspendTenant): Reply | Later<Reply> {
  const { tenant } = turn;
  changeSuspension(turn, true, reason);
  const sweeping = sweep(turn, {
    find: (most) => {
      if (tenant.requests.size + tenant.leases.size > most) return null;
      return {
        requests: [...tenant.requests.values()].sort((a, b) => a.record.arrival - b.record.arrival),
        leases: [...tenant.leases.values()].sort((a, b) => a.order - b.order),
      };
    },
    ...suspension,
  });
  conclude(turn);
  return answerAfter(turn, sweeping, describeTenant);
}

function resume(turn: Turn): Reply {
  if (!turn.tenant.record.suspended) return describeTenant(turn);
  changeSuspension(turn, false, null);
  unbarAll(turn);
  announceAll(turn);
  return describeTenant(turn);
}

function changeSuspension(turn: Turn, suspended: boolean, suspendReason: string | null): void {
  const { tenant, now } = turn;
  tenant.record = { ...tenant.record, suspended, suspendReason };
  changed(turn, tenant);
  emit(turn, { type: suspended ? "tenant.suspended" : "tenant.resumed", tenant: tenant.record.id, at: now });
}

export function setTenantSettings(state: State, command: SetTenantSettings, now: Millis): Reply {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const settings: TenantSettings = { ...tenant.record.settings, ...command.settings };
  const refusal =
    checkValues(tenantSettings, settings) ??
    checkTypes(settings.idleTimeoutMsByType, "invalid_settings", "idle_timeout_ms_by_type");
  if (refusal !== null) return refusal;
  if (settings.strategy !== tenant.record.settings.strategy && tenant.waitingCount + tenant.standby.count > 0) {
    return refuse("strategy_in_use", "Requests wait or stand by; the strategy is switched only while none does.", {
      field: "strategy",
    });
  }
  return changeTenant(turn, { settings });
}

function changeTenant(turn: Turn, change: Partial<Tenant>): Reply {
  const { tenant, now } = turn;
  tenant.record = { ...tenant.record, ...change };
  changed(turn, tenant);
  emit(turn, { type: "tenant.changed", tenant: tenant.record.id, at: now });
  return { type: "tenant", tenant: tenant.record, created: false };
}

export function setTenantQuotas(state: State, command: SetTenantQuotas, now: Millis): Reply {
  const turn = findForOperator(state, command, now);
  if ("code" in turn) return turn;
  const { tenant } = turn;
  const quotas: TenantQuotas = { ...tenant.record.quotas, ...command.quotas };
  const refusal = checkValues(tenantQuotas, quotas) ?? checkTypes(quotas.kinds, "invalid_quotas", "kinds");
  if (refusal !== null) return refusal;
  const reply = changeTenant(turn, { quotas });
  const former = tenant.kindUnits;
  countKinds(tenant);
  unbarAll(turn);
  // Parked on what no longer counts; the first of them show whether the new quotas let them run.
  for (const kind of former?.values() ?? []) unparkFrom(turn, kind);
  return reply;
}

const kindPattern = /^[A-Z][A-Z0-9_]*$/;

/** Tasks are not resources that one could have too many of: they have a quota and heartbeats of their own. */
function checkTypes(byType: object, code: "invalid_quotas" | "invalid_settings", field: string): Refusal | null {
  const wrong = Object.keys(byType).find((type) => !kindPattern.test(type) || type === "TASK");
  if (wrong === undefined) return null;
  return refuse(code, `${wrong.slice(0, 64)} is not the type of a resource.`, { field });
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
