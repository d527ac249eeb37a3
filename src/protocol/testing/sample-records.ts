/** Records for the tests of the encoders: each complete and plausible, with what a test is about put over it. */
import { type Fields, usual, type Values } from "../../kernel/contract/field.ts";
import {
  agent,
  cell,
  digest,
  key,
  lease,
  quotasDefault,
  request,
  resource,
  settingsDefault,
  tenant,
} from "../../kernel/contract/records.ts";
import { blocker } from "../../kernel/contract/replies.ts";
import { payload, receipt, task, taskSpec } from "../../kernel/contract/task-records.ts";

export const sampleNow = Date.UTC(2026, 10, 15, 20, 59, 51, 123);

/** What is usual, what the sample says, and what a test says. */
function sampleOf<F extends Fields>(fields: F, sample: Partial<Values<F>>) {
  return (over: Partial<Values<F>> = {}): Values<F> => ({ ...usual(fields), ...sample, ...over }) as Values<F>;
}

const intents = [
  { predicate: "MUTATES", resource: "FILE:/src/auth.ts", units: 1, to: null, pick: null },
] as const satisfies readonly unknown[];
const agentId = "agt_01jcs8qk2m9x4n7r";
const taskId = "T-01jcs8qm5t6w8y0a2b4d6f";

export const sampleBlocker = sampleOf(blocker, {
  agentId,
  holder: agentId,
  resource: "FILE:/src/auth.ts",
  predicate: "MUTATES",
  purpose: "rename login()",
  leaseId: "lse_01jcs8qm5t6w8y0a",
  until: sampleNow + 60_000,
});

export const sampleLease = sampleOf(lease, {
  tenant: "default",
  id: "lse_01jcs8qm5t6w8y0a",
  resource: "FILE:/src/auth.ts",
  predicate: "MUTATES",
  agentId,
  holder: agentId,
  state: "ACTIVE",
  fence: 4711,
  generation: 1,
  purpose: "rename login()",
  acquiredAt: sampleNow,
  expiresAt: sampleNow + 60_000,
  ttl: 60_000,
  activeAt: sampleNow,
});

export const sampleRequest = sampleOf(request, {
  tenant: "default",
  id: "req_01jcs8qm5t6w8y0a",
  agentId,
  holder: agentId,
  fingerprint: "",
  state: "WAITING",
  intents,
  ttl: 60_000,
  tokens: false,
  arrival: 1,
  submittedAt: sampleNow,
  waitTimeout: 30_000,
  timeoutAt: sampleNow + 30_000,
  warnings: [],
  leaseIds: [],
  ended: [],
});

export const sampleAgent = sampleOf(agent, {
  tenant: "default",
  id: agentId,
  labels: { host: "build-3" },
  state: "PLANNING",
  priority: 1_763_240_391_123,
  attempts: 0,
  epoch: 1,
  registeredAt: sampleNow,
  idleSince: sampleNow,
});

export const sampleDigest = sampleOf(digest, {
  tenant: "default",
  agentId,
  checkpointId: "step-3",
  resumePoint: "tests written",
  context: { branch: "rename-login" },
  intentBacklog: intents,
  resolutionStrategy: "RETRY",
  assumptions: [{ resource: "FILE:/src/auth.ts", version: "v1" }],
  priority: 1_763_240_391_123,
  savedAt: sampleNow,
});

export const sampleResource = sampleOf(resource, {
  tenant: "default",
  name: "GPU:/rack-1/a100",
  capacity: 4,
  fenced: false,
  withdrawn: false,
  declaredAt: sampleNow,
});

export const sampleCell = sampleOf(cell, {
  tenant: "default",
  id: "lab-1",
  session: "never shown",
  keyId: "key_1",
  state: "READY",
  withdrawn: false,
  version: "0.1.0",
  enrolledAt: sampleNow,
  changedAt: sampleNow,
  aliveBy: sampleNow + 15_000,
});

export const sampleTenant = sampleOf(tenant, {
  id: "acme",
  suspended: false,
  settings: settingsDefault,
  quotas: { ...quotasDefault, leasesMax: 10, tenantLeaseTimeMsMax: 86_400_000, kinds: { GPU: 4 } },
  createdAt: sampleNow,
});

export const sampleKey = sampleOf(key, {
  id: "key_1",
  hash: "never shown",
  role: "supervisor",
  tenant: "acme",
  label: "CI",
  createdAt: sampleNow,
});

const sampleSpec = sampleOf(taskSpec, {
  taskType: "code.generate",
  principalAi: "delegate.root",
  taskSummary: "Generate Python function for CSV parsing",
  expectedOutcomeKind: "artifact_pointer",
  expectedArtifactMime: "text/x-python",
  requires: ["python"],
  intents: [{ ...intents[0], resource: "FILE:/src/csv.py" }],
});

export const sampleTask = sampleOf(task, {
  tenant: "default",
  id: taskId,
  spec: sampleSpec(),
  status: "queued",
  timestamp: 7,
  createdAt: sampleNow,
  attempts: 0,
});

export const samplePayload = sampleOf(payload, {
  tenant: "default",
  taskId,
  taskBody: "Create a function that reads CSV…",
  inputs: { language: "python" },
});

export const sampleReceipt = sampleOf(receipt, {
  tenant: "default",
  sequence: 7,
  id: "rcp_7",
  storedAt: sampleNow,
  phase: "accepted",
  taskId,
  attempt: 1,
  sourceSystem: "worker.codegen-123",
  recipientAi: "worker.codegen",
  taskType: "code.generate",
  taskSummary: "Generate Python function for CSV parsing",
  createdAt: sampleNow,
});
