/** Every number that limits something, by name, in one place (S4). Tenants may be given others for the first two groups. */
import type { TenantQuotas, TenantSettings } from "./records.ts";

export const settingsDefault: TenantSettings = {
  strategy: "wait_die",
  ttlMsDefault: 60_000,
  ttlMsMax: 300_000,
  waitTimeoutMsDefault: 30_000,
  waitTimeoutMsMax: 600_000,
  claimWithinMs: 10_000,
  retryMsBase: 50,
  retryMsCap: 5_000,
};

export const quotasDefault: TenantQuotas = {
  leasesMax: 2_000_000,
  waitersMax: 200_000,
  agentsMax: 1_000_000,
  resourcesMax: 100_000,
  patternsMax: 10_000,
  tasksMax: 2_000_000,
  leaseTimeMsMax: null,
  tenantLeaseTimeMsMax: null,
};

export const limits = {
  ttlMsMin: 100,
  intentsMax: 256,
  unitsMax: 1_000_000_000,
  purposeLengthMax: 1_024,
  versionLengthMax: 1_024,
  keyLengthMax: 256,
  idLengthMax: 128,
  reasonLengthMax: 1_024,
  labelsMax: 32,
  labelLengthMax: 256,
  digestBytesMax: 262_144,
  blockersListedMax: 16,
  /** So many obstacles of a refused request are looked at one by one; what more there are is counted (C5, W11). */
  obstaclesExaminedMax: 4_096,
  /** L9: how long a missed lease is held for an agent that restarts. */
  heldMs: 15_000,
  /** W10: how long, and how many per agent, granted keys are remembered after their leases have ended. */
  requestMemoryMs: 600_000,
  requestMemoryPerAgentMax: 32,
  /** S4: an agent without lease or request is forgotten after a week. */
  agentIdleMs: 7 * 24 * 3_600_000,
  leaseTimeWindowMs: 24 * 3_600_000,
  /** G6, G7: a cell that has not bound or torn down by then has failed. */
  bindMs: 10_000,
  teardownMs: 10_000,
  /** L11: how far a restore jumps ahead; far more than any backup's age in grants, and 2^13 restores fit below 2^53. */
  restoreFenceJump: 2 ** 40,
} as const;
