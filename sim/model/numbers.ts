/** The limits of the rules and decisions, written a second time so that a wrong one in the kernel is found. */
import type { TenantSettings } from "../../src/kernel/contract/records.ts";

export const tenantDefaults: TenantSettings = {
  strategy: "wait_die",
  ttlMsDefault: 60_000,
  ttlMsMax: 300_000,
  waitTimeoutMsDefault: 30_000,
  waitTimeoutMsMax: 600_000,
  claimWithinMs: 10_000,
  retryMsBase: 50,
  idleTimeoutMsByType: {},
  retryMsCap: 5_000,
  supervisor: null,
  foreignReceipts: false,
};

export const ttlMsMin = 100;
/** L9 */
export const heldMs = 15_000;
/** W10: "for ten minutes or until 32 newer ones of the agent have ended" */
export const rememberedMs = 600_000;
export const rememberedPerTenant = 20_000;
/** S4: "forgotten after a week without lease or request" */
export const agentIdleMs = 7 * 24 * 3_600_000;
