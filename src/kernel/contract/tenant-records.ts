/** A tenant, and what its operator can set for it. */
import { choice, flag, integer, map, named, optional, record, text, time, usual, type Values } from "./field.ts";
import { limits } from "./limits.ts";

export const strategies = ["wait_die", "wound_wait"] as const;
export type Strategy = (typeof strategies)[number];

const none: Readonly<Record<string, number>> = {};
const byType = (bounds: { min?: number; max?: number; error: "invalid_settings" | "invalid_quotas" }) =>
  optional(map(integer(bounds), { max: limits.kindsMax, keyMax: limits.labelLengthMax, error: bounds.error }), none);
const setting = (usual: number, min = 1) => optional(integer({ min, error: "invalid_settings" }), usual);

/** What an operator can set for a tenant; each has the service's default. */
export const tenantSettings = {
  strategy: optional(choice(strategies, { error: "invalid_settings" }), "wait_die"),
  ttlMsDefault: setting(60_000, limits.ttlMsMin),
  ttlMsMax: setting(300_000, limits.ttlMsMin),
  waitTimeoutMsDefault: setting(30_000),
  waitTimeoutMsMax: setting(600_000),
  claimWithinMs: setting(10_000),
  retryMsBase: setting(50),
  retryMsCap: setting(5_000),
  /** Who gets policy escalations of tasks that name nobody else (T5); null: each task's principal. */
  supervisor: optional(text({ min: 1, max: limits.keyLengthMax, error: "invalid_settings" })),
  /** Idle timeouts by the resources' type ({"GPU": 60000}); a holder can only ask for a shorter one (L10). */
  idleTimeoutMsByType: byType({ min: limits.ttlMsMin, error: "invalid_settings" }),
  /** The ledger takes receipts about tasks that this system does not own (R1). */
  foreignReceipts: optional(flag(), false),
};
export interface TenantSettings extends Values<typeof tenantSettings> {}
export const settingsDefault = usual(tenantSettings) as TenantSettings;

const quota = (usual: number) => optional(integer({ error: "invalid_quotas" }), usual);

export const tenantQuotas = {
  leasesMax: quota(2_000_000),
  waitersMax: quota(200_000),
  agentsMax: quota(1_000_000),
  resourcesMax: quota(100_000),
  /** Leases on patterns, alive at once: other searches must step around them (S4). */
  patternsMax: quota(10_000),
  tasksMax: quota(2_000_000),
  /** Receipts in the ledger, in number and in bytes (R8): what was accepted can still be completed beyond them. */
  receiptsMax: quota(100_000_000),
  receiptBytesMax: quota(100 * 2 ** 30),
  /** Open obligations on tasks that this system does not own (R8). */
  foreignObligationsMax: quota(100_000),
  /** Of the edge (S4): connections, event subscriptions, answers held for a long poll, and bytes that nobody reads. */
  connectionsMax: quota(16_000),
  subscriptionsMax: quota(16_000),
  heldMax: quota(16_000),
  unreadBytesMax: quota(64 * 2 ** 20),
  /** Requests a second of all its credentials together, in place of the server's limit; null: that limit (S4). */
  requestsPerSecondMax: optional(integer({ min: 1, error: "invalid_quotas" })),
  /** Artifacts, in number and in bytes; each counts at least a block of the disk (S4). */
  artifactsMax: quota(1_000_000),
  artifactBytesMax: quota(10 * 2 ** 30),
  /** S4: bodies and inputs of tasks that are not done, and agents' digests, in bytes as they are stored. */
  payloadBytesMax: quota(8 * 2 ** 30),
  digestBytesMax: quota(2 * 2 ** 30),
  /** S4: about what memory keeps of the tenant's live records, in bytes. */
  memoryBytesMax: quota(2 * 2 ** 30),
  /** The longest that one lease may live, however often it is extended (L10); null: no limit. */
  leaseTimeMsMax: optional(integer({ error: "invalid_quotas" })),
  /** Lease time of all of the tenant's leases together, per day (L10); null: no limit. */
  tenantLeaseTimeMsMax: optional(integer({ error: "invalid_quotas" })),
  /** Units of live leases by the resources' type ({"GPU": 4}); a type that is not named has no limit (G2). */
  kinds: byType({ max: limits.unitsMax, error: "invalid_quotas" }),
};
export interface TenantQuotas extends Values<typeof tenantQuotas> {}
export const quotasDefault = usual(tenantQuotas) as TenantQuotas;

export const tenant = {
  id: named("tenant_id", text()),
  suspended: flag(),
  suspendReason: named("reason", optional(text())),
  settings: record(tenantSettings),
  quotas: record(tenantQuotas),
  createdAt: time(),
};
export interface Tenant extends Values<typeof tenant> {}
