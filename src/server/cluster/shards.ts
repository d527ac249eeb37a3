/** Which shard a tenant belongs to, and what is decided by the shard that has the directory. */
import { hash } from "node:crypto";

/** The shard that decides which tenants exist, and keys and policies of all. */
export const directoryShard = 0;

const knownMax = 10_000;
const known = new Map<string, number>();

/** By the tenant's id alone, for good: the first four bytes of its SHA-256, modulo the number of shards. */
export function shardOfTenant(tenant: string, shards: number): number {
  if (shards === 1) return directoryShard;
  const name = `${shards} ${tenant}`;
  const found = known.get(name);
  if (found !== undefined) return found;
  const shard = hash("sha256", tenant, "buffer").readUInt32BE(0) % shards;
  if (known.size >= knownMax) known.clear();
  known.set(name, shard);
  return shard;
}

/** Commands and questions about the directory itself. */
export const directoryOperations: ReadonlySet<string> = new Set([
  ...["create_tenant", "list_tenants"],
  ...["create_key", "list_keys", "delete_key", "rotate_key"],
  ...["set_policy", "delete_policy", "list_policies", "get_policy"],
  ...["create_session", "create_session_link"],
]);

/** About the tenant that they name, which need not be the caller's own. */
export const tenantOperations: ReadonlySet<string> = new Set([
  ...["suspend_tenant", "resume_tenant", "set_tenant_settings", "set_tenant_quotas"],
]);
