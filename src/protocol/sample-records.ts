/** Records for the tests of the encoders: each complete and plausible, with what a test is about put over it. */
import type { Agent, Digest, Key, Lease, Request, Resource, Tenant } from "../kernel/records.ts";

export const sampleNow = Date.UTC(2026, 10, 15, 20, 59, 51, 123);

export function sampleLease(over: Partial<Lease> = {}): Lease {
  return {
    tenant: "default",
    id: "lse_01jcs8qm5t6w8y0a",
    resource: "FILE:/src/auth.ts",
    predicate: "MUTATES",
    agentId: "agt_01jcs8qk2m9x4n7r",
    holder: "agt_01jcs8qk2m9x4n7r",
    state: "ACTIVE",
    fence: 4711,
    generation: 1,
    units: 1,
    purpose: "rename login()",
    acquiredAt: sampleNow,
    expiresAt: sampleNow + 60_000,
    ttl: 60_000,
    tokens: false,
    idleTimeout: null,
    activeAt: sampleNow,
    claimBy: null,
    heldUntil: null,
    verified: false,
    linkedTo: null,
    cell: null,
    cellBy: null,
    coordinate: null,
    closingAs: null,
    endedAt: null,
    endReason: null,
    version: null,
    ...over,
  };
}

export function sampleRequest(over: Partial<Request> = {}): Request {
  return {
    tenant: "default",
    id: "req_01jcs8qm5t6w8y0a",
    agentId: "agt_01jcs8qk2m9x4n7r",
    holder: "agt_01jcs8qk2m9x4n7r",
    key: null,
    fingerprint: "",
    state: "WAITING",
    intents: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null }],
    ttl: 60_000,
    idleTimeout: null,
    purpose: null,
    tokens: false,
    arrival: 1,
    submittedAt: sampleNow,
    waitTimeout: 30_000,
    timeoutAt: sampleNow + 30_000,
    observeSince: null,
    warnings: [],
    leaseIds: [],
    ended: [],
    fateReason: null,
    forgetAt: null,
    ...over,
  };
}

export function sampleAgent(over: Partial<Agent> = {}): Agent {
  return {
    tenant: "default",
    id: "agt_01jcs8qk2m9x4n7r",
    labels: { host: "build-3" },
    state: "PLANNING",
    restarting: false,
    pausedByOperator: false,
    priority: 1_763_240_391_123,
    attempts: 0,
    epoch: 1,
    registeredAt: sampleNow,
    pausedAt: null,
    idleSince: sampleNow,
    ...over,
  };
}

export function sampleDigest(over: Partial<Digest> = {}): Digest {
  return {
    tenant: "default",
    agentId: "agt_01jcs8qk2m9x4n7r",
    checkpointId: "step-3",
    resumePoint: "tests written",
    context: { branch: "rename-login" },
    intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null }],
    resolutionStrategy: "RETRY",
    priority: 1_763_240_391_123,
    savedAt: sampleNow,
    ...over,
  };
}

export function sampleResource(over: Partial<Resource> = {}): Resource {
  return {
    tenant: "default",
    name: "GPU:/rack-1/a100",
    capacity: 4,
    cell: null,
    fenced: false,
    fenceReason: null,
    fencedAt: null,
    withdrawn: false,
    declaredAt: sampleNow,
    ...over,
  };
}

export function sampleTenant(over: Partial<Tenant> = {}): Tenant {
  return {
    id: "acme",
    suspended: false,
    suspendReason: null,
    settings: {
      strategy: "wait_die",
      ttlMsDefault: 60_000,
      ttlMsMax: 300_000,
      waitTimeoutMsDefault: 30_000,
      waitTimeoutMsMax: 600_000,
      claimWithinMs: 10_000,
      retryMsBase: 50,
      retryMsCap: 5_000,
    },
    quotas: {
      leasesMax: 10,
      waitersMax: 10,
      agentsMax: 10,
      resourcesMax: 10,
      patternsMax: 10,
      tasksMax: 10,
      leaseTimeMsMax: null,
      tenantLeaseTimeMsMax: 86_400_000,
    },
    createdAt: sampleNow,
    ...over,
  };
}

export function sampleKey(over: Partial<Key> = {}): Key {
  return {
    id: "key_1",
    hash: "never shown",
    role: "supervisor",
    tenant: "acme",
    label: "CI",
    createdAt: sampleNow,
    ...over,
  };
}
