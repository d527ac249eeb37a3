/** Records for the tests of the encoders: each complete and plausible, with what a test is about put over it. */
import type { Agent, Cell, Digest, Key, Lease, Request, Resource, Tenant } from "../../kernel/contract/records.ts";
import type { Payload, Receipt, Task } from "../../kernel/contract/task-records.ts";

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
    intents: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null, pick: null }],
    picked: [],
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
    intentBacklog: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null, pick: null }],
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
    driver: null,
    hardware: [],
    fault: null,
    fenced: false,
    fenceReason: null,
    fencedAt: null,
    withdrawn: false,
    declaredAt: sampleNow,
    ...over,
  };
}

export function sampleCell(over: Partial<Cell> = {}): Cell {
  return {
    tenant: "default",
    id: "lab-1",
    session: "never shown",
    keyId: "key_1",
    state: "READY",
    goneReason: null,
    withdrawn: false,
    version: "0.1.0",
    enrolledAt: sampleNow,
    changedAt: sampleNow,
    aliveBy: sampleNow + 15_000,
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
      kinds: { GPU: 4 },
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

export function sampleTask(over: Partial<Task> = {}): Task {
  return {
    tenant: "default",
    id: "T-01jcs8qm5t6w8y0a2b4d6f",
    spec: {
      taskType: "code.generate",
      principalAi: "delegate.root",
      taskSummary: "Generate Python function for CSV parsing",
      payloadPointer: null,
      expectedOutcomeKind: "artifact_pointer",
      expectedArtifactMime: "text/x-python",
      taskPriority: 0,
      requires: ["python"],
      intents: [{ predicate: "MUTATES", resource: "FILE:/src/csv.py", units: 1, to: null, pick: null }],
      maxAttempts: 3,
      maxOffers: 10,
      leaseDurationMs: 900_000,
      requeueDelayMs: 30_000,
      dependsOn: [],
      concurrencyKey: null,
      concurrencyLimit: 1,
      speculative: false,
      preemptible: false,
      parentTaskId: null,
      idempotencyKey: null,
    },
    status: "queued",
    timestamp: 7,
    createdAt: sampleNow,
    createdBy: null,
    notBefore: null,
    attempts: 0,
    offers: 0,
    live: [],
    past: [],
    waitingOn: [],
    obligation: null,
    lastWorker: null,
    lastReceiptId: null,
    dedupes: [],
    progress: null,
    winningReceiptId: null,
    endedAt: null,
    endReason: null,
    ...over,
  };
}

export function samplePayload(over: Partial<Payload> = {}): Payload {
  return {
    tenant: "default",
    taskId: "T-01jcs8qm5t6w8y0a2b4d6f",
    taskBody: "Create a function that reads CSV…",
    inputs: { language: "python" },
    ...over,
  };
}

export function sampleReceipt(over: Partial<Receipt> = {}): Receipt {
  return {
    tenant: "default",
    sequence: 7,
    id: "rcp_7",
    obligationId: null,
    storedAt: sampleNow,
    phase: "accepted",
    taskId: "T-01jcs8qm5t6w8y0a2b4d6f",
    parentTaskId: null,
    causedByReceiptId: null,
    dedupeKey: null,
    attempt: 1,
    fromPrincipal: null,
    forPrincipal: null,
    sourceSystem: "worker.codegen-123",
    recipientAi: "worker.codegen",
    trustDomain: null,
    status: null,
    realtime: false,
    taskType: "code.generate",
    taskSummary: "Generate Python function for CSV parsing",
    taskBody: null,
    inputs: null,
    expectedOutcomeKind: null,
    expectedArtifactMime: null,
    outcomeKind: null,
    outcomeText: null,
    artifactLocation: null,
    artifactPointer: null,
    artifactChecksum: null,
    artifactSizeBytes: 0,
    artifactMime: null,
    artifactRefs: null,
    escalationClass: null,
    escalationReason: null,
    escalationTo: null,
    retryRequested: false,
    body: null,
    createdAt: sampleNow,
    startedAt: null,
    completedAt: null,
    readAt: null,
    archivedAt: null,
    metadata: null,
    ...over,
  };
}
