/** Operating: tenants, their settings and quotas. */
import type { TenantQuotas, TenantSettings } from "../../kernel/contract/records.ts";
import * as shapes from "../leases/shapes.ts";
import { command, ok, query } from "../operation.ts";
import { pageOf, paging, reason, tenantId } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, integer, map, optional } from "../schema/schema.ts";
import { strategies } from "../schema/vocabulary.ts";
import { operating } from "./roles.ts";

const example = { tenant_id: "acme" };
const shown = [ok(shapes.tenant, "The tenant.")];

export const createTenant = command({
  name: "create_tenant",
  tag: "Operating",
  method: "POST",
  path: "/v1/tenants",
  fields: { tenant_id: tenantId },
  roles: operating,
  summary: "Creates a tenant",
  description: "A world of its own: nothing in it meets anything of another tenant.",
  example,
  replies: [ok(shapes.tenant, "Created.", 201)],
  errors: ["invalid_tenant_id", "tenant_exists"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "create_tenant",
    tenant,
    actor,
    entropy,
    tenantId: input.tenant_id,
  }),
});

export const listTenants = query({
  name: "list_tenants",
  tag: "Operating",
  method: "GET",
  path: "/v1/tenants",
  fields: { ...paging },
  roles: operating,
  summary: "Lists tenants",
  description: "With their settings and quotas.",
  example: { limit: 20 },
  replies: [ok(shapes.page("tenants", shapes.tenant), "One page.")],
  decode: (input, { tenant, actor }) => ({ type: "list_tenants", tenant, actor, ...pageOf(input) }),
});

export const suspendTenant = command({
  name: "suspend_tenant",
  tag: "Operating",
  method: "POST",
  path: "/v1/tenants/{tenant_id}/suspend",
  fields: { tenant_id: tenantId, reason: optional(reason) },
  roles: operating,
  summary: "Suspends a tenant",
  description: "All it has ends, and what it acquires is answered PAUSED, until it is resumed (W9).",
  example: { ...example, reason: "unpaid" },
  replies: shown,
  errors: ["tenant_unknown", "invalid_tenant_id", "invalid_reason"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "suspend_tenant",
    tenant,
    actor,
    entropy,
    tenantId: input.tenant_id,
    reason: input.reason ?? null,
  }),
});

export const resumeTenant = command({
  name: "resume_tenant",
  tag: "Operating",
  method: "POST",
  path: "/v1/tenants/{tenant_id}/resume",
  fields: { tenant_id: tenantId },
  roles: operating,
  summary: "Lets a suspended tenant go on",
  description: "It changes nothing for a tenant that is not suspended.",
  example,
  replies: shown,
  errors: ["tenant_unknown", "invalid_tenant_id"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "resume_tenant",
    tenant,
    actor,
    entropy,
    tenantId: input.tenant_id,
    reason: null,
  }),
});

const setting = (description: string, minimum = 1) =>
  optional(integer({ minimum, description, "x-error": "invalid_settings" }));

export const setTenantSettings = command({
  name: "set_tenant_settings",
  tag: "Operating",
  method: "PUT",
  path: "/v1/tenants/{tenant_id}/settings",
  fields: {
    tenant_id: tenantId,
    strategy: optional(
      choice(strategies, { description: "Switched only while nobody waits (W7).", "x-error": "invalid_settings" }),
    ),
    ttl_ms_default: setting("A lease's TTL where none is asked for.", limits.ttlMsMin),
    ttl_ms_max: setting("What a TTL is capped at.", limits.ttlMsMin),
    wait_timeout_ms_default: setting("A wait's timeout where none is asked for."),
    wait_timeout_ms_max: setting("What a wait's timeout is capped at."),
    claim_within_ms: setting("How soon a grant that ended a wait must be collected (W8)."),
    retry_ms_base: setting("The first term of DIE's hint (W5)."),
    retry_ms_cap: setting("What that hint is capped at, before jitter."),
  },
  roles: operating,
  summary: "Changes a tenant's settings",
  description: "Those that are left out stay as they are.",
  example: { ...example, strategy: "wound_wait", ttl_ms_max: 120_000 },
  replies: shown,
  errors: ["tenant_unknown", "invalid_tenant_id", "invalid_settings", "strategy_in_use"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "set_tenant_settings",
    tenant,
    actor,
    entropy,
    tenantId: input.tenant_id,
    settings: given<TenantSettings>({
      strategy: input.strategy,
      ttlMsDefault: input.ttl_ms_default,
      ttlMsMax: input.ttl_ms_max,
      waitTimeoutMsDefault: input.wait_timeout_ms_default,
      waitTimeoutMsMax: input.wait_timeout_ms_max,
      claimWithinMs: input.claim_within_ms,
      retryMsBase: input.retry_ms_base,
      retryMsCap: input.retry_ms_cap,
    }),
  }),
});

const quota = (description: string) => optional(integer({ description, "x-error": "invalid_quotas" }));

export const setTenantQuotas = command({
  name: "set_tenant_quotas",
  tag: "Operating",
  method: "PUT",
  path: "/v1/tenants/{tenant_id}/quotas",
  fields: {
    tenant_id: tenantId,
    leases_max: quota("Leases alive at once."),
    waiters_max: quota("Requests waiting at once."),
    agents_max: quota("Registered agents."),
    resources_max: quota("Declared resources."),
    patterns_max: quota("Leases on patterns alive at once."),
    tasks_max: quota("Tasks."),
    lease_time_ms_max: quota("The longest that one lease may live, however often it is extended; null: no limit."),
    tenant_lease_time_ms_max: quota("Lease time of all leases together, per day; null: no limit."),
    kinds: optional(
      map(
        integer({ maximum: limits.unitsMax, "x-error": "invalid_quotas" }),
        { minLength: 1, maxLength: limits.labelLengthMax },
        limits.kindsMax,
        {
          description: "Units of live leases by the type of resource, such as `GPU`; replaces what there was (G2).",
          "x-error": "invalid_quotas",
        },
      ),
    ),
  },
  roles: operating,
  summary: "Changes a tenant's quotas",
  description: "Those that are left out stay as they are. They apply to what is new.",
  example: { ...example, leases_max: 10_000, lease_time_ms_max: 3_600_000, kinds: { GPU: 4 } },
  replies: shown,
  errors: ["tenant_unknown", "invalid_tenant_id", "invalid_quotas"],
  decode: (input, { tenant, actor, entropy }) => {
    const quotas = given<TenantQuotas>({
      leasesMax: input.leases_max,
      waitersMax: input.waiters_max,
      agentsMax: input.agents_max,
      resourcesMax: input.resources_max,
      patternsMax: input.patterns_max,
      tasksMax: input.tasks_max,
      kinds: input.kinds,
    });
    // Of these two null is a value, no limit, and not the same as left out.
    const { lease_time_ms_max: leaseTime, tenant_lease_time_ms_max: tenantLeaseTime } = input;
    const times = {
      ...(leaseTime !== undefined && { leaseTimeMsMax: leaseTime }),
      ...(tenantLeaseTime !== undefined && { tenantLeaseTimeMsMax: tenantLeaseTime }),
    };
    return {
      type: "set_tenant_quotas",
      tenant,
      actor,
      entropy,
      tenantId: input.tenant_id,
      quotas: { ...quotas, ...times },
    };
  },
});

/** Only what was given: the kernel takes the rest from what is there. */
function given<T>(values: { readonly [K in keyof T]?: T[K] | null | undefined }): Partial<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined && value !== null),
  ) as Partial<T>;
}
