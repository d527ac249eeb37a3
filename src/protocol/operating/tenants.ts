import { tenantId } from "../../kernel/contract/inputs.ts";
import { tenantQuotas, tenantSettings } from "../../kernel/contract/records.ts";
import * as shapes from "../leases/shapes.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { choice, integer, list, nullable, record, text } from "../schema/schema.ts";
import { quotasWords, settingsWords } from "./record-words.ts";
import { operating, watching } from "./roles.ts";

const { command, query } = operationsOf("Operating");

const example = { tenant_id: "acme" };
const shown = [ok(shapes.tenant, "The tenant.")];

export const createTenant = command({
  name: "create_tenant",
  path: "/v1/tenants",
  roles: operating,
  summary: "Creates a tenant",
  description: "Tenants share nothing.",
  example,
  replies: [ok(shapes.tenant, "Created.", 201)],
  errors: ["tenant_exists"],
});

export const listTenants = query({
  name: "list_tenants",
  path: "/v1/tenants",
  fields: { ...paging },
  roles: operating,
  summary: "Lists tenants",
  description: "With their settings and quotas.",
  example: { limit: 20 },
  replies: [ok(shapes.page("tenants", shapes.tenant), "One page.")],
});

export const suspendTenant = command({
  name: "suspend_tenant",
  path: "/v1/tenants/{tenant_id}/suspend",
  roles: operating,
  locksOut: true,
  summary: "Suspends a tenant",
  description: "All it has ends, and what it acquires is answered PAUSED, until it is resumed (W9).",
  example: { ...example, reason: "unpaid" },
  replies: shown,
  errors: ["tenant_unknown"],
});

export const resumeTenant = command({
  name: "resume_tenant",
  path: "/v1/tenants/{tenant_id}/resume",
  roles: operating,
  summary: "Resumes a suspended tenant",
  description: "It changes nothing for a tenant that is not suspended.",
  example,
  replies: shown,
  errors: ["tenant_unknown"],
});

export const setTenantSettings = command({
  name: "set_tenant_settings",
  method: "PUT",
  path: "/v1/tenants/{tenant_id}/settings",
  fields: { ...inputs({ tenantId }, {}), ...inputs(tenantSettings, settingsWords) },
  roles: operating,
  summary: "Changes a tenant's settings",
  description: "Those that are left out stay as they are.",
  example: { ...example, strategy: "wound_wait", ttl_ms_max: 120_000 },
  replies: shown,
  errors: ["tenant_unknown", "strategy_in_use"],
});

export const setTenantQuotas = command({
  name: "set_tenant_quotas",
  method: "PUT",
  path: "/v1/tenants/{tenant_id}/quotas",
  fields: { ...inputs({ tenantId }, {}), ...inputs(tenantQuotas, quotasWords) },
  roles: operating,
  summary: "Changes a tenant's quotas",
  description: "Those that are left out stay as they are. They apply to what is new.",
  example: { ...example, leases_max: 10_000, lease_time_ms_max: 3_600_000, kinds: { GPU: 4 } },
  replies: shown,
  errors: ["tenant_unknown"],
});

export const getUsage = query({
  name: "get_usage",
  path: "/v1/usage",
  roles: watching,
  summary: "Shows how far the tenant's quotas are used",
  description: "A row for each quota, as it is now. Operators name the tenant in `Leasehold-Tenant`.",
  replies: [
    ok(
      record({
        tenant_id: text(),
        usage: list(
          record(
            {
              quota: text({ description: "Its name in `PUT /v1/tenants/{tenant_id}/quotas`; `kinds.GPU` of a type." }),
              unit: choice(["number", "bytes", "ms", "units"]),
              used: nullable(integer({ description: "Null: it limits each one, and nothing is counted." })),
              limit: nullable(integer({ description: "Null: there is none." })),
            },
            { title: "QuotaUse" },
          ),
        ),
      }),
      "One row for each quota.",
    ),
  ],
  errors: [],
});
