/**
 * `GET /v1/usage` (S4): the tenant's use of each of its quotas. The rows are those of the contract's table of quotas, in its
 * order; the kernel counts records, the edge what is open, and the artifact store its files.
 */
import { snakeCase } from "../../kernel/contract/field.ts";
import { type TenantQuotas, tenantQuotas } from "../../kernel/contract/records.ts";
import { kindUse, quotaUse, tenantsIn } from "../../kernel/views.ts";
import type { QueryOf, QuotaRow } from "../../protocol/answers/queries.ts";
import type { Service } from "../service.ts";
import { isRefusal, type QueryResult, read } from "./scan.ts";

type Counted = Readonly<Record<Exclude<keyof TenantQuotas, "kinds">, number | null>>;

export async function getUsage(service: Service, query: QueryOf<"get_usage">): Promise<QueryResult> {
  const { engine, uses, artifacts } = service;
  const { tenant } = query;
  const { found, now } = await read(engine, query, (state, at) => ({
    quotas: tenantsIn(state).get(tenant)?.record.quotas ?? null,
    kernel: quotaUse(state, tenant, at),
    kinds: kindUse(state, tenant),
  }));
  if (isRefusal(found)) return { reply: found, now };
  const { quotas, kernel, kinds } = found;
  if (quotas === null || kernel === null) throw new TypeError("a tenant that can be read has quotas");
  const stored = await artifacts.use(tenant);
  const used: Counted = {
    ...kernel,
    connectionsMax: uses.used(tenant, "connectionsMax"),
    subscriptionsMax: uses.used(tenant, "subscriptionsMax"),
    heldMax: uses.used(tenant, "heldMax"),
    unreadBytesMax: uses.unreadOf(tenant),
    artifactsMax: stored.files,
    artifactBytesMax: stored.bytes,
    // Of each second, and of each lease by itself.
    requestsPerSecondMax: null,
    leaseTimeMsMax: null,
  };
  const rows = quotaNames.map(
    (name): QuotaRow => ({ quota: snakeCase(name), unit: unitOf(name), used: used[name], limit: quotas[name] }),
  );
  const ofKinds = Object.entries(quotas.kinds).map(
    ([kind, limit]): QuotaRow => ({ quota: `kinds.${kind}`, unit: "units", used: kinds.get(kind) ?? 0, limit }),
  );
  return { reply: { type: "usage", tenantId: tenant, usage: [...rows, ...ofKinds] }, now };
}

const quotaNames = (Object.keys(tenantQuotas) as (keyof TenantQuotas)[]).filter((name) => name !== "kinds");

/** Units come last in a name: `receiptBytesMax`, `leaseTimeMsMax`. */
function unitOf(name: string): QuotaRow["unit"] {
  if (name.endsWith("BytesMax")) return "bytes";
  return name.endsWith("MsMax") ? "ms" : "number";
}
