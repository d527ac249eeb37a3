/** What can be asked of the kernel. Every edge (HTTP, stream, MCP, cells) translates to these and decides nothing. */
import {
  choice,
  type Field,
  type Fields,
  flag,
  flat,
  given,
  hidden,
  type InputValues,
  integer,
  json,
  list,
  map,
  named,
  optional,
  partial,
  record,
  refusedWith,
  text,
  time,
  uncheckedChoice,
  type Values,
} from "./field.ts";
import {
  agentId,
  cellName,
  type IntentInput,
  intentGiven,
  keyId,
  labels,
  leaseId,
  leaseIds,
  predicate,
  purpose,
  reason,
  requestId,
  requestKey,
  resourceName,
  tenantId,
  version,
  workerId,
} from "./inputs.ts";
import { limits } from "./limits.ts";
import { type KeyScopes, keyScopes, policy, policyId, policyInput } from "./policy-records.ts";
import {
  cellBinding,
  cellEndCodes,
  cellResource,
  key,
  type Role,
  resolutionStrategies,
  roles,
  tenantQuotas,
  tenantSettings,
  wireAgentStates,
} from "./records.ts";
import type { TaskCommand } from "./task-commands.ts";

export type { IntentInput };

/** Two random 32-bit numbers drawn by the engine; ids and jitter come from them. The kernel itself draws nothing. */
export type Entropy = readonly [number, number];
export const unstamped: Entropy = [0, 0];

/** The caller. An agent's token names its agent and the epoch in which it was issued (A3). */
export interface Actor {
  readonly role: Role;
  readonly agentId: string | null;
  readonly epoch: number | null;
  /** The key that was shown, if any: names belong to the key that used them first (L13). */
  readonly keyId?: string;
  /** What the key is narrowed to (S4). */
  readonly scopes?: KeyScopes | null;
  /** Of an agent's token: the key that it was drawn with. */
  readonly drawnWith?: string;
  /** Where the request came from, for what is in the audit log (S7). */
  readonly address?: string;
}

export interface CommandBase {
  readonly tenant: string;
  readonly actor: Actor;
  /** Written by the engine when it takes the command; `unstamped` until then. */
  entropy: Entropy;
}

/** A command of a table of descriptions, by its type. */
export type CommandOf<C, K extends keyof C> = CommandBase & { readonly type: K } & Values<C[K]>;

/** A5: the resource is still at this version. */
export const assumption = { resource: resourceName, version };
export interface Assumption extends Values<typeof assumption> {}
const noAssumptions: readonly Assumption[] = [];

export const digestInput = {
  checkpointId: text({ min: 1, max: limits.keyLengthMax, error: "invalid_digest" }),
  resumePoint: text({ min: 1, max: limits.keyLengthMax, error: "invalid_digest" }),
  context: optional(json({ bytesMax: limits.digestBytesMax, error: "invalid_digest" })),
  intentBacklog: optional(
    list(intentGiven, { max: limits.intentsMax, error: "invalid_digest" }),
    [] as readonly IntentInput[],
  ),
  resolutionStrategy: optional(uncheckedChoice(resolutionStrategies, { error: "invalid_digest" }), "RETRY"),
  /** Judged at resume, unless that names its own (A5). */
  assumptions: optional(list(record(assumption), { max: limits.assumptionsMax }), noAssumptions),
};
export interface DigestInput extends Values<typeof digestInput> {}

const ttl = { min: limits.ttlMsMin };
const activity = optional(flag(), false);
const revoke = optional(flag(), false);
const cellId = named("cell", cellName);
const session = text({ min: 1, max: limits.idLengthMax });
const inventory = list(record(cellResource), { max: limits.cellInventoryMax });

/** A cell's reports (G6, G7). */
const bindingReport = {
  /** Which cell reports; null: a supervisor does for it. */
  cellId: optional(cellName),
  leaseId,
  generation: integer(),
  coordinate: optional(text()),
  reason: optional(text()),
};

export const revokeTarget = {
  leaseId: optional(leaseId),
  agentId: optional(agentId),
  resourcePrefix: optional(resourceName),
};
const target: Field<Partial<InputValues<typeof revokeTarget>>> = given(revokeTarget);

/** Exactly one of them. */
export const ownedNames = {
  agentId: optional(agentId),
  workerId: optional(workerId),
  cellId: named("cell", optional(cellName)),
};
const ownedName: Field<Partial<InputValues<typeof ownedNames>>> = given(ownedNames);

export const keyInput = {
  /** The server draws these two. */
  id: hidden(optional(text({ min: 1, max: limits.idLengthMax, error: "invalid_key" }), "")),
  hash: hidden(optional(text(), "")),
  role: choice(roles, { error: "invalid_key" }),
  /** null: the caller's own. */
  tenant: named("tenant_id", optional(tenantId)),
  label: optional(text({ max: limits.labelLengthMax, error: "invalid_key" })),
  /** null: it is narrowed to nothing. */
  scopes: optional(given(keyScopes)),
  expiresAt: optional(time({ error: "invalid_key" })),
};

/** When a key was last shown. */
const keyUse = { keyId, at: time() };
export interface KeyUse extends Values<typeof keyUse> {}

/** A tenant as the directory has it: that it exists. What operators set for it is its own shard's. */
const listedTenant = { tenantId, createdAt: time() };

export const commands = {
  register_agent: {
    /** Absent: one is made. Present and known: another instance takes the agent up (A3). */
    agentId: optional(agentId),
    labels: optional(labels),
  },
  transition_agent: { agentId, to: uncheckedChoice(wireAgentStates, { error: "invalid_state" }) },
  /** Announces DIE_RESTART (L9). */
  restart_agent: { agentId },
  pause_agent: { agentId },
  unpause_agent: { agentId },
  save_digest: { agentId, digest: flat(record(digestInput)) },
  /** Epoch + 1, leases re-issued, the observation update, and a judgement on what the agent assumes (A3 to A5). */
  resume_agent: {
    agentId,
    assumptions: optional(list(record(assumption), { max: limits.assumptionsMax }), noAssumptions),
  },
  verify_all: { agentId, leaseIds },
  /** A new token for the present instance, before the one that it has runs out. */
  renew_agent_token: { agentId },
  acquire: {
    agentId,
    intents: list(intentGiven, {
      min: 1,
      max: limits.intentsMax,
      error: { min: "empty_manifest", max: "manifest_too_large" },
    }),
    ttlMs: optional(integer({ ...ttl, error: "invalid_ttl" })),
    waitTimeoutMs: optional(integer({ error: "invalid_wait_timeout" })),
    /** W14: where the verdict would be DIE, it may stand by for this long; 0: it does not. */
    standbyMs: optional(integer({ max: limits.standbyMsMax, error: "invalid_wait_timeout" }), 0),
    idleTimeoutMs: optional(integer({ ...ttl, error: "invalid_idle_timeout" })),
    purpose: optional(purpose),
    tokens: optional(flag(), false),
    dryRun: optional(flag(), false),
    requestKey,
    /** False: an answer from the present state of a known key, or one that was held, does not collect the grant (W8). */
    collect: optional(flag()),
    /** The store was asked for the key, and does not know it: see `request_key_unknown` (W10). */
    keyLookedUp: hidden(optional(flag(), false)),
  },
  /** Asks for a request's present state; a granted one is thereby collected, if its agent asks (W8). */
  collect_request: {
    requestId,
    /** null: its agent collects, and a caller with another key does not. */
    collect: optional(flag()),
  },
  cancel_request: { requestId },
  heartbeat: { leaseId, activity },
  heartbeat_all: { agentId, leaseIds, activity },
  renew_lease: { leaseId, generation: optional(integer({ min: 1 })), activity },
  release_lease: { leaseId, version: optional(version) },
  release_all: {
    agentId,
    leaseIds,
    versions: optional(
      map(version, { max: limits.leaseIdsMax, keyMax: limits.resourceLengthMax, error: "invalid_version" }),
    ),
  },
  transfer_lease: { leaseId, toAgentId: agentId, version: optional(version) },
  downgrade_lease: { leaseId, predicate, version: optional(version) },
  revoke: {
    /** Exactly one of them. */
    target: flat(target),
    reason,
  },
  /** A guard has found that this agent wrote what another's lease protects. */
  report_violation: { leaseId, agentId, resource: resourceName },
  declare_resource: {
    resource: resourceName,
    capacity: optional(integer({ min: 1, max: limits.unitsMax, error: "invalid_capacity" })),
    refillMs: optional(integer({ min: limits.refillMsMin, max: limits.refillMsMax, error: "invalid_refill" })),
    cell: optional(cellName),
  },
  fence_resource: { resource: resourceName, reason },
  /** The probe has seen that it is clean, or, for an unbound resource, the operator says so (G7). */
  reset_resource: { resource: resourceName, probed: hidden(optional(flag(), false)) },
  withdraw_resource: { resource: resourceName, revoke },
  bind_confirmed: bindingReport,
  bind_failed: bindingReport,
  teardown_confirmed: bindingReport,
  teardown_failed: bindingReport,
  /** A cell connects, or connects again, and reports what it believes; the stricter of both beliefs wins. */
  enrol_cell: refusedWith("invalid_cell", {
    cellId,
    session,
    version: optional(text({ max: limits.labelLengthMax })),
    inventory,
    bindings: list(record(cellBinding), { max: limits.cellBindingsMax }),
  }),
  cell_heartbeat: refusedWith("invalid_cell", {
    cellId,
    session,
    /** null: unchanged. */
    inventory: optional(inventory),
  }),
  /** A cell was shut down in order. */
  cell_left: { cellId, session, reason: text({ max: limits.reasonLengthMax, error: "invalid_reason" }) },
  /** A cell has ended a binding by itself: by its own clock (G11), or because of a fence. */
  cell_ended: {
    cellId,
    leaseId,
    generation: integer(),
    code: uncheckedChoice(cellEndCodes),
    /** Why it could not be torn down; null: it is gone. */
    failure: optional(text({ max: limits.reasonLengthMax })),
  },
  /** G12, for all resources of a cell. */
  withdraw_cell: { cellId, revoke },
  readmit_cell: { cellId },
  /**
   * The store is about to delete ended leases: those of before a time, and all but the youngest. The register of last writes
   * keeps what it needs of them as records (A4, A5), some at a time: the reply counts them, and 0 means that it has all.
   */
  forget_ends: { before: integer(), keep: integer() },
  create_tenant: { tenantId },
  suspend_tenant: { tenantId, reason: optional(reason) },
  resume_tenant: { tenantId, reason: hidden(optional(reason)) },
  set_tenant_settings: { tenantId, settings: flat(partial(record(tenantSettings))) },
  set_tenant_quotas: { tenantId, quotas: flat(partial(record(tenantQuotas))) },
  create_key: {
    key: flat(record(keyInput)),
  },
  delete_key: { keyId },
  /** Sets a policy, or replaces the one of this id (S4). */
  set_policy: { policyId, policy: flat(record(policyInput)) },
  delete_policy: { policyId },
  /** Another secret for the same key, which keeps what it owns; the former one is good for a while yet. */
  rotate_key: {
    keyId,
    overlapMs: optional(integer({ max: limits.keyOverlapMsMax, error: "invalid_key" }), limits.keyOverlapMsDefault),
    /** null: stays as it is. */
    expiresAt: optional(time({ error: "invalid_key" })),
    /** The server draws it. */
    hash: hidden(optional(text(), "")),
  },
  /** Gives a name to a key (L13). */
  assign_name: { keyId, name: flat(ownedName) },
  /** Only the server itself sends it. */
  note_key_uses: { uses: list(record(keyUse)) },
  /** What the directory's shard has, as a whole: the tenants of this shard, and all keys and policies. Only the server sends it. */
  adopt_directory: { tenants: list(record(listedTenant)), keys: list(record(key)), policies: list(record(policy)) },
} satisfies Readonly<Record<string, Fields>>;

type Of<K extends keyof typeof commands> = CommandOf<typeof commands, K>;
export type RegisterAgent = Of<"register_agent">;
export type TransitionAgent = Of<"transition_agent">;
export type ResumeAgent = Of<"resume_agent">;
export type VerifyAll = Of<"verify_all">;
/** Only what was looked up says so, and few say how they collect. */
export type Acquire = Omit<Of<"acquire">, "keyLookedUp" | "collect"> &
  Partial<Pick<Of<"acquire">, "keyLookedUp" | "collect">>;
export type CollectRequest = Of<"collect_request">;
export type CancelRequest = Of<"cancel_request">;
export type Heartbeat = Of<"heartbeat">;
export type HeartbeatAll = Of<"heartbeat_all">;
export type RenewLease = Of<"renew_lease">;
export type ReleaseLease = Of<"release_lease">;
export type ReleaseAll = Of<"release_all">;
export type TransferLease = Of<"transfer_lease">;
export type DowngradeLease = Of<"downgrade_lease">;
export type ReportViolation = Of<"report_violation">;
export type DeclareResource = Of<"declare_resource">;
export type FenceResource = Of<"fence_resource">;
export type ResetResource = Of<"reset_resource">;
export type WithdrawResource = Of<"withdraw_resource">;
export type EnrolCell = Of<"enrol_cell">;
export type CellHeartbeat = Of<"cell_heartbeat">;
export type CellLeft = Of<"cell_left">;
export type CellEnded = Of<"cell_ended">;
export type WithdrawCell = Of<"withdraw_cell">;
export type ForgetEnds = Of<"forget_ends">;
export type CreateTenant = Of<"create_tenant">;
export type SetTenantSettings = Of<"set_tenant_settings">;
export type SetTenantQuotas = Of<"set_tenant_quotas">;
export type DeleteKey = Of<"delete_key">;
export type SetPolicy = Of<"set_policy">;
export type DeletePolicy = Of<"delete_policy">;
export type RotateKey = Of<"rotate_key">;
export type AssignName = Of<"assign_name">;
export type NoteKeyUses = Of<"note_key_uses">;
export type AdoptDirectory = Of<"adopt_directory">;
export type PauseAgent = Of<"pause_agent" | "unpause_agent">;
export type ReportBinding = Of<"bind_confirmed" | "bind_failed" | "teardown_confirmed" | "teardown_failed">;
export type SuspendTenant = Of<"suspend_tenant" | "resume_tenant">;
export type SaveDigest = Of<"save_digest">;
export type Revoke = Of<"revoke">;
export type CreateKey = Of<"create_key">;

type PlainCommand = Exclude<keyof typeof commands, "acquire">;
export type Command = { [K in PlainCommand]: Of<K> }[PlainCommand] | Acquire | TaskCommand;
