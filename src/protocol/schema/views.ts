/**
 * What answers show beside whole records, each part described once: its type, its schema and its JSON are derived from
 * it, as those of records are from the contract.
 */
import {
  choice,
  flag,
  integer,
  list,
  named,
  omitted,
  only,
  optional,
  record,
  text,
  time,
  uncheckedChoice,
} from "../../kernel/contract/field.ts";
import { predicates } from "../../kernel/contract/predicates.ts";
import { agent, lease, resource, wireAgentStates } from "../../kernel/contract/records.ts";
import { obligation, payload, task, taskSpec } from "../../kernel/contract/task-records.ts";
import { leaseStates, unknownState } from "./vocabulary.ts";

/** Something in the way: a lease, or a request that waits ahead (W11). */
export const blocker = {
  ...only(lease, "agentId", "resource", "predicate", "purpose"),
  leaseId: omitted(optional(text())),
  requestId: omitted(optional(text())),
  expiresInMs: omitted(optional(integer())),
};

/** A4: what happened to the resources an agent relied on. */
export const observation = {
  since: time(),
  truncated: flag(),
  changes: list(
    record({
      resource: text(),
      predicate: uncheckedChoice(predicates),
      agentId: text(),
      at: time(),
      version: omitted(optional(text())),
    }),
  ),
};

/** A registration shows the credential and no more than the instance needs. */
export const registered = {
  id: agent.id,
  agentToken: text(),
  ...only(agent, "priority", "epoch"),
  state: choice(wireAgentStates),
};

/** L8: the truth about a lease. */
export const verifiedLease = {
  ...only(lease, "id", "state", "resource", "predicate", "fence"),
  expiresInMs: integer(),
};

/** What is left of a lease that is not extended or was released (L5). */
export const leaseEnd = {
  id: text(),
  state: choice([...leaseStates, unknownState]),
  code: named("error", omitted(optional(text()))),
};

/** A resource of a cell. */
export const hosted = {
  ...only(resource, "name", "driver", "capacity", "hardware"),
  ready: flag(),
  fault: resource.fault,
  fenceReason: named("fenced", optional(text())),
  withdrawn: flag(),
  leases: integer(),
};

/** What a token was narrowed by, as its verifier found it (G4). */
export const tokenCaveat = {
  type: text(),
  expiresAt: omitted(optional(time())),
  path: omitted(optional(text())),
  operations: omitted(optional(list(text()))),
  program: omitted(optional(text())),
  hardware: omitted(optional(text())),
  bytesMax: omitted(optional(integer())),
};

/** A master key of tokens, without the key. */
export const tokenKey = { id: named("key_id", text()), createdAt: time(), retiresAt: optional(time()) };

/** The work, as the AsyncGate document has it. */
export const offeredTask = {
  taskId: text(),
  ...only(taskSpec, "principalAi", "taskType", "taskSummary"),
  taskBody: payload.taskBody,
  payloadPointer: taskSpec.payloadPointer,
  inputs: payload.inputs,
  ...only(taskSpec, "expectedOutcomeKind", "expectedArtifactMime"),
};

/** R5: what a custodian answers for, with the task that it is about. */
export const taskObligation = {
  ...obligation,
  closedAt: optional(time()),
  taskId: text(),
  ...only(taskSpec, "taskType", "taskSummary", "principalAi"),
  ...only(task, "status", "lastReceiptId"),
};

/** What is signed comes first, in the order in which it is signed. */
export const ledgerHead = {
  tenant: named("tenant_id", text()),
  sequence: integer(),
  hash: text(),
  at: time(),
  keyId: text(),
  signature: text(),
  publicKey: text(),
};
