/** The directory as its shard has stored it: what the other shards adopt. */
import type { Policy } from "../kernel/contract/policy-records.ts";
import type { Key, Millis, Tenant } from "../kernel/contract/records.ts";
import type { LiveRow } from "../store/store.ts";
import { readRecord } from "./codec/record-text.ts";
import type { SecretBox } from "./engine-types.ts";
import { type EngineRecord, openRecord } from "./recovery.ts";

export interface StoredDirectory {
  /** What sessions are signed with on every shard; another one after a restore (S6). */
  readonly secret: string;
  readonly tenants: readonly { readonly tenantId: string; readonly createdAt: Millis }[];
  readonly keys: readonly Key[];
  readonly policies: readonly Policy[];
}

/** The kinds of records that it is read from. */
export const directoryKinds = ["tenant", "key", "policy", "engine"] as const;

/** Null: the shard has not recovered on the present history yet, so that what it stores may be of a lost one (S6). */
export function readDirectory(
  rows: readonly LiveRow[],
  { restores, restoredAt }: Pick<EngineRecord, "restores" | "restoredAt">,
  secrets: SecretBox,
): StoredDirectory | null {
  let secret: string | null = null;
  const tenants: { tenantId: string; createdAt: Millis }[] = [];
  const keys: Key[] = [];
  const policies: Policy[] = [];
  for (const { n, kind, body } of rows) {
    if (kind === "engine") {
      const own = openRecord(JSON.parse(body) as EngineRecord, secrets);
      if (own.restores !== restores || own.restoredAt !== restoredAt) return null;
      secret = own.secret;
      continue;
    }
    const stored = readRecord(kind, body, n);
    if (stored.kind === "tenant") tenants.push({ tenantId: stored.record.id, createdAt: stored.record.createdAt });
    // When it was used is for the directory alone.
    else if (stored.kind === "key") keys.push({ ...stored.record, lastUsedAt: null });
    else if (stored.kind === "policy") policies.push(stored.record);
  }
  return secret === null ? null : { secret, tenants, keys, policies };
}

/** The tenants among stored rows, each with the shard that has stored it. */
export function readTenants(
  rows: readonly (Omit<LiveRow, "kind"> & { readonly shard: number })[],
): readonly { readonly shard: number; readonly tenant: Tenant }[] {
  return rows.map(({ shard, n, body }) => {
    const stored = readRecord("tenant", body, n);
    if (stored.kind !== "tenant") throw new TypeError("a tenant is read as a tenant");
    return { shard, tenant: stored.record };
  });
}
