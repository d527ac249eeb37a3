/** What can be asked of the kernel. Every edge (HTTP, stream, MCP, cells) translates to these and decides nothing. */
import type { CellBinding, CellResource, Key, Role, TenantQuotas, TenantSettings } from "./records.ts";
import type { TaskCommand } from "./task-commands.ts";

/** Two random 32-bit numbers drawn by the engine: ids and jitter come from them (nothing random lives in here). */
export type Entropy = readonly [number, number];

/** Who asks. An agent's token names its agent and the epoch in which it was issued (A3). */
export interface Actor {
  readonly role: Role;
  readonly agentId: string | null;
  readonly epoch: number | null;
  /** The key that was shown, if any: a worker's ids belong to the key that used them first (T1). */
  readonly keyId?: string;
}

export interface Asked {
  readonly tenant: string;
  readonly actor: Actor;
  readonly entropy: Entropy;
}

export interface IntentInput {
  readonly predicate: string;
  readonly resource: string;
  readonly units?: number | null;
  readonly to?: string | null;
  /** "any": whichever declared resource of the pattern is ready and has room. */
  readonly pick?: "any" | null;
}

export interface DigestInput {
  readonly checkpointId: string;
  readonly resumePoint: string;
  readonly context: unknown;
  readonly intentBacklog: readonly IntentInput[];
  readonly resolutionStrategy: string;
}

export interface RegisterAgent extends Asked {
  readonly type: "register_agent";
  /** Absent: one is made. Present and known: another instance takes the agent up (A3). */
  readonly agentId: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
}
export interface TransitionAgent extends Asked {
  readonly type: "transition_agent";
  readonly agentId: string;
  readonly to: string;
}
/** Announces DIE_RESTART (L9). */
export interface RestartAgent extends Asked {
  readonly type: "restart_agent";
  readonly agentId: string;
}
export interface PauseAgent extends Asked {
  readonly type: "pause_agent" | "unpause_agent";
  readonly agentId: string;
}
export interface SaveDigest extends Asked {
  readonly type: "save_digest";
  readonly agentId: string;
  readonly digest: DigestInput;
}
/** A4's first half: epoch + 1, leases re-issued, the digest and what to look up. */
export interface ResumeAgent extends Asked {
  readonly type: "resume_agent";
  readonly agentId: string;
  /** Resources whose state the agent assumes; looked up beside those that the digest names. */
  readonly assumed: readonly string[];
}
/** A5: an assumption failed; the digest is dropped and the agent is back in PLANNING. */
export interface DropDigest extends Asked {
  readonly type: "drop_digest";
  readonly agentId: string;
}
export interface VerifyAll extends Asked {
  readonly type: "verify_all";
  readonly agentId: string;
  readonly leaseIds: readonly string[] | null;
}
export interface Acquire extends Asked {
  readonly type: "acquire";
  readonly agentId: string;
  readonly intents: readonly IntentInput[];
  readonly ttlMs: number | null;
  readonly waitTimeoutMs: number | null;
  readonly idleTimeoutMs: number | null;
  readonly purpose: string | null;
  readonly tokens: boolean;
  readonly dryRun: boolean;
  readonly requestKey: string | null;
}
/** Asks for a request's present state; a granted one is thereby collected (W8). */
export interface CollectRequest extends Asked {
  readonly type: "collect_request";
  readonly requestId: string;
}
export interface CancelRequest extends Asked {
  readonly type: "cancel_request";
  readonly requestId: string;
}
export interface Heartbeat extends Asked {
  readonly type: "heartbeat";
  readonly leaseId: string;
  readonly activity: boolean;
}
export interface HeartbeatAll extends Asked {
  readonly type: "heartbeat_all";
  readonly agentId: string;
  readonly leaseIds: readonly string[] | null;
  readonly activity: boolean;
}
export interface RenewLease extends Asked {
  readonly type: "renew_lease";
  readonly leaseId: string;
  readonly generation: number | null;
}
export interface ReleaseLease extends Asked {
  readonly type: "release_lease";
  readonly leaseId: string;
  readonly version: string | null;
}
export interface ReleaseAll extends Asked {
  readonly type: "release_all";
  readonly agentId: string;
  readonly leaseIds: readonly string[] | null;
  readonly versions: Readonly<Record<string, string>> | null;
}
export interface TransferLease extends Asked {
  readonly type: "transfer_lease";
  readonly leaseId: string;
  readonly toAgentId: string;
}
export interface DowngradeLease extends Asked {
  readonly type: "downgrade_lease";
  readonly leaseId: string;
  readonly predicate: string;
}
/** A guard has found that this agent wrote what another's lease stands against. */
export interface ReportViolation extends Asked {
  readonly type: "report_violation";
  readonly agentId: string;
  readonly leaseId: string;
  readonly resource: string;
}
export interface Revoke extends Asked {
  readonly type: "revoke";
  readonly target: { readonly leaseId: string } | { readonly agentId: string } | { readonly resourcePrefix: string };
  readonly reason: string;
}
export interface DeclareResource extends Asked {
  readonly type: "declare_resource";
  readonly resource: string;
  readonly capacity: number | null;
  readonly cell: string | null;
}
export interface FenceResource extends Asked {
  readonly type: "fence_resource";
  readonly resource: string;
  readonly reason: string;
}
/** The probe has seen it, or, for an unbound resource, the operator gives his word (G7). */
export interface ResetResource extends Asked {
  readonly type: "reset_resource";
  readonly resource: string;
  readonly probed: boolean;
}
export interface WithdrawResource extends Asked {
  readonly type: "withdraw_resource";
  readonly resource: string;
  readonly revoke: boolean;
}
/** A cell's reports (G6, G7). */
export interface ReportBinding extends Asked {
  readonly type: "bind_confirmed" | "bind_failed" | "teardown_confirmed" | "teardown_failed";
  /** Which cell speaks; null: a supervisor does for it. */
  readonly cellId: string | null;
  readonly leaseId: string;
  readonly generation: number;
  readonly coordinate: string | null;
  readonly reason: string | null;
}
/** A cell comes, or comes back, and says what it believes; the stricter of both beliefs wins. */
export interface EnrolCell extends Asked {
  readonly type: "enrol_cell";
  readonly cellId: string;
  readonly session: string;
  readonly version: string | null;
  readonly inventory: readonly CellResource[];
  readonly bindings: readonly CellBinding[];
}
export interface CellHeartbeat extends Asked {
  readonly type: "cell_heartbeat";
  readonly cellId: string;
  readonly session: string;
  /** null: as it was. */
  readonly inventory: readonly CellResource[] | null;
}
/** A cell was shut down in order. */
export interface CellLeft extends Asked {
  readonly type: "cell_left";
  readonly cellId: string;
  readonly session: string;
  readonly reason: string;
}
/** A cell has ended a binding by itself: by its own clock (G11), or because of a fence. */
export interface CellEnded extends Asked {
  readonly type: "cell_ended";
  readonly cellId: string;
  readonly leaseId: string;
  readonly generation: number;
  readonly code: string;
  /** Why it could not be torn down; null: it is gone. */
  readonly failure: string | null;
}
/** G12, for all resources of a cell. */
export interface WithdrawCell extends Asked {
  readonly type: "withdraw_cell";
  readonly cellId: string;
  readonly revoke: boolean;
}
export interface ReadmitCell extends Asked {
  readonly type: "readmit_cell";
  readonly cellId: string;
}
export interface CreateTenant extends Asked {
  readonly type: "create_tenant";
  readonly tenantId: string;
}
export interface SuspendTenant extends Asked {
  readonly type: "suspend_tenant" | "resume_tenant";
  readonly tenantId: string;
  readonly reason: string | null;
}
export interface SetTenantSettings extends Asked {
  readonly type: "set_tenant_settings";
  readonly tenantId: string;
  readonly settings: Partial<TenantSettings>;
}
export interface SetTenantQuotas extends Asked {
  readonly type: "set_tenant_quotas";
  readonly tenantId: string;
  readonly quotas: Partial<TenantQuotas>;
}
export interface CreateKey extends Asked {
  readonly type: "create_key";
  readonly key: Omit<Key, "createdAt">;
}
export interface DeleteKey extends Asked {
  readonly type: "delete_key";
  readonly keyId: string;
}

export type Command =
  | RegisterAgent
  | TransitionAgent
  | RestartAgent
  | PauseAgent
  | SaveDigest
  | ResumeAgent
  | DropDigest
  | VerifyAll
  | Acquire
  | CollectRequest
  | CancelRequest
  | Heartbeat
  | HeartbeatAll
  | RenewLease
  | ReleaseLease
  | ReleaseAll
  | TransferLease
  | DowngradeLease
  | Revoke
  | ReportViolation
  | DeclareResource
  | FenceResource
  | ResetResource
  | WithdrawResource
  | ReportBinding
  | EnrolCell
  | CellHeartbeat
  | CellLeft
  | CellEnded
  | WithdrawCell
  | ReadmitCell
  | CreateTenant
  | SuspendTenant
  | SetTenantSettings
  | SetTenantQuotas
  | CreateKey
  | DeleteKey
  | TaskCommand;
