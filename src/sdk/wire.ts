/** Written by scripts/generate.ts from src/protocol. Run `npm run generate` to write it again. */

export type Predicate = "PROVIDES" | "CONSUMES" | "MUTATES" | "DELETES" | "DEPENDS_ON" | "RENAMES";
export type LeaseState = "BINDING" | "ACTIVE" | "HELD" | "CLOSING" | "RELEASED" | "EXPIRED" | "REVOKED";
export type AgentState =
  | "PLANNING"
  | "ACQUIRING"
  | "EXECUTING"
  | "PAUSED"
  | "VERIFYING"
  | "COMPLETED"
  | "ABORTED"
  | "DIE_RESTART";
export type Role = "operator" | "supervisor" | "agent" | "worker" | "reader" | "cell";
export interface Agent {
  /** The agent's id. */
  readonly agent_id: string;
  /** Names and values of the caller's choice. */
  readonly labels: Readonly<Record<string, string>>;
  readonly state: AgentState;
  /** Whether its operator has paused it (W9). */
  readonly paused_by_operator: boolean;
  /** Older is smaller; it stays for the unit of work. */
  readonly priority_timestamp: number;
  /** How often it died since its last grant. */
  readonly attempts: number;
  /** Which instance of the agent is the present one. */
  readonly epoch: number;
  /** When it was registered. */
  readonly registered_at: string;
  /** Since when it is PAUSED. */
  readonly paused_at: string | null;
  /** Why it is PAUSED: a verdict (W9), a wound (W7), or the loss of its last lease. */
  readonly paused_for?: "wait" | "die" | "paused" | "wounded" | "lost";
  /** After DIE: when it is to ask again (W5). */
  readonly retry_at?: string;
  /** The key that it belongs to, for those above; null: to nobody below them (L13). */
  readonly registered_by?: string | null;
  /** Of an agent in DIE_RESTART. */
  readonly returns_to?: AgentState;
}
export interface AgentActivity {
  /** The agent's id. */
  readonly agent_id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Where it is in its unit of work (A1). */
  readonly state: AgentState;
  /** What it does, in one of five words. */
  readonly activity: "working" | "blocked" | "waiting_for_person" | "idle" | "lost";
  /** About since when. */
  readonly since: string;
  /** Why it is PAUSED. */
  readonly paused_for?: "wait" | "die" | "paused" | "wounded" | "lost";
  readonly paused_by_operator: boolean;
  /** How often it died since its last grant. */
  readonly attempts: number;
  /** After DIE: when it is to ask again (W5). */
  readonly retry_in_ms?: number;
  /** The oldest of them. */
  readonly leases: readonly Lease[];
  /** How many it holds, listed or not. */
  readonly leases_total: number;
  readonly requests: readonly OpenAsk[];
}
export interface AuditEntry {
  /** Its place in the tenant's log, from 1 on without a gap. */
  readonly sequence: number;
  /** The hash of the entry before; zeros in the first. */
  readonly previous_hash: string;
  /** The tenant that was changed. */
  readonly tenant_id: string;
  /** When. */
  readonly at: string;
  /** The id of the key that was shown; `keyless` where none was needed. */
  readonly actor: string;
  /** The role of that key. */
  readonly role: Role;
  /** Where the request came from. */
  readonly address?: string;
  /** The name of the operation. */
  readonly action: string;
  /** What it was done to. */
  readonly target?: string;
  /** What was asked for, field by field. */
  readonly detail: unknown;
  /** SHA-256 over the entry's members above, as JSON in ASCII, in this order. */
  readonly hash: string;
}
export interface Blocker {
  /** The agent's id. */
  readonly agent_id: string;
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** What the holder intends to do with the resource. */
  readonly predicate: Predicate;
  /** Why, in the agent's words; shown to callers that conflict with it. */
  readonly purpose: string | null;
  /** The lease's id. */
  readonly lease_id?: string;
  readonly request_id?: string;
  readonly expires_in_ms?: number;
}
export interface BulkOperation {
  readonly operation_id: string;
  readonly action: "cancel" | "redrive";
  /** `matching` while it looks for tasks; `failed`: it could not go on, and `detail` says why. */
  readonly state: "matching" | "running" | "done" | "failed";
  readonly dry_run: boolean;
  /** Tasks that match, as far as is known. */
  readonly matched: number;
  readonly done: number;
  /** Tasks that could not be changed, mostly because they ended meanwhile. */
  readonly failed: number;
  readonly detail: string | null;
  readonly begun_at: string;
  readonly ended_at: string | null;
}
export interface Cell {
  /** The cell's name. */
  readonly cell: string;
  /** READY, or GONE. */
  readonly state: "READY" | "GONE";
  /** Why it is gone. */
  readonly reason: string | null;
  /** Nothing new is leased on its resources (G12). */
  readonly withdrawn: boolean;
  /** Of the program. */
  readonly version: string | null;
  /** When it first enrolled. */
  readonly enrolled_at: string;
  /** When this last changed. */
  readonly since: string;
}
export interface CellView {
  /** The cell's name. */
  readonly cell: string;
  /** READY, or GONE. */
  readonly state: "READY" | "GONE";
  /** Why it is gone. */
  readonly reason: string | null;
  /** Nothing new is leased on its resources (G12). */
  readonly withdrawn: boolean;
  /** Of the program. */
  readonly version: string | null;
  /** When it first enrolled. */
  readonly enrolled_at: string;
  /** When this last changed. */
  readonly since: string;
  /** The key that it belongs to, for those above; null: to nobody below them (L13). */
  readonly registered_by?: string | null;
  /** To this server, now. */
  readonly connected: boolean;
  readonly resources: readonly {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
    readonly driver: string | null;
    readonly capacity: number | null;
    readonly hardware: readonly string[];
    readonly ready: boolean;
    /** Why the cell cannot serve it. */
    readonly fault: string | null;
    /** Why nothing is leased on it until it is reset. */
    readonly fenced: string | null;
    readonly withdrawn: boolean;
    /** Live ones. */
    readonly leases: number;
  }[];
}
export interface Cluster {
  /** Only servers on PostgreSQL can be several. */
  readonly store: "memory" | "postgres" | "sqlite";
  /** Of the server that answers. */
  readonly server_id: string;
  /** The service's time. */
  readonly now: string;
  readonly servers: readonly ClusterServer[];
  readonly shards: readonly ClusterShard[];
}
export interface ClusterServer {
  /** Of the process: another one after each start. */
  readonly server_id: string;
  /** Where other servers reach it. */
  readonly url: string | null;
  /** Of Leasehold. */
  readonly version: string;
  /** Whether it reported to the database within the last five seconds. */
  readonly alive: boolean;
  /** False: it was started with --no-lead, and only passes requests on. */
  readonly may_lead: boolean;
  /** When it first reported. */
  readonly started_at: string;
  /** When it last reported. */
  readonly seen_at: string;
}
export interface ClusterShard {
  /** Its number. */
  readonly shard: number;
  /** Of its leader; null: nobody leads it. */
  readonly server_id: string | null;
  /** Of its leader. */
  readonly url: string | null;
  /** Grows with every change of leader. */
  readonly epoch: number;
  /** When this leader was elected. */
  readonly since: string | null;
  /** How long the leader's lease lasts without a renewal. */
  readonly lease_left_ms: number | null;
}
export interface CreatedTask {
  /** The task's id. */
  readonly task_id: string;
  readonly status: "queued" | "leased" | "accepted" | "retry_pending" | "succeeded" | "failed" | "canceled" | "dead";
  /** What was capped (L2). */
  readonly warnings?: readonly string[];
}
export interface CreatedTasks {
  readonly results: readonly {
    readonly status: number;
    readonly body: unknown;
  }[];
}
export interface Digest {
  /** The agent's id. */
  readonly agent_id: string;
  /** The caller's name for it. */
  readonly checkpoint_id: string;
  /** Where to go on. */
  readonly resume_point: string;
  /** Whatever the agent saved. */
  readonly context: unknown;
  /** What it still has to acquire. */
  readonly intent_backlog: readonly Intent[];
  /** What to do at resume (A2). */
  readonly resolution_strategy: "RETRY" | "ABORT" | "MERGE";
  /** What the work relies on; judged at resume (A5). */
  readonly assumptions: readonly {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
    /** What the resource is now (a hash, or any text), for agents that resume later. */
    readonly version: string;
  }[];
  /** Older is smaller; it stays for the unit of work. */
  readonly priority_timestamp: number;
  /** When it was saved. */
  readonly saved_at: string;
}
export interface Explained {
  readonly task_id: string;
  readonly status: "queued" | "leased" | "accepted" | "retry_pending" | "succeeded" | "failed" | "canceled" | "dead";
  readonly waiting_for: readonly unknown[];
}
export interface Granted {
  readonly verdict: "GRANTED";
  /** For the question after the request; null for a dry run. */
  readonly request_id: string | null;
  readonly leases: readonly Lease[];
  readonly warnings: readonly string[];
  /** What others did to the resources that concern the agent while it was not executing (A4). */
  readonly observation_update?: ObservationUpdate;
  /** Only where the grant is not collected (W8): send a heartbeat within this time, or it lapses. */
  readonly claim_within_ms?: number;
}
export interface HeldThen {
  /** The lease's id. */
  readonly id: string;
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** What the holder intends to do with the resource. */
  readonly predicate: Predicate;
  /** The agent's id. */
  readonly agent_id: string;
  /** ACTIVE while it can be used. */
  readonly state: LeaseState;
  /** Greater than every earlier fence of the tenant; show it to the resource. */
  readonly fence: number;
  /** How often the lease was issued. */
  readonly generation: number;
  /** Units of a counted resource. */
  readonly units: number;
  /** Why, in the agent's words; shown to callers that conflict with it. */
  readonly purpose: string | null;
  /** When it was granted. */
  readonly acquired_at: string;
  /** When it ends without a heartbeat. */
  readonly expires_at: string;
  /** In milliseconds; a heartbeat extends the lease by this much from now. */
  readonly ttl: number;
  /** Where to connect, for a bound resource. */
  readonly coordinate?: string;
  /** How long it can still be used; needs no clock of yours. */
  readonly expires_in_ms: number;
  /** Proves the lease to a data plane. */
  readonly token?: string;
  /** null: it is live still. */
  readonly ended_at: string | null;
  readonly end_reason: string | null;
}
export interface HistoryAt {
  /** The moment that was asked for. */
  readonly at: string;
  /** false: history since then is pruned, and some may be missing. */
  readonly complete: boolean;
  readonly leases: readonly HeldThen[];
  readonly waits: readonly WaitedThen[];
  /** null on the last page. */
  readonly next_cursor: string | null;
}
export interface Intent {
  /** What the holder intends to do with the resource. */
  readonly predicate: Predicate;
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** Units of a counted resource; 1 if left out. */
  readonly units?: number | null | undefined;
  /** The target of a rename; with RENAMES only. */
  readonly to?: string | null | undefined;
  /** `any`: one of the declared resources that the pattern matches, on a ready cell and with room. */
  readonly pick?: "any" | null | undefined;
}
export interface JudgedAssumption {
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  readonly expected: string;
  readonly actual: string | null;
  readonly outcome: "holds" | "failed" | "unverified";
}
export interface KeptLease {
  /** The lease's id. */
  readonly id: string;
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** What the holder intends to do with the resource. */
  readonly predicate: Predicate;
  /** The agent's id. */
  readonly agent_id: string;
  /** ACTIVE while it can be used. */
  readonly state: LeaseState;
  /** Greater than every earlier fence of the tenant; show it to the resource. */
  readonly fence: number;
  /** How often the lease was issued. */
  readonly generation: number;
  /** Units of a counted resource. */
  readonly units: number;
  /** Why, in the agent's words; shown to callers that conflict with it. */
  readonly purpose: string | null;
  /** When it was granted. */
  readonly acquired_at: string;
  /** When it ends without a heartbeat. */
  readonly expires_at: string;
  /** In milliseconds; a heartbeat extends the lease by this much from now. */
  readonly ttl: number;
  /** Where to connect, for a bound resource. */
  readonly coordinate?: string;
  /** How long it can still be used; needs no clock of yours. */
  readonly expires_in_ms: number;
  /** Proves the lease to a data plane. */
  readonly token?: string;
  /** What others did to the resources that concern the agent while it was not executing (A4). */
  readonly observation_update?: ObservationUpdate;
}
export interface Key {
  /** The key's id, not its secret. */
  readonly key_id: string;
  /** What the key allows. */
  readonly role: Role;
  /** The tenant's id. */
  readonly tenant_id: string;
  /** What it is for. */
  readonly label: string | null;
  /** What a key is narrowed to. What is left out or empty limits nothing. */
  readonly scopes: Scopes | null;
  /** When it was created. */
  readonly created_at: string;
  /** It is refused from then on; null: never. */
  readonly expires_at: string | null;
  /** When it, or an agent's token drawn with it, was last shown, to the minute. */
  readonly last_used_at: string | null;
  /** When its secret was last replaced. */
  readonly rotated_at: string | null;
  /** Until then the secret before is good too; null: none is. */
  readonly former_until: string | null;
}
export interface Lease {
  /** The lease's id. */
  readonly id: string;
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** What the holder intends to do with the resource. */
  readonly predicate: Predicate;
  /** The agent's id. */
  readonly agent_id: string;
  /** ACTIVE while it can be used. */
  readonly state: LeaseState;
  /** Greater than every earlier fence of the tenant; show it to the resource. */
  readonly fence: number;
  /** How often the lease was issued. */
  readonly generation: number;
  /** Units of a counted resource. */
  readonly units: number;
  /** Why, in the agent's words; shown to callers that conflict with it. */
  readonly purpose: string | null;
  /** When it was granted. */
  readonly acquired_at: string;
  /** When it ends without a heartbeat. */
  readonly expires_at: string;
  /** In milliseconds; a heartbeat extends the lease by this much from now. */
  readonly ttl: number;
  /** Where to connect, for a bound resource. */
  readonly coordinate?: string;
  /** How long it can still be used; needs no clock of yours. */
  readonly expires_in_ms: number;
  /** Proves the lease to a data plane. */
  readonly token?: string;
}
export interface LeaseEnd {
  readonly id: string;
  readonly state: "BINDING" | "ACTIVE" | "HELD" | "CLOSING" | "RELEASED" | "EXPIRED" | "REVOKED" | "UNKNOWN";
  /** Why a live one could not be served. */
  readonly error?: string;
}
export interface LedgerHead {
  /** The tenant's id. */
  readonly tenant_id: string;
  /** Of the last receipt; 0 while there is none. */
  readonly sequence: number;
  readonly hash: string;
  readonly at: string;
  readonly key_id: string;
  /** Ed25519, over what `ledger verify` describes. */
  readonly signature: string;
  readonly public_key: string;
}
export interface MovedAgent {
  /** The agent's id. */
  readonly agent_id: string;
  /** Names and values of the caller's choice. */
  readonly labels: Readonly<Record<string, string>>;
  readonly state: AgentState;
  /** Whether its operator has paused it (W9). */
  readonly paused_by_operator: boolean;
  /** Older is smaller; it stays for the unit of work. */
  readonly priority_timestamp: number;
  /** How often it died since its last grant. */
  readonly attempts: number;
  /** Which instance of the agent is the present one. */
  readonly epoch: number;
  /** When it was registered. */
  readonly registered_at: string;
  /** Since when it is PAUSED. */
  readonly paused_at: string | null;
  /** Why it is PAUSED: a verdict (W9), a wound (W7), or the loss of its last lease. */
  readonly paused_for?: "wait" | "die" | "paused" | "wounded" | "lost";
  /** After DIE: when it is to ask again (W5). */
  readonly retry_at?: string;
  /** The key that it belongs to, for those above; null: to nobody below them (L13). */
  readonly registered_by?: string | null;
  /** Of an agent in DIE_RESTART. */
  readonly returns_to?: AgentState;
  /** What others did to the resources that concern the agent while it was not executing (A4). */
  readonly observation_update?: ObservationUpdate;
}
export interface NewKey {
  /** The key's id, not its secret. */
  readonly key_id: string;
  /** What the key allows. */
  readonly role: Role;
  /** The tenant's id. */
  readonly tenant_id: string;
  /** What it is for. */
  readonly label: string | null;
  /** What a key is narrowed to. What is left out or empty limits nothing. */
  readonly scopes: Scopes | null;
  /** When it was created. */
  readonly created_at: string;
  /** It is refused from then on; null: never. */
  readonly expires_at: string | null;
  /** When it, or an agent's token drawn with it, was last shown, to the minute. */
  readonly last_used_at: string | null;
  /** When its secret was last replaced. */
  readonly rotated_at: string | null;
  /** Until then the secret before is good too; null: none is. */
  readonly former_until: string | null;
  /** The secret; shown this once. */
  readonly key: string;
  /** What the first key changes. */
  readonly warnings?: readonly string[];
}
export interface NewReceiptInput {
  /** accepted, complete, escalate or progress. */
  readonly phase: string;
  /** The task; with `fence`, or found by `source_system`, unless `lease_id` is given. */
  readonly task_id?: string | null | undefined;
  /** The lease of the offer that this is about. */
  readonly lease_id?: string | null | undefined;
  /** The offer's fence, beside `task_id`. */
  readonly fence?: number | null | undefined;
  /** Of the sender's choice; one is made if it is left out. */
  readonly receipt_id?: string | null | undefined;
  /** Must be the credential's own. */
  readonly tenant_id?: string | null | undefined;
  /** The obligation that this is about; an `accepted` receipt that opens one may give it its id (R5). */
  readonly obligation_id?: string | null | undefined;
  /** The task that this one is a part of. */
  readonly parent_task_id?: string | null | undefined;
  /** The receipt that led to this one; the task's last one if it is left out. */
  readonly caused_by_receipt_id?: string | null | undefined;
  /** Sent again with the same content, the first receipt is the answer (R3). One that begins with the receipt's `lease_id` and a colon (`lse_…:done`) is for that lease alone, and is the cheapest. */
  readonly dedupe_key?: string | null | undefined;
  /** Which attempt this is, from 1. */
  readonly attempt?: number | null | undefined;
  /** The requester; the task's principal if left out. */
  readonly from_principal?: string | null | undefined;
  /** The executor, who answers for it (R5); the worker if left out. */
  readonly for_principal?: string | null | undefined;
  /** The worker_id. */
  readonly source_system?: string | null | undefined;
  /** The recipient. */
  readonly recipient_ai?: string | null | undefined;
  /** As given. */
  readonly trust_domain?: string | null | undefined;
  /** Of a complete receipt: success, failure or canceled. */
  readonly status?: string | null | undefined;
  /** As given. */
  readonly realtime?: boolean | null | undefined;
  /** From the task if left out. */
  readonly task_type?: string | null | undefined;
  /** From the task if left out. */
  readonly task_summary?: string | null | undefined;
  /** From the task if left out, but not into a progress receipt. */
  readonly task_body?: string | null | undefined;
  /** From the task if left out, but not into a progress receipt; up to 64 KiB. */
  readonly inputs?: unknown | undefined;
  /** From the task if left out. */
  readonly expected_outcome_kind?: string | null | undefined;
  /** From the task if left out. */
  readonly expected_artifact_mime?: string | null | undefined;
  /** Of a complete receipt: none, response_text, artifact_pointer or mixed. */
  readonly outcome_kind?: string | null | undefined;
  /** The result, in words. */
  readonly outcome_text?: string | null | undefined;
  /** Where the artifact is stored. */
  readonly artifact_location?: string | null | undefined;
  /** From `artifact_location` if left out. */
  readonly artifact_pointer?: string | null | undefined;
  /** As given. */
  readonly artifact_checksum?: string | null | undefined;
  /** As given. */
  readonly artifact_size_bytes?: number | null | undefined;
  /** From what was expected if left out. */
  readonly artifact_mime?: string | null | undefined;
  /** Further artifacts. */
  readonly artifact_refs?: unknown | undefined;
  /** owner, capability, trust, policy, scope or other. */
  readonly escalation_class?: string | null | undefined;
  /** Why it is escalated. */
  readonly escalation_reason?: string | null | undefined;
  /** The principal it is escalated to; the task's supervisor or principal if left out (T5). */
  readonly escalation_to?: string | null | undefined;
  /** Whether it should be tried again. */
  readonly retry_requested?: boolean | null | undefined;
  /** Anything else. */
  readonly body?: unknown | undefined;
  /** When it was written. ISO 8601. */
  readonly created_at?: string | null | undefined;
  /** When the work began. ISO 8601. */
  readonly started_at?: string | null | undefined;
  /** When it ended. ISO 8601. */
  readonly completed_at?: string | null | undefined;
  /** As given. ISO 8601. */
  readonly read_at?: string | null | undefined;
  /** As given. ISO 8601. */
  readonly archived_at?: string | null | undefined;
  /** Up to 16 KiB. */
  readonly metadata?: unknown | undefined;
  /** Of the receipt: 1.0. */
  readonly schema_version?: string | null | undefined;
  /** Accepted and not used: the ledger's clock decides. */
  readonly stored_at?: string | null | undefined;
  /** Accepted and not used: the server writes it (R7). */
  readonly submitted_by?: string | null | undefined;
}
export interface NewTaskInput {
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  /** Whose task it is: who may cancel it, and who is notified when it cannot be done. */
  readonly principal_ai: string;
  /** In a line, for people. */
  readonly task_summary?: string | null | undefined;
  /** The whole description, up to 100 KiB. */
  readonly task_body?: string | null | undefined;
  /** Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given. */
  readonly payload_pointer?: string | null | undefined;
  /** Any JSON, up to 64 KiB. */
  readonly inputs?: unknown | undefined;
  /** none, response_text, artifact_pointer or mixed. */
  readonly expected_outcome_kind?: string | null | undefined;
  /** The media type of the artifact. */
  readonly expected_artifact_mime?: string | null | undefined;
  /** Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out. */
  readonly task_priority?: number | null | undefined;
  /** Only a worker with all of these capabilities is offered it. */
  readonly requires?: readonly string[] | null | undefined;
  /** What it needs: offered only when all of it can be granted, to the task as holder (T10). */
  readonly intents?: readonly Intent[] | null | undefined;
  /** Not to be offered before. */
  readonly delay_ms?: number | null | undefined;
  /** Accepted attempts before it is dead; 3 if left out. */
  readonly max_attempts?: number | null | undefined;
  /** Offers in a row that nobody accepts before it is dead; 10. */
  readonly max_offers?: number | null | undefined;
  /** How long a worker has without a heartbeat; 900000, capped at a day with a warning (L2). */
  readonly lease_duration_ms?: number | null | undefined;
  /** The pause before a retry; 30000. */
  readonly requeue_delay_ms?: number | null | undefined;
  /** Tasks that must have succeeded first. */
  readonly depends_on?: readonly string[] | null | undefined;
  /** Tasks with this key share a limit. */
  readonly concurrency_key?: string | null | undefined;
  /** How many of them may run at once; 1. */
  readonly concurrency_limit?: number | null | undefined;
  /** Give it to two workers at once; the first to complete wins (T8). */
  readonly speculative?: boolean | null | undefined;
  /** May be asked to make room for a more urgent one (T8). */
  readonly preemptible?: boolean | null | undefined;
  /** The task that this one is a part of. */
  readonly parent_task_id?: string | null | undefined;
  /** Sent again while the task is alive, or can be looked up after its end, the first task is the answer (T12). One that begins with `once_` is remembered for ten minutes after the task's end, which is enough for a call that is sent again. */
  readonly idempotency_key?: string | null | undefined;
  /** Who gets its policy escalations (T5); its type's, the tenant's or its principal if left out. */
  readonly supervisor?: string | null | undefined;
  /** The trace that it belongs to (W3C Trace Context); the header of the same name if left out. */
  readonly traceparent?: string | null | undefined;
}
export interface Obligation {
  /** The obligation's id. */
  readonly obligation_id: string;
  /** OPEN, OVERDUE once its lease was lost, or CLOSED. */
  readonly state: "OPEN" | "OVERDUE" | "CLOSED";
  /** Who answers for it now. */
  readonly custodian: string;
  /** When the task was accepted. */
  readonly opened_at: string;
  /** When the custodian's lease ends, unless it is extended; null where it holds none. */
  readonly deadline_at: string | null;
  readonly closed_at: string | null;
  /** The task's id. */
  readonly task_id: string;
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  readonly task_summary: string | null;
  readonly principal_ai: string;
  /** The task's; `accepted` where the task is another system's. */
  readonly status: "queued" | "leased" | "accepted" | "retry_pending" | "succeeded" | "failed" | "canceled" | "dead";
  readonly last_receipt_id: string | null;
  /** The task is not this system's: what is known of it is what its receipts say (R1). */
  readonly foreign: boolean;
}
export interface ObservationUpdate {
  readonly since: string;
  /** There were more changes, or older history was pruned. */
  readonly truncated: boolean;
  readonly changes: readonly {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
    /** What the holder intends to do with the resource. */
    readonly predicate: Predicate;
    /** The agent's id. */
    readonly agent_id: string;
    readonly at: string;
    /** What the resource is now (a hash, or any text), for agents that resume later. */
    readonly version?: string;
  }[];
}
export interface Offer {
  /** The lease's id. */
  readonly lease_id: string;
  readonly lease_expires_at: string;
  /** How long it can still be used; needs no clock of yours. */
  readonly expires_in_ms: number;
  /** Greater than every earlier fence of the tenant. */
  readonly fence: number;
  /** Which attempt this would be, or is. */
  readonly attempt: number;
  /** The `accepted` receipt, where there is one already: it is an obligation, and the work can begin. */
  readonly accepted_receipt_id?: string;
  readonly task: OfferedTask;
  /** Those of the task's manifest (T10). */
  readonly leases?: readonly Lease[];
}
export interface OfferedTask {
  /** The task's id. */
  readonly task_id: string;
  readonly principal_ai: string;
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  readonly task_summary: string | null;
  readonly task_body: string | null;
  readonly payload_pointer: string | null;
  readonly inputs: unknown;
  readonly expected_outcome_kind: string | null;
  readonly expected_artifact_mime: string | null;
  readonly traceparent?: string;
}
export interface Offers {
  readonly offers: readonly Offer[];
}
export interface OpenAsk {
  readonly request_id: string;
  readonly state: "WAITING" | "STANDBY" | "BINDING";
  /** What is needed: granted together or not at all. */
  readonly intents: readonly Intent[];
  readonly purpose: string | null;
  readonly submitted_at: string;
  /** How long it can still wait; needs no clock of yours. */
  readonly times_out_in_ms: number;
}
export interface OpenRequest {
  /** For the question after the request. */
  readonly request_id: string;
  /** The agent's id. */
  readonly agent_id: string;
  readonly state: "WAITING" | "STANDBY" | "BINDING";
  /** What is needed: granted together or not at all. */
  readonly intents: readonly Intent[];
  /** Why, in the agent's words; shown to callers that conflict with it. */
  readonly purpose: string | null;
  /** When it was submitted. */
  readonly submitted_at: string;
  /** How long it waits at most. */
  readonly wait_timeout_ms: number;
  /** How long it can still wait; needs no clock of yours. */
  readonly times_out_in_ms: number;
  /** 1 for the first in line; 0 while cells set the leases up. Absent in STANDBY. */
  readonly position?: number;
  /** At most 16, leases first. */
  readonly blocked_by: readonly Blocker[];
  /** How many there are, listed or not. */
  readonly blocked_by_total: number;
}
export interface Overview {
  /** When it was counted; it may be a second old. */
  readonly at: string;
  /** The number of the last event that this is sure to include: `/v1/events?since=` from here on has no gap. */
  readonly sequence: number;
  /** Agents, by what they do. */
  readonly agents: {
    readonly working: number;
    readonly blocked: number;
    readonly waiting_for_person: number;
    readonly idle: number;
    readonly lost: number;
  };
  /** Workers: with a task, without one, and not seen for a while. */
  readonly workers: {
    readonly working: number;
    readonly idle: number;
    readonly lost: number;
  };
  /** Live ones. */
  readonly leases: number;
  /** Requests that are not decided, by state. */
  readonly requests: {
    readonly WAITING: number;
    readonly STANDBY: number;
    readonly BINDING: number;
  };
  /** Tasks that are not over, by status; dead letters among them. */
  readonly tasks: {
    readonly queued: number;
    readonly leased: number;
    readonly accepted: number;
    readonly retry_pending: number;
    readonly dead: number;
  };
  /** Obligations that are not closed, by state. */
  readonly obligations: {
    readonly OPEN: number;
    readonly OVERDUE: number;
  };
  /** Declared resources, by state. */
  readonly resources: {
    readonly READY: number;
    readonly FENCED: number;
    readonly WITHDRAWN: number;
  };
  /** Cells, by state. */
  readonly cells: {
    readonly READY: number;
    readonly GONE: number;
  };
}
export interface Policy {
  /** The policy's id. */
  readonly policy_id: string;
  /** What it is for. */
  readonly description: string | null;
  /** The tenants that it applies to; empty: all. */
  readonly tenants: readonly string[];
  /** The roles that it applies to; empty: all. */
  readonly roles: readonly Role[];
  /** The keys that it applies to, and the agents that they registered; empty: all. */
  readonly key_ids: readonly string[];
  /** None: everything is allowed. */
  readonly rules: readonly PolicyRule[];
  /** When it was set; null: it is built in. */
  readonly changed_at: string | null;
}
export interface PolicyCheckInput {
  /** What is to be done. */
  readonly action: "lease" | "manage_resource" | "create_task" | "work" | "register_agent" | "host";
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource?: string | null | undefined;
  /** What the holder intends to do with the resource. */
  readonly predicate?: Predicate | null | undefined;
  /** The kind of work, such as `code.generate`. */
  readonly task_type?: string | null | undefined;
  /** Of the agent, worker or cell. */
  readonly id?: string | null | undefined;
}
export interface PolicyRule {
  /** Shown in refusals; without one the rule is named by its number. */
  readonly name?: string | null;
  /** `allow`: of its actions, the policy allows nothing that no `allow` rule covers. `deny`: what it touches is refused. `limit`: leases that it touches keep within its limits. */
  readonly effect: "allow" | "deny" | "limit";
  /** What the rule is about. */
  readonly actions: readonly ("lease" | "manage_resource" | "create_task" | "work" | "register_agent" | "host")[];
  /** Names and patterns, such as `FILE:/shop/src/**`; empty: any. */
  readonly resources?: readonly string[] | null;
  /** Empty: any. */
  readonly predicates?: readonly Predicate[] | null;
  /** Types of tasks; with a final `*` all that begin so; empty: any. */
  readonly task_types?: readonly string[] | null;
  /** Ids of agents, workers or cells; with a final `*` all that begin so; empty: any. */
  readonly ids?: readonly string[] | null;
  /** How many plain segments a pattern has before its first wildcard, at least; 1 keeps out `FILE:/**`. */
  readonly pattern_depth_min?: number | null;
  /** What a TTL is capped at. */
  readonly ttl_ms_max?: number | null;
  /** The longest that one lease may live, however often it is extended. */
  readonly lease_time_ms_max?: number | null;
  /** The most units that one lease may take. */
  readonly units_max?: number | null;
}
export interface PolicyRuleInput {
  /** Shown in refusals; without one the rule is named by its number. */
  readonly name?: string | null | undefined;
  /** `allow`: of its actions, the policy allows nothing that no `allow` rule covers. `deny`: what it touches is refused. `limit`: leases that it touches keep within its limits. */
  readonly effect: "allow" | "deny" | "limit";
  /** What the rule is about. */
  readonly actions: readonly ("lease" | "manage_resource" | "create_task" | "work" | "register_agent" | "host")[];
  /** Names and patterns, such as `FILE:/shop/src/**`; empty: any. */
  readonly resources?: readonly string[] | null | undefined;
  /** Empty: any. */
  readonly predicates?: readonly Predicate[] | null | undefined;
  /** Types of tasks; with a final `*` all that begin so; empty: any. */
  readonly task_types?: readonly string[] | null | undefined;
  /** Ids of agents, workers or cells; with a final `*` all that begin so; empty: any. */
  readonly ids?: readonly string[] | null | undefined;
  /** How many plain segments a pattern has before its first wildcard, at least; 1 keeps out `FILE:/**`. */
  readonly pattern_depth_min?: number | null | undefined;
  /** What a TTL is capped at. */
  readonly ttl_ms_max?: number | null | undefined;
  /** The longest that one lease may live, however often it is extended. */
  readonly lease_time_ms_max?: number | null | undefined;
  /** The most units that one lease may take. */
  readonly units_max?: number | null | undefined;
}
export interface PolicyVerdict {
  /** Whether all of it is allowed. */
  readonly allowed: boolean;
  /** Those that apply. */
  readonly policies: readonly string[];
  readonly results: readonly {
    readonly action: "lease" | "manage_resource" | "create_task" | "work" | "register_agent" | "host";
    readonly asked: string;
    readonly allowed: boolean;
    /** What its TTL would be capped at; null: the policies say nothing. */
    readonly ttl_ms_max: number | null;
    /** The one that refuses it. */
    readonly policy?: string;
    readonly rule?: string | null;
    readonly detail?: string;
    readonly allowed_instead?: readonly string[];
  }[];
}
export interface QuotaUse {
  /** Its name in `PUT /v1/tenants/{tenant_id}/quotas`; `kinds.GPU` of a type. */
  readonly quota: string;
  readonly unit: "number" | "bytes" | "ms" | "units";
  /** Null: it limits each one, and nothing is counted. */
  readonly used: number | null;
  /** Null: there is none. */
  readonly limit: number | null;
}
export interface Receipt {
  /** 1 for the tenant's first; no number is left out. */
  readonly sequence: number;
  /** Must be the credential's own. */
  readonly tenant_id: string;
  /** Of the sender's choice; one is made if it is left out. */
  readonly receipt_id: string;
  /** The task; with `fence`, or found by `source_system`, unless `lease_id` is given. */
  readonly task_id: string;
  /** accepted, complete, escalate or progress. */
  readonly phase: "accepted" | "complete" | "escalate" | "progress";
  /** The recipient. */
  readonly recipient_ai: string;
  /** The worker_id. */
  readonly source_system: string;
  /** Sent again with the same content, the first receipt is the answer (R3). One that begins with the receipt's `lease_id` and a colon (`lse_…:done`) is for that lease alone, and is the cheapest. */
  readonly dedupe_key: string;
  /** When it was stored, by the ledger's clock. */
  readonly stored_at: string;
  /** The obligation that this is about; an `accepted` receipt that opens one may give it its id (R5). */
  readonly obligation_id: string;
  /** The task that this one is a part of. */
  readonly parent_task_id: string;
  /** The receipt that led to this one; the task's last one if it is left out. */
  readonly caused_by_receipt_id: string;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** The requester; the task's principal if left out. */
  readonly from_principal: string;
  /** The executor, who answers for it (R5); the worker if left out. */
  readonly for_principal: string;
  /** As given. */
  readonly trust_domain: string;
  /** Of a complete receipt: success, failure or canceled. */
  readonly status: string;
  /** As given. */
  readonly realtime: boolean;
  /** From the task if left out. */
  readonly task_type: string;
  /** From the task if left out. */
  readonly task_summary: string;
  /** From the task if left out, but not into a progress receipt. */
  readonly task_body: string;
  /** From the task if left out, but not into a progress receipt; up to 64 KiB. */
  readonly inputs: unknown;
  /** From the task if left out. */
  readonly expected_outcome_kind: string;
  /** From the task if left out. */
  readonly expected_artifact_mime: string;
  /** Of a complete receipt: none, response_text, artifact_pointer or mixed. */
  readonly outcome_kind: string;
  /** The result, in words. */
  readonly outcome_text: string;
  /** Where the artifact is stored. */
  readonly artifact_location: string;
  /** From `artifact_location` if left out. */
  readonly artifact_pointer: string;
  /** As given. */
  readonly artifact_checksum: string;
  /** As given. */
  readonly artifact_size_bytes: number;
  /** From what was expected if left out. */
  readonly artifact_mime: string;
  /** Further artifacts. */
  readonly artifact_refs: unknown;
  /** owner, capability, trust, policy, scope or other. */
  readonly escalation_class: string;
  /** Why it is escalated. */
  readonly escalation_reason: string;
  /** The principal it is escalated to; the task's supervisor or principal if left out (T5). */
  readonly escalation_to: string;
  /** Whether it should be tried again. */
  readonly retry_requested: boolean;
  /** Anything else. */
  readonly body: unknown;
  /** When it was written. ISO 8601. */
  readonly created_at: string;
  /** When the work began. ISO 8601. */
  readonly started_at: string | null;
  /** When it ended. ISO 8601. */
  readonly completed_at: string | null;
  /** As given. ISO 8601. */
  readonly read_at: string | null;
  /** As given. ISO 8601. */
  readonly archived_at: string | null;
  /** Up to 16 KiB. */
  readonly metadata: unknown;
  /** The key that submitted it, or the agent whose token was shown; null where nothing was. Written by the server only (R7). */
  readonly submitted_by: string | null;
  readonly schema_version: string;
  /** SHA-256 over the receipt and the hash before (R6). */
  readonly hash: string;
  /** The hash of the receipt before. */
  readonly previous_hash: string;
}
export interface ReceiptChain {
  readonly receipt_id: string;
  /** What led to it, the first cause first. */
  readonly causes: readonly Receipt[];
  readonly receipt: Receipt;
  /** What it led to, in order. */
  readonly effects: readonly Receipt[];
  /** The chain goes on; only so much of it is followed. */
  readonly truncated: boolean;
}
export interface RegisteredAgent {
  /** The agent's id. */
  readonly agent_id: string;
  /** The credential of this instance; an older instance's is void. */
  readonly agent_token: string;
  /** How long it is good at most: renew it before; it ends with the key it was drawn with. */
  readonly agent_token_expires_in_ms: number;
  /** Older is smaller; it stays for the unit of work. */
  readonly priority_timestamp: number;
  readonly epoch: number;
  readonly state: AgentState;
}
export interface Resource {
  /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
  readonly resource: string;
  /** In units; null: not counted. */
  readonly capacity: number | null;
  /** How long after a grant its units come back (G15); null: when its lease ends. */
  readonly refill_ms: number | null;
  /** The cell's name. */
  readonly cell: string | null;
  /** Why it is fenced. */
  readonly reason: string | null;
  /** Since when it is fenced. */
  readonly fenced_at: string | null;
  /** When it was declared. */
  readonly declared_at: string;
  readonly state: "READY" | "FENCED" | "WITHDRAWN";
  /** What its cell serves it with. */
  readonly driver?: string | null;
  /** Labels of what it runs on. */
  readonly hardware?: readonly string[];
  /** Why its cell cannot serve it now. */
  readonly fault?: string | null;
}
export interface Resumed {
  readonly digest: Digest;
  readonly epoch: number;
  /** The credential of this instance; an older instance's is void. */
  readonly agent_token: string;
  /** How long it is good at most: renew it before; it ends with the key it was drawn with. */
  readonly agent_token_expires_in_ms: number;
  /** What others did to the resources that concern the agent while it was not executing (A4). */
  readonly observation_update: ObservationUpdate;
  /** `holds`: the newest reported version is this one. `failed`: it is another, or somebody wrote without a report since the agent's own last lease. `unverified`: nothing is known; read it. */
  readonly assumptions: readonly JudgedAssumption[];
}
export interface Scopes {
  /** Names and patterns, such as `FILE:/shop/src/**`; empty: any. */
  readonly resources?: readonly string[] | null;
  /** Empty: any. */
  readonly predicates?: readonly Predicate[] | null;
  /** Types of tasks; with a final `*` all that begin so; empty: any. */
  readonly task_types?: readonly string[] | null;
  /** Ids of agents, workers or cells; with a final `*` all that begin so; empty: any. */
  readonly ids?: readonly string[] | null;
  /** How many plain segments a pattern has before its first wildcard, at least; 1 keeps out `FILE:/**`. */
  readonly pattern_depth_min?: number | null;
  /** What a TTL is capped at. */
  readonly ttl_ms_max?: number | null;
  /** The longest that one lease may live, however often it is extended. */
  readonly lease_time_ms_max?: number | null;
  /** The most units that one lease may take. */
  readonly units_max?: number | null;
}
export interface ScopesInput {
  /** Names and patterns, such as `FILE:/shop/src/**`; empty: any. */
  readonly resources?: readonly string[] | null | undefined;
  /** Empty: any. */
  readonly predicates?: readonly Predicate[] | null | undefined;
  /** Types of tasks; with a final `*` all that begin so; empty: any. */
  readonly task_types?: readonly string[] | null | undefined;
  /** Ids of agents, workers or cells; with a final `*` all that begin so; empty: any. */
  readonly ids?: readonly string[] | null | undefined;
  /** How many plain segments a pattern has before its first wildcard, at least; 1 keeps out `FILE:/**`. */
  readonly pattern_depth_min?: number | null | undefined;
  /** What a TTL is capped at. */
  readonly ttl_ms_max?: number | null | undefined;
  /** The longest that one lease may live, however often it is extended. */
  readonly lease_time_ms_max?: number | null | undefined;
  /** The most units that one lease may take. */
  readonly units_max?: number | null | undefined;
}
export interface Session {
  /** Whether this request may do anything, by its cookie, its header or without either. */
  readonly signed_in: boolean;
  /** What a sign-in takes: nothing on loopback without keys, a key, or the link of `leasehold open`. */
  readonly sign_in: "none" | "key" | "link";
  /** What the caller may do. */
  readonly role: Role | null;
  /** Of the credential. */
  readonly tenant_id: string | null;
  /** Of the key; null without one. */
  readonly key_id: string | null;
  /** To be sent as `Leasehold-Csrf` with all but GET; null where no cookie was shown. */
  readonly csrf_token: string | null;
  /** When the session or its key ends; null: never. */
  readonly expires_at: string | null;
  /** The server's time. */
  readonly now: string;
  /** Of the server. */
  readonly version: string;
}
export interface SetTaskType {
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  /** How long a worker has without a heartbeat. */
  readonly lease_duration_ms: number | null;
  /** Accepted attempts before a task is dead. */
  readonly max_attempts: number | null;
  /** Offers in a row that nobody accepts before a task is dead. */
  readonly max_offers: number | null;
  /** The pause before a retry. */
  readonly requeue_delay_ms: number | null;
  /** Past this many times the usual duration a second worker is offered it. */
  readonly speculate_share: number | null;
  /** How long such tasks usually take. */
  readonly usual_duration_ms: number | null;
  /** How many of them were measured. */
  readonly samples: number;
  /** Who gets their policy escalations (T5). */
  readonly supervisor: string | null;
  /** What was capped (L2). */
  readonly warnings?: readonly string[];
}
export interface Standby {
  readonly verdict: "STANDBY";
  /** For the question after the request; null for a dry run. */
  readonly request_id: string | null;
  /** At most 16, leases first. */
  readonly blocked_by: readonly Blocker[];
  /** How many there are, listed or not. */
  readonly blocked_by_total: number;
  /** Where units that come back with time are waited for (G15): when enough of them are back. */
  readonly units_back_in_ms?: number;
  readonly wait_timeout_ms: number;
  /** Once granted, ask for the request or send a heartbeat within this time. */
  readonly claim_within_ms: number;
  readonly warnings?: readonly string[];
}
export interface StoredReceipts {
  readonly results: readonly {
    readonly status: number;
    readonly body: unknown;
  }[];
}
export interface Task {
  /** The task's id. */
  readonly task_id: string;
  /** Where it is in its life (T13). */
  readonly status: "queued" | "leased" | "accepted" | "retry_pending" | "succeeded" | "failed" | "canceled" | "dead";
  /** When it was created. */
  readonly created_at: string;
  /** Not offered before. */
  readonly not_before_at: string | null;
  /** Accepted attempts that count. */
  readonly attempts: number;
  /** Offers that came to nothing since it was last accepted. */
  readonly offers: number;
  /** Of what it depends on, what has not succeeded yet. */
  readonly waiting_on: readonly string[];
  /** The worker that had it last. */
  readonly last_worker_id: string | null;
  /** The last receipt about it. */
  readonly last_receipt_id: string | null;
  /** What its worker last reported with a heartbeat. */
  readonly progress: unknown;
  /** The receipt that ended it. */
  readonly winning_receipt_id: string | null;
  /** When it ended. */
  readonly ended_at: string | null;
  /** Why it ended. */
  readonly end_reason: string | null;
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  /** Whose task it is: who may cancel it, and who is notified when it cannot be done. */
  readonly principal_ai: string;
  /** In a line, for people. */
  readonly task_summary: string | null;
  /** Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given. */
  readonly payload_pointer: string | null;
  /** none, response_text, artifact_pointer or mixed. */
  readonly expected_outcome_kind: string | null;
  /** The media type of the artifact. */
  readonly expected_artifact_mime: string | null;
  /** Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out. */
  readonly task_priority: number;
  /** Only a worker with all of these capabilities is offered it. */
  readonly requires: readonly string[];
  /** What it needs: offered only when all of it can be granted, to the task as holder (T10). */
  readonly intents: readonly Intent[];
  /** Accepted attempts before it is dead; 3 if left out. */
  readonly max_attempts: number;
  /** Offers in a row that nobody accepts before it is dead; 10. */
  readonly max_offers: number;
  /** How long a worker has without a heartbeat; 900000, capped at a day with a warning (L2). */
  readonly lease_duration_ms: number;
  /** The pause before a retry; 30000. */
  readonly requeue_delay_ms: number;
  /** Tasks that must have succeeded first. */
  readonly depends_on: readonly string[];
  /** Tasks with this key share a limit. */
  readonly concurrency_key: string | null;
  /** How many of them may run at once; 1. */
  readonly concurrency_limit: number;
  /** Give it to two workers at once; the first to complete wins (T8). */
  readonly speculative: boolean;
  /** May be asked to make room for a more urgent one (T8). */
  readonly preemptible: boolean;
  /** The task that this one is a part of. */
  readonly parent_task_id: string | null;
  /** Sent again while the task is alive, or can be looked up after its end, the first task is the answer (T12). One that begins with `once_` is remembered for ten minutes after the task's end, which is enough for a call that is sent again. */
  readonly idempotency_key: string | null;
  /** Who gets its policy escalations (T5); its type's, the tenant's or its principal if left out. */
  readonly supervisor: string | null;
  /** The trace that it belongs to (W3C Trace Context); the header of the same name if left out. */
  readonly traceparent?: string;
  /** The workers that have it now: one, or two where it runs speculatively. */
  readonly leases: readonly {
    /** The lease's id. */
    readonly lease_id: string;
    /** Greater than every earlier fence of the tenant; show it to the resource. */
    readonly fence: number;
    /** The worker that has it. */
    readonly worker_id: string;
    /** When it was offered. */
    readonly offered_at: string;
    /** When it was accepted; null while it is an offer. */
    readonly accepted_at: string | null;
  }[];
  readonly obligation: {
    /** The obligation's id. */
    readonly obligation_id: string;
    /** OPEN, OVERDUE once its lease was lost, or CLOSED. */
    readonly state: "OPEN" | "OVERDUE" | "CLOSED";
    /** Who answers for it now. */
    readonly custodian: string;
    /** When the task was accepted. */
    readonly opened_at: string;
  } | null;
}
export interface TaskFilterInput {
  /** Only tasks of this status. */
  readonly status?:
    | "queued"
    | "leased"
    | "accepted"
    | "retry_pending"
    | "succeeded"
    | "failed"
    | "canceled"
    | "dead"
    | null
    | undefined;
  /** The kind of work, such as `code.generate`. */
  readonly task_type?: string | null | undefined;
  /** Only tasks of this principal. */
  readonly principal_ai?: string | null | undefined;
  /** Only tasks that this worker has, or had last. */
  readonly worker_id?: string | null | undefined;
  /** Created at this time or later; ISO 8601. */
  readonly created_after?: string | null | undefined;
  /** Created before this time; ISO 8601. */
  readonly created_before?: string | null | undefined;
  /** Only tasks with this text in their id, summary, body or inputs, in upper or lower case. A page reads 1 MiB of bodies and inputs; next_cursor goes on. */
  readonly search?: string | null | undefined;
}
export interface TaskLease {
  readonly lease_expires_at: string;
  /** How long it can still be used; needs no clock of yours. */
  readonly expires_in_ms: number;
  /** What the worker is asked to do: stop, or make room. */
  readonly directives: readonly ("cancel" | "preempt")[];
  /** Those of the task's manifest, extended with it. */
  readonly leases?: readonly Lease[];
}
export interface TaskLeases {
  readonly results: readonly {
    readonly status: number;
    readonly body: unknown;
  }[];
}
export interface TaskType {
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  /** How long a worker has without a heartbeat. */
  readonly lease_duration_ms: number | null;
  /** Accepted attempts before a task is dead. */
  readonly max_attempts: number | null;
  /** Offers in a row that nobody accepts before a task is dead. */
  readonly max_offers: number | null;
  /** The pause before a retry. */
  readonly requeue_delay_ms: number | null;
  /** Past this many times the usual duration a second worker is offered it. */
  readonly speculate_share: number | null;
  /** How long such tasks usually take. */
  readonly usual_duration_ms: number | null;
  /** How many of them were measured. */
  readonly samples: number;
  /** Who gets their policy escalations (T5). */
  readonly supervisor: string | null;
}
export interface TaskWithReceipts {
  /** The task's id. */
  readonly task_id: string;
  /** Where it is in its life (T13). */
  readonly status: "queued" | "leased" | "accepted" | "retry_pending" | "succeeded" | "failed" | "canceled" | "dead";
  /** When it was created. */
  readonly created_at: string;
  /** Not offered before. */
  readonly not_before_at: string | null;
  /** Accepted attempts that count. */
  readonly attempts: number;
  /** Offers that came to nothing since it was last accepted. */
  readonly offers: number;
  /** Of what it depends on, what has not succeeded yet. */
  readonly waiting_on: readonly string[];
  /** The worker that had it last. */
  readonly last_worker_id: string | null;
  /** The last receipt about it. */
  readonly last_receipt_id: string | null;
  /** What its worker last reported with a heartbeat. */
  readonly progress: unknown;
  /** The receipt that ended it. */
  readonly winning_receipt_id: string | null;
  /** When it ended. */
  readonly ended_at: string | null;
  /** Why it ended. */
  readonly end_reason: string | null;
  /** The kind of work, such as `code.generate`. */
  readonly task_type: string;
  /** Whose task it is: who may cancel it, and who is notified when it cannot be done. */
  readonly principal_ai: string;
  /** In a line, for people. */
  readonly task_summary: string | null;
  /** Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given. */
  readonly payload_pointer: string | null;
  /** none, response_text, artifact_pointer or mixed. */
  readonly expected_outcome_kind: string | null;
  /** The media type of the artifact. */
  readonly expected_artifact_mime: string | null;
  /** Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out. */
  readonly task_priority: number;
  /** Only a worker with all of these capabilities is offered it. */
  readonly requires: readonly string[];
  /** What it needs: offered only when all of it can be granted, to the task as holder (T10). */
  readonly intents: readonly Intent[];
  /** Accepted attempts before it is dead; 3 if left out. */
  readonly max_attempts: number;
  /** Offers in a row that nobody accepts before it is dead; 10. */
  readonly max_offers: number;
  /** How long a worker has without a heartbeat; 900000, capped at a day with a warning (L2). */
  readonly lease_duration_ms: number;
  /** The pause before a retry; 30000. */
  readonly requeue_delay_ms: number;
  /** Tasks that must have succeeded first. */
  readonly depends_on: readonly string[];
  /** Tasks with this key share a limit. */
  readonly concurrency_key: string | null;
  /** How many of them may run at once; 1. */
  readonly concurrency_limit: number;
  /** Give it to two workers at once; the first to complete wins (T8). */
  readonly speculative: boolean;
  /** May be asked to make room for a more urgent one (T8). */
  readonly preemptible: boolean;
  /** The task that this one is a part of. */
  readonly parent_task_id: string | null;
  /** Sent again while the task is alive, or can be looked up after its end, the first task is the answer (T12). One that begins with `once_` is remembered for ten minutes after the task's end, which is enough for a call that is sent again. */
  readonly idempotency_key: string | null;
  /** Who gets its policy escalations (T5); its type's, the tenant's or its principal if left out. */
  readonly supervisor: string | null;
  /** The trace that it belongs to (W3C Trace Context); the header of the same name if left out. */
  readonly traceparent?: string;
  /** The workers that have it now: one, or two where it runs speculatively. */
  readonly leases: readonly {
    /** The lease's id. */
    readonly lease_id: string;
    /** Greater than every earlier fence of the tenant; show it to the resource. */
    readonly fence: number;
    /** The worker that has it. */
    readonly worker_id: string;
    /** When it was offered. */
    readonly offered_at: string;
    /** When it was accepted; null while it is an offer. */
    readonly accepted_at: string | null;
  }[];
  readonly obligation: {
    /** The obligation's id. */
    readonly obligation_id: string;
    /** OPEN, OVERDUE once its lease was lost, or CLOSED. */
    readonly state: "OPEN" | "OVERDUE" | "CLOSED";
    /** Who answers for it now. */
    readonly custodian: string;
    /** When the task was accepted. */
    readonly opened_at: string;
  } | null;
  readonly task_body: string | null;
  readonly inputs: unknown;
  readonly result: Receipt | null;
  readonly receipts: readonly Receipt[];
}
export interface Tenant {
  /** The tenant's id. */
  readonly tenant_id: string;
  /** Nothing is granted while it is. */
  readonly suspended: boolean;
  /** Why it is suspended. */
  readonly reason: string | null;
  /** When it was created. */
  readonly created_at: string;
  readonly settings: {
    /** Switched only while nobody waits (W7). */
    readonly strategy: "wait_die" | "wound_wait";
    /** A lease's TTL where the caller sends none. */
    readonly ttl_ms_default: number;
    /** What a TTL is capped at. */
    readonly ttl_ms_max: number;
    /** A wait's timeout where the caller sends none. */
    readonly wait_timeout_ms_default: number;
    /** What a wait's timeout is capped at. */
    readonly wait_timeout_ms_max: number;
    /** How soon a grant that ended a wait must be collected (W8). */
    readonly claim_within_ms: number;
    /** The first term of DIE's hint (W5). */
    readonly retry_ms_base: number;
    /** What that hint is capped at, before jitter. */
    readonly retry_ms_cap: number;
    /** Who gets policy escalations of tasks that name no other (T5); null: each task's principal. */
    readonly supervisor: string | null;
    /** Idle timeouts by the type of resource, such as `GPU`; holders can only ask for shorter ones; replaces what there was (L10). */
    readonly idle_timeout_ms_by_type: Readonly<Record<string, number>>;
    /** Receipts about tasks that this system does not own are taken into the ledger too (R1). */
    readonly foreign_receipts: boolean;
  };
  readonly quotas: {
    /** Leases alive at once. */
    readonly leases_max: number;
    /** Requests waiting at once. */
    readonly waiters_max: number;
    /** Registered agents. */
    readonly agents_max: number;
    /** Declared resources. */
    readonly resources_max: number;
    /** Leases on patterns alive at once. */
    readonly patterns_max: number;
    /** Tasks. */
    readonly tasks_max: number;
    /** Receipts in the ledger; beyond it, what was accepted can still be completed (R8). */
    readonly receipts_max: number;
    /** Their size together, about as they are stored (R8). */
    readonly receipt_bytes_max: number;
    /** Open obligations on tasks that this system does not own (R8). */
    readonly foreign_obligations_max: number;
    /** Connections at once, of all its credentials together (S4). */
    readonly connections_max: number;
    /** Subscriptions to events at once (S4). */
    readonly subscriptions_max: number;
    /** Answers that are held for a long poll at once (S4). */
    readonly held_max: number;
    /** Bytes that wait for readers which do not read; beyond it the slowest are cut off (S4). */
    readonly unread_bytes_max: number;
    /** Requests a second of all its credentials together; every 16 KiB of a body or an answer is one more (S4); null: the server's limit for tenants. */
    readonly requests_per_second_max: number | null;
    /** Stored artifacts (S4). */
    readonly artifacts_max: number;
    /** Their size together; each counts at least 4,096 bytes (S4). */
    readonly artifact_bytes_max: number;
    /** Bodies and inputs of tasks that are not done, in bytes as they are stored. */
    readonly payload_bytes_max: number;
    /** Digests of agents, in bytes as they are stored. */
    readonly digest_bytes_max: number;
    /** About what memory keeps of the tenant's live records, in bytes. */
    readonly memory_bytes_max: number;
    /** The longest that one lease may live, however often it is extended; null: no limit. */
    readonly lease_time_ms_max: number | null;
    /** Lease time of all leases together, per day; null: no limit. */
    readonly tenant_lease_time_ms_max: number | null;
    /** Units of live leases by the type of resource, such as `GPU`; replaces what there was (G2). */
    readonly kinds: Readonly<Record<string, number>>;
  };
}
export interface TokenKeys {
  readonly keys: readonly {
    readonly key_id: string;
    /** When it was created. */
    readonly created_at: string;
    /** Nothing made with it is taken from then on; null: the present one. */
    readonly retires_at: string | null;
  }[];
}
export interface VerifiedToken {
  readonly valid: true;
  readonly tenant: string;
  readonly lease: Lease;
  /** What the token was narrowed by; all of it allows what was asked. */
  readonly caveats: readonly {
    readonly type: string;
    readonly expires_at?: string;
    readonly path?: string;
    readonly operations?: readonly string[];
    readonly program?: string;
    readonly hardware?: string;
    readonly bytes_max?: number;
  }[];
}
export interface Wait {
  /** A request that is not decided; an agent that has none and is to ask again; a task. */
  readonly waiter: "request" | "agent" | "task";
  readonly agent_id?: string;
  readonly task_id?: string;
  readonly request_id?: string;
  readonly reason:
    | "wait"
    | "standby"
    | "binding"
    | "die"
    | "paused"
    | "agent_paused"
    | "wounded"
    | "lost"
    | "resource"
    | "resource_fenced"
    | "cell_not_ready"
    | "dependency"
    | "delay";
  /** A sentence about it, and what would end it. */
  readonly detail: string;
  readonly since: string;
  /** When it ends by itself: a timeout, the time to ask again, the end of a delay. */
  readonly ends_in_ms?: number;
  /** What it asks for; empty where that is not known. */
  readonly intents: readonly Intent[];
  /** What it wants, died for or lost. */
  readonly resources: readonly string[];
  readonly purpose: string | null;
  /** How often it died or was tried. */
  readonly attempt?: number;
  /** At most 16, leases first. Each is an edge: for whom it waits, and how long. */
  readonly blocked_by: readonly Blocker[];
  /** How many there are, listed or not. */
  readonly blocked_by_total: number;
  /** Tasks that must succeed first. */
  readonly waits_for_tasks?: readonly string[];
}
export interface WaitedThen {
  readonly request_id: string;
  readonly agent_id: string;
  /** What it asked for; empty for one that stood by and DIED. */
  readonly intents: readonly Intent[];
  readonly resources: readonly string[];
  readonly purpose: string | null;
  readonly submitted_at: string;
  /** null: it waits still. */
  readonly ended_as: "granted" | "timed_out" | "canceled" | "paused" | "died" | null;
  readonly ended_at: string | null;
}
export interface Waiting {
  readonly verdict: "WAIT";
  /** For the question after the request; null for a dry run. */
  readonly request_id: string | null;
  /** 1 for the first in line; 0 while cells set the leases up. */
  readonly position: number;
  /** At most 16, leases first. */
  readonly blocked_by: readonly Blocker[];
  /** How many there are, listed or not. */
  readonly blocked_by_total: number;
  /** Where units that come back with time are waited for (G15): when enough of them are back. */
  readonly units_back_in_ms?: number;
  readonly wait_timeout_ms: number;
  /** Once granted, ask for the request or send a heartbeat within this time. */
  readonly claim_within_ms: number;
  readonly warnings?: readonly string[];
}
export interface Worker {
  /** `{type}.{instance}`. */
  readonly worker_id: string;
  /** What it can do. */
  readonly capabilities: readonly string[];
  /** Its first poll. */
  readonly first_seen_at: string;
  /** Its last poll, to half a minute. */
  readonly seen_at: string;
  /** Tasks that it completed. */
  readonly completed: number;
  /** Tasks that it reported as failed. */
  readonly failed: number;
  /** Accepted attempts whose lease it lost. */
  readonly lost: number;
  /** 1 is perfect; completions and losses move it. */
  readonly health: number;
  /** The key that it belongs to, for those above; null: to nobody below them (L13). */
  readonly registered_by?: string | null;
  /** Tasks that it has now. */
  readonly leases: number;
}
export type Done = Readonly<Record<string, never>>;

/** What each operation takes. */
export interface OperationInputs {
  readonly register_agent: {
    /** The agent's id. */
    readonly agent_id?: string | null | undefined;
    /** Names and values of the caller's choice. */
    readonly labels?: Readonly<Record<string, string>> | null | undefined;
  };
  readonly list_agents: {
    /** Only agents in this state. */
    readonly state?: AgentState | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_agent: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly transition_agent: {
    /** The agent's id. */
    readonly agent_id: string;
    /** The state to go to. */
    readonly to: AgentState;
  };
  readonly restart_agent: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly pause_agent: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly unpause_agent: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly save_digest: {
    /** The agent's id. */
    readonly agent_id: string;
    /** The caller's name for it. */
    readonly checkpoint_id: string;
    /** Where to go on. */
    readonly resume_point: string;
    /** Whatever the agent needs to go on; any JSON, up to 256 KiB. */
    readonly context?: unknown | undefined;
    /** What it still has to acquire. */
    readonly intent_backlog?: readonly Intent[] | null | undefined;
    /** RETRY if left out. */
    readonly resolution_strategy?: "RETRY" | "ABORT" | "MERGE" | null | undefined;
    /** What the work relies on; judged at resume, unless that names its own (A5). */
    readonly assumptions?:
      | readonly {
          /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
          readonly resource: string;
          /** What the resource is now (a hash, or any text), for agents that resume later. */
          readonly version: string;
        }[]
      | null
      | undefined;
  };
  readonly get_digest: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly get_observation: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly resume_agent: {
    /** The agent's id. */
    readonly agent_id: string;
    /** What the agent relies on. */
    readonly assumptions?:
      | readonly {
          /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
          readonly resource: string;
          /** What the resource is now (a hash, or any text), for agents that resume later. */
          readonly version: string;
        }[]
      | null
      | undefined;
  };
  readonly verify_all: {
    /** The agent's id. */
    readonly agent_id: string;
    /** Ids of leases of this agent; left out: all of them. */
    readonly lease_ids?: readonly string[] | null | undefined;
  };
  readonly renew_agent_token: {
    /** The agent's id. */
    readonly agent_id: string;
  };
  readonly acquire: {
    /** The agent's id. */
    readonly agent_id: string;
    /** The manifest: granted whole or not at all. */
    readonly intents: readonly Intent[];
    /** How long the leases last without a heartbeat; capped, 60000 by default. */
    readonly ttl_ms?: number | null | undefined;
    /** How long to wait in line; 0 to not wait; capped, 30000 by default. */
    readonly wait_timeout_ms?: number | null | undefined;
    /** Where the verdict would be DIE, and the agent holds nothing: how long to stand by for a grant instead (W14). */
    readonly standby_ms?: number | null | undefined;
    /** Revoke the leases after this long without reported activity. */
    readonly idle_timeout_ms?: number | null | undefined;
    /** Why, in the agent's words; shown to callers that conflict with it. */
    readonly purpose?: string | null | undefined;
    /** Whether every lease comes with a token. */
    readonly tokens?: boolean | null | undefined;
    /** Give the verdict and change nothing. */
    readonly dry_run?: boolean | null | undefined;
    /** An idempotency key of the caller's choice, known per agent. */
    readonly request_id?: string | null | undefined;
    /** False: the answer does not collect a grant that ended a wait (W8), and says with `claim_within_ms` how long is left; the client sends a heartbeat when it has it. */
    readonly collect?: boolean | null | undefined;
    /** How long the server may hold its answer until there is something new. */
    readonly hold_ms?: number | null | undefined;
  };
  readonly get_request: {
    /** The `request_id` of the reply, not the caller's own. */
    readonly request_id: string;
    /** Whether the answer collects a grant (W8). Left out: it does if the agent asks, and not if a supervisor's or operator's key does. */
    readonly collect?: boolean | null | undefined;
    /** How long the server may hold its answer until there is something new. */
    readonly hold_ms?: number | null | undefined;
  };
  readonly list_requests: {
    /** The agent's id. */
    readonly agent_id?: string | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly cancel_request: {
    /** The `request_id` of the reply, not the caller's own. */
    readonly request_id: string;
  };
  readonly heartbeat: {
    /** The lease's id. */
    readonly lease_id: string;
    /** Whether the agent is working, for idle detection (L10). */
    readonly activity?: boolean | null | undefined;
  };
  readonly heartbeat_all: {
    /** The agent's id. */
    readonly agent_id: string;
    /** Ids of leases of this agent; left out: all of them. */
    readonly lease_ids?: readonly string[] | null | undefined;
    /** Whether the agent is working, for idle detection (L10). */
    readonly activity?: boolean | null | undefined;
  };
  readonly renew_lease: {
    /** The lease's id. */
    readonly lease_id: string;
    /** The generation the caller has; another one is refused. */
    readonly generation?: number | null | undefined;
    /** Whether the agent is working, for idle detection (L10). */
    readonly activity?: boolean | null | undefined;
  };
  readonly release_lease: {
    /** The lease's id. */
    readonly lease_id: string;
    /** What the resource is now (a hash, or any text), for agents that resume later. */
    readonly version?: string | null | undefined;
  };
  readonly release_all: {
    /** The agent's id. */
    readonly agent_id: string;
    /** Ids of leases of this agent; left out: all of them. */
    readonly lease_ids?: readonly string[] | null | undefined;
    /** What the resources are now, by lease id or by resource. */
    readonly versions?: Readonly<Record<string, string>> | null | undefined;
  };
  readonly transfer_lease: {
    /** The lease's id. */
    readonly lease_id: string;
    /** The agent that gets it. */
    readonly to_agent_id: string;
    /** What the resource is now (a hash, or any text), for agents that resume later. */
    readonly version?: string | null | undefined;
  };
  readonly downgrade_lease: {
    /** The lease's id. */
    readonly lease_id: string;
    /** What the holder intends to do with the resource. */
    readonly predicate: Predicate;
    /** What the resource is now (a hash, or any text), for agents that resume later. */
    readonly version?: string | null | undefined;
  };
  readonly report_violation: {
    /** The lease's id. */
    readonly lease_id: string;
    /** The agent's id. */
    readonly agent_id: string;
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
  };
  readonly list_leases: {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource?: string | null | undefined;
    /** The agent's id. */
    readonly agent_id?: string | null | undefined;
    /** Only leases in this state. */
    readonly state?: LeaseState | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_lease: {
    /** The lease's id. */
    readonly lease_id: string;
  };
  readonly revoke: {
    /** The lease's id. */
    readonly lease_id?: string | null | undefined;
    /** The agent's id. */
    readonly agent_id?: string | null | undefined;
    /** All leases on resources whose names begin so. */
    readonly resource_prefix?: string | null | undefined;
    /** Why, for those it concerns. */
    readonly reason: string;
  };
  readonly declare_resource: {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
    /** In units; left out: not counted. */
    readonly capacity?: number | null | undefined;
    /** How long after a grant its units come back (G15); left out: when the lease ends. */
    readonly refill_ms?: number | null | undefined;
    /** The cell that hosts it. */
    readonly cell?: string | null | undefined;
  };
  readonly list_resources: {
    /** Only names that begin so. */
    readonly prefix?: string | null | undefined;
    /** Only resources in this state. */
    readonly state?: "READY" | "FENCED" | "WITHDRAWN" | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly fence_resource: {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
    /** Why, for those it concerns. */
    readonly reason: string;
  };
  readonly reset_resource: {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource: string;
  };
  readonly withdraw_resource: {
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource?: string | null | undefined;
    /** The cell's name. */
    readonly cell?: string | null | undefined;
    /** Revoke the live leases; left out: they run out. */
    readonly revoke?: boolean | null | undefined;
  };
  readonly list_cells: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly readmit_cell: {
    /** The cell's name. */
    readonly cell: string;
  };
  readonly verify_token: {
    /** The token that was shown, whole. */
    readonly token: string;
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource?: string | null | undefined;
    /** The operation. `read` reads; any other one writes, and a lease that only reads (CONSUMES, DEPENDS_ON) may not do it (G4). Tokens that are narrowed to operations must name it. */
    readonly operation?: string | null | undefined;
  };
  readonly create_task: {
    /** The kind of work, such as `code.generate`. */
    readonly task_type: string;
    /** Whose task it is: who may cancel it, and who is notified when it cannot be done. */
    readonly principal_ai: string;
    /** In a line, for people. */
    readonly task_summary?: string | null | undefined;
    /** The whole description, up to 100 KiB. */
    readonly task_body?: string | null | undefined;
    /** Where more of it lies, such as `leasehold://artifacts/<sha256>`; carried as given. */
    readonly payload_pointer?: string | null | undefined;
    /** Any JSON, up to 64 KiB. */
    readonly inputs?: unknown | undefined;
    /** none, response_text, artifact_pointer or mixed. */
    readonly expected_outcome_kind?: string | null | undefined;
    /** The media type of the artifact. */
    readonly expected_artifact_mime?: string | null | undefined;
    /** Larger is more urgent; a task gains a level over younger ones with each minute. 0 if left out. */
    readonly task_priority?: number | null | undefined;
    /** Only a worker with all of these capabilities is offered it. */
    readonly requires?: readonly string[] | null | undefined;
    /** What it needs: offered only when all of it can be granted, to the task as holder (T10). */
    readonly intents?: readonly Intent[] | null | undefined;
    /** Not to be offered before. */
    readonly delay_ms?: number | null | undefined;
    /** Accepted attempts before it is dead; 3 if left out. */
    readonly max_attempts?: number | null | undefined;
    /** Offers in a row that nobody accepts before it is dead; 10. */
    readonly max_offers?: number | null | undefined;
    /** How long a worker has without a heartbeat; 900000, capped at a day with a warning (L2). */
    readonly lease_duration_ms?: number | null | undefined;
    /** The pause before a retry; 30000. */
    readonly requeue_delay_ms?: number | null | undefined;
    /** Tasks that must have succeeded first. */
    readonly depends_on?: readonly string[] | null | undefined;
    /** Tasks with this key share a limit. */
    readonly concurrency_key?: string | null | undefined;
    /** How many of them may run at once; 1. */
    readonly concurrency_limit?: number | null | undefined;
    /** Give it to two workers at once; the first to complete wins (T8). */
    readonly speculative?: boolean | null | undefined;
    /** May be asked to make room for a more urgent one (T8). */
    readonly preemptible?: boolean | null | undefined;
    /** The task that this one is a part of. */
    readonly parent_task_id?: string | null | undefined;
    /** Sent again while the task is alive, or can be looked up after its end, the first task is the answer (T12). One that begins with `once_` is remembered for ten minutes after the task's end, which is enough for a call that is sent again. */
    readonly idempotency_key?: string | null | undefined;
    /** Who gets its policy escalations (T5); its type's, the tenant's or its principal if left out. */
    readonly supervisor?: string | null | undefined;
    /** The trace that it belongs to (W3C Trace Context); the header of the same name if left out. */
    readonly traceparent?: string | null | undefined;
  };
  readonly create_tasks: {
    /** Each as for one; as many as fit into a body. */
    readonly tasks: readonly NewTaskInput[];
  };
  readonly get_task: {
    /** The task's id. */
    readonly task_id: string;
  };
  readonly list_tasks: {
    /** Only tasks of this status. */
    readonly status?:
      | "queued"
      | "leased"
      | "accepted"
      | "retry_pending"
      | "succeeded"
      | "failed"
      | "canceled"
      | "dead"
      | null
      | undefined;
    /** The kind of work, such as `code.generate`. */
    readonly task_type?: string | null | undefined;
    /** Only tasks of this principal. */
    readonly principal_ai?: string | null | undefined;
    /** Only tasks that this worker has, or had last. */
    readonly worker_id?: string | null | undefined;
    /** Created at this time or later; ISO 8601. */
    readonly created_after?: string | null | undefined;
    /** Created before this time; ISO 8601. */
    readonly created_before?: string | null | undefined;
    /** Only tasks with this text in their id, summary, body or inputs, in upper or lower case. A page reads 1 MiB of bodies and inputs; next_cursor goes on. */
    readonly search?: string | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly cancel_task: {
    /** The task's id. */
    readonly task_id: string;
    /** Why, for those it concerns. */
    readonly reason?: string | null | undefined;
  };
  readonly explain_task: {
    /** The task's id. */
    readonly task_id: string;
  };
  readonly redrive_task: {
    /** The task's id. */
    readonly task_id: string;
  };
  readonly cancel_tasks: {
    /** What is to be done to which tasks: all that match, when the operation comes to them. Name at least one. */
    readonly filter: TaskFilterInput;
    /** Count what matches, and change nothing. */
    readonly dry_run?: boolean | null | undefined;
    /** Why, for those it concerns. */
    readonly reason?: string | null | undefined;
  };
  readonly redrive_tasks: {
    /** What is to be done to which tasks: all that match, when the operation comes to them. Name at least one. */
    readonly filter: TaskFilterInput;
    /** Count what matches, and change nothing. */
    readonly dry_run?: boolean | null | undefined;
  };
  readonly get_operation: {
    /** As it was answered. */
    readonly operation_id: string;
  };
  readonly poll_tasks: {
    /** `{type}.{instance}`; the same across restarts for a worker that wants its leases back. */
    readonly worker_id: string;
    /** What the worker can do; left out: as in its last poll. */
    readonly capabilities?: readonly string[] | null | undefined;
    /** At most this many offers; 1 if left out. */
    readonly max_tasks?: number | null | undefined;
    /** Types of tasks that it would rather have. */
    readonly preferred_kinds?: readonly string[] | null | undefined;
    /** The only types of tasks that it takes: others are not offered to it. */
    readonly accept_types?: readonly string[] | null | undefined;
    /** Sent again, the same offers are the answer: for an answer that was lost (T1). */
    readonly request_id?: string | null | undefined;
    /** After a restart: first the leases that this worker_id still has, with new fences. */
    readonly reclaim?: boolean | null | undefined;
    /** Accept with the offer: its `accepted` receipt is in the ledger when the answer leaves, and the offer has its `accepted_receipt_id`. An offer without one was not accepted, and is accepted by a receipt as usual. */
    readonly accept?: boolean | null | undefined;
    /** How long the server may hold its answer until there is something new. */
    readonly hold_ms?: number | null | undefined;
  };
  readonly heartbeat_task: {
    /** The `lease_id` of the offer. */
    readonly lease_id: string;
    /** Any JSON, up to 16 KiB: shown with the task, and never in the ledger (R4). */
    readonly progress?: unknown | undefined;
  };
  readonly heartbeat_tasks: {
    /** Each as for one task; as many as fit into a body. */
    readonly heartbeats: readonly {
      /** The `lease_id` of the offer. */
      readonly lease_id: string;
      /** Any JSON, up to 16 KiB: shown with the task, and never in the ledger (R4). */
      readonly progress?: unknown | undefined;
    }[];
  };
  readonly release_task: {
    /** The `lease_id` of the offer. */
    readonly lease_id: string;
  };
  readonly set_task_type: {
    /** The kind of work, such as `code.generate`. */
    readonly task_type: string;
    /** How long a worker has without a heartbeat; capped at a day with a warning (L2). */
    readonly lease_duration_ms?: number | null | undefined;
    /** Accepted attempts before a task is dead. */
    readonly max_attempts?: number | null | undefined;
    /** Offers in a row that nobody accepts before a task is dead. */
    readonly max_offers?: number | null | undefined;
    /** The pause before a retry. */
    readonly requeue_delay_ms?: number | null | undefined;
    /** Past this many times its usual duration a task without a manifest is offered to a second worker. */
    readonly speculate_share?: number | null | undefined;
    /** Who gets their policy escalations, where a task names nobody (T5). */
    readonly supervisor?: string | null | undefined;
  };
  readonly list_task_types: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly list_workers: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly submit_receipt: {
    /** accepted, complete, escalate or progress. */
    readonly phase: string;
    /** The task; with `fence`, or found by `source_system`, unless `lease_id` is given. */
    readonly task_id?: string | null | undefined;
    /** The lease of the offer that this is about. */
    readonly lease_id?: string | null | undefined;
    /** The offer's fence, beside `task_id`. */
    readonly fence?: number | null | undefined;
    /** Of the sender's choice; one is made if it is left out. */
    readonly receipt_id?: string | null | undefined;
    /** Must be the credential's own. */
    readonly tenant_id?: string | null | undefined;
    /** The obligation that this is about; an `accepted` receipt that opens one may give it its id (R5). */
    readonly obligation_id?: string | null | undefined;
    /** The task that this one is a part of. */
    readonly parent_task_id?: string | null | undefined;
    /** The receipt that led to this one; the task's last one if it is left out. */
    readonly caused_by_receipt_id?: string | null | undefined;
    /** Sent again with the same content, the first receipt is the answer (R3). One that begins with the receipt's `lease_id` and a colon (`lse_…:done`) is for that lease alone, and is the cheapest. */
    readonly dedupe_key?: string | null | undefined;
    /** Which attempt this is, from 1. */
    readonly attempt?: number | null | undefined;
    /** The requester; the task's principal if left out. */
    readonly from_principal?: string | null | undefined;
    /** The executor, who answers for it (R5); the worker if left out. */
    readonly for_principal?: string | null | undefined;
    /** The worker_id. */
    readonly source_system?: string | null | undefined;
    /** The recipient. */
    readonly recipient_ai?: string | null | undefined;
    /** As given. */
    readonly trust_domain?: string | null | undefined;
    /** Of a complete receipt: success, failure or canceled. */
    readonly status?: string | null | undefined;
    /** As given. */
    readonly realtime?: boolean | null | undefined;
    /** From the task if left out. */
    readonly task_type?: string | null | undefined;
    /** From the task if left out. */
    readonly task_summary?: string | null | undefined;
    /** From the task if left out, but not into a progress receipt. */
    readonly task_body?: string | null | undefined;
    /** From the task if left out, but not into a progress receipt; up to 64 KiB. */
    readonly inputs?: unknown | undefined;
    /** From the task if left out. */
    readonly expected_outcome_kind?: string | null | undefined;
    /** From the task if left out. */
    readonly expected_artifact_mime?: string | null | undefined;
    /** Of a complete receipt: none, response_text, artifact_pointer or mixed. */
    readonly outcome_kind?: string | null | undefined;
    /** The result, in words. */
    readonly outcome_text?: string | null | undefined;
    /** Where the artifact is stored. */
    readonly artifact_location?: string | null | undefined;
    /** From `artifact_location` if left out. */
    readonly artifact_pointer?: string | null | undefined;
    /** As given. */
    readonly artifact_checksum?: string | null | undefined;
    /** As given. */
    readonly artifact_size_bytes?: number | null | undefined;
    /** From what was expected if left out. */
    readonly artifact_mime?: string | null | undefined;
    /** Further artifacts. */
    readonly artifact_refs?: unknown | undefined;
    /** owner, capability, trust, policy, scope or other. */
    readonly escalation_class?: string | null | undefined;
    /** Why it is escalated. */
    readonly escalation_reason?: string | null | undefined;
    /** The principal it is escalated to; the task's supervisor or principal if left out (T5). */
    readonly escalation_to?: string | null | undefined;
    /** Whether it should be tried again. */
    readonly retry_requested?: boolean | null | undefined;
    /** Anything else. */
    readonly body?: unknown | undefined;
    /** When it was written. ISO 8601. */
    readonly created_at?: string | null | undefined;
    /** When the work began. ISO 8601. */
    readonly started_at?: string | null | undefined;
    /** When it ended. ISO 8601. */
    readonly completed_at?: string | null | undefined;
    /** As given. ISO 8601. */
    readonly read_at?: string | null | undefined;
    /** As given. ISO 8601. */
    readonly archived_at?: string | null | undefined;
    /** Up to 16 KiB. */
    readonly metadata?: unknown | undefined;
    /** Of the receipt: 1.0. */
    readonly schema_version?: string | null | undefined;
    /** Accepted and not used: the ledger's clock decides. */
    readonly stored_at?: string | null | undefined;
    /** Accepted and not used: the server writes it (R7). */
    readonly submitted_by?: string | null | undefined;
  };
  readonly submit_receipts: {
    /** Each as for one, decided in this order; as many as fit into a body. */
    readonly receipts: readonly NewReceiptInput[];
  };
  readonly get_receipt: {
    /** The receipt's id. */
    readonly receipt_id: string;
  };
  readonly get_receipt_chain: {
    /** The receipt's id. */
    readonly receipt_id: string;
  };
  readonly list_receipts: {
    /** The task's id. */
    readonly task_id?: string | null | undefined;
    /** Only receipts of this phase. */
    readonly phase?: "accepted" | "complete" | "escalate" | "progress" | null | undefined;
    /** Only receipts for this principal. */
    readonly recipient_ai?: string | null | undefined;
    /** Only receipts of this worker. */
    readonly source_system?: string | null | undefined;
    /** Stored at this time or later; ISO 8601. */
    readonly since?: string | null | undefined;
    /** Only receipts that were stored after this one. */
    readonly after_receipt_id?: string | null | undefined;
    /** asc, the oldest first, unless desc is sent: the newest first. A cursor is of one order. */
    readonly sort?: "asc" | "desc" | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_inbox: {
    /** Who answers for it. */
    readonly recipient_ai: string;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly list_obligations: {
    /** Only obligations in this state. */
    readonly state?: "OPEN" | "OVERDUE" | "CLOSED" | null | undefined;
    /** Who answers for it. */
    readonly custodian?: string | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly recover_obligation: {
    /** An overdue obligation. */
    readonly obligation_id: string;
    /** Who answers for it from now on. */
    readonly custodian: string;
    /** Why; it is in the ledger. */
    readonly reason: string;
  };
  readonly get_ledger_head: Readonly<Record<string, never>>;
  readonly list_artifacts: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly delete_artifact: {
    /** SHA-256 of the bytes, in lower-case hex. */
    readonly sha256: string;
  };
  readonly get_overview: Readonly<Record<string, never>>;
  readonly list_activity: {
    /** Only this agent. */
    readonly agent_id?: string | null | undefined;
    /** Only agents that do this. */
    readonly activity?: "working" | "blocked" | "waiting_for_person" | "idle" | "lost" | null | undefined;
    /** Only agents with this in their id or labels. */
    readonly search?: string | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly list_waits: {
    /** Only what this agent waits for. */
    readonly agent_id?: string | null | undefined;
    /** Only what this task waits for. */
    readonly task_id?: string | null | undefined;
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource?: string | null | undefined;
    /** Only these. */
    readonly waiter?: "request" | "agent" | "task" | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_history: {
    /** The moment; ISO 8601 with a zone. */
    readonly at: string;
    /** Only what this agent held and waited for. */
    readonly agent_id?: string | null | undefined;
    /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
    readonly resource?: string | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly healthz: Readonly<Record<string, never>>;
  readonly readyz: Readonly<Record<string, never>>;
  readonly openapi: Readonly<Record<string, never>>;
  readonly list_audit: {
    /** Made at this time or later; ISO 8601. */
    readonly since?: string | null | undefined;
    /** Only changes by this key. */
    readonly actor?: string | null | undefined;
    /** Only this operation. */
    readonly action?: string | null | undefined;
    /** On a cluster with several shards: the log of its directory, where keys, policies and the creation of tenants are. */
    readonly directory?: boolean | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_session: Readonly<Record<string, never>>;
  readonly create_session: {
    /** A key as it was shown when it was created, or an agent's token. */
    readonly key?: string | null | undefined;
    /** Of a link; good once. */
    readonly code?: string | null | undefined;
  };
  readonly end_session: Readonly<Record<string, never>>;
  readonly create_session_link: Readonly<Record<string, never>>;
  readonly create_tenant: {
    /** The tenant's id. */
    readonly tenant_id: string;
  };
  readonly list_tenants: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly suspend_tenant: {
    /** The tenant's id. */
    readonly tenant_id: string;
    /** Why, for those it concerns. */
    readonly reason?: string | null | undefined;
  };
  readonly resume_tenant: {
    /** The tenant's id. */
    readonly tenant_id: string;
  };
  readonly set_tenant_settings: {
    /** The tenant's id. */
    readonly tenant_id: string;
    /** Switched only while nobody waits (W7). */
    readonly strategy?: "wait_die" | "wound_wait" | null | undefined;
    /** A lease's TTL where the caller sends none. */
    readonly ttl_ms_default?: number | null | undefined;
    /** What a TTL is capped at. */
    readonly ttl_ms_max?: number | null | undefined;
    /** A wait's timeout where the caller sends none. */
    readonly wait_timeout_ms_default?: number | null | undefined;
    /** What a wait's timeout is capped at. */
    readonly wait_timeout_ms_max?: number | null | undefined;
    /** How soon a grant that ended a wait must be collected (W8). */
    readonly claim_within_ms?: number | null | undefined;
    /** The first term of DIE's hint (W5). */
    readonly retry_ms_base?: number | null | undefined;
    /** What that hint is capped at, before jitter. */
    readonly retry_ms_cap?: number | null | undefined;
    /** Who gets policy escalations of tasks that name no other (T5); null: each task's principal. */
    readonly supervisor?: string | null | undefined;
    /** Idle timeouts by the type of resource, such as `GPU`; holders can only ask for shorter ones; replaces what there was (L10). */
    readonly idle_timeout_ms_by_type?: Readonly<Record<string, number>> | null | undefined;
    /** Receipts about tasks that this system does not own are taken into the ledger too (R1). */
    readonly foreign_receipts?: boolean | null | undefined;
  };
  readonly set_tenant_quotas: {
    /** The tenant's id. */
    readonly tenant_id: string;
    /** Leases alive at once. */
    readonly leases_max?: number | null | undefined;
    /** Requests waiting at once. */
    readonly waiters_max?: number | null | undefined;
    /** Registered agents. */
    readonly agents_max?: number | null | undefined;
    /** Declared resources. */
    readonly resources_max?: number | null | undefined;
    /** Leases on patterns alive at once. */
    readonly patterns_max?: number | null | undefined;
    /** Tasks. */
    readonly tasks_max?: number | null | undefined;
    /** Receipts in the ledger; beyond it, what was accepted can still be completed (R8). */
    readonly receipts_max?: number | null | undefined;
    /** Their size together, about as they are stored (R8). */
    readonly receipt_bytes_max?: number | null | undefined;
    /** Open obligations on tasks that this system does not own (R8). */
    readonly foreign_obligations_max?: number | null | undefined;
    /** Connections at once, of all its credentials together (S4). */
    readonly connections_max?: number | null | undefined;
    /** Subscriptions to events at once (S4). */
    readonly subscriptions_max?: number | null | undefined;
    /** Answers that are held for a long poll at once (S4). */
    readonly held_max?: number | null | undefined;
    /** Bytes that wait for readers which do not read; beyond it the slowest are cut off (S4). */
    readonly unread_bytes_max?: number | null | undefined;
    /** Requests a second of all its credentials together; every 16 KiB of a body or an answer is one more (S4); null: the server's limit for tenants. */
    readonly requests_per_second_max?: number | null | undefined;
    /** Stored artifacts (S4). */
    readonly artifacts_max?: number | null | undefined;
    /** Their size together; each counts at least 4,096 bytes (S4). */
    readonly artifact_bytes_max?: number | null | undefined;
    /** Bodies and inputs of tasks that are not done, in bytes as they are stored. */
    readonly payload_bytes_max?: number | null | undefined;
    /** Digests of agents, in bytes as they are stored. */
    readonly digest_bytes_max?: number | null | undefined;
    /** About what memory keeps of the tenant's live records, in bytes. */
    readonly memory_bytes_max?: number | null | undefined;
    /** The longest that one lease may live, however often it is extended; null: no limit. */
    readonly lease_time_ms_max?: number | null | undefined;
    /** Lease time of all leases together, per day; null: no limit. */
    readonly tenant_lease_time_ms_max?: number | null | undefined;
    /** Units of live leases by the type of resource, such as `GPU`; replaces what there was (G2). */
    readonly kinds?: Readonly<Record<string, number>> | null | undefined;
  };
  readonly get_usage: Readonly<Record<string, never>>;
  readonly create_key: {
    /** What the key allows. */
    readonly role: Role;
    /** The tenant's id. */
    readonly tenant_id?: string | null | undefined;
    /** What it is for. */
    readonly label?: string | null | undefined;
    /** ISO 8601. The key is refused from then on, and with it the agents' tokens drawn with it. */
    readonly expires_at?: string | null | undefined;
    /** What a key is narrowed to. What is left out or empty limits nothing. */
    readonly scopes?: ScopesInput | null | undefined;
  };
  readonly list_keys: {
    /** The tenant's id. */
    readonly tenant_id?: string | null | undefined;
    /** Only keys of this role. */
    readonly role?: Role | null | undefined;
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly delete_key: {
    /** The key's id, not its secret. */
    readonly key_id: string;
  };
  readonly rotate_key: {
    /** The key's id, not its secret. */
    readonly key_id: string;
    /** How long the secret before stays good; a day if left out, 0 ends it at once. */
    readonly overlap_ms?: number | null | undefined;
    /** ISO 8601. The key is refused from then on, and with it the agents' tokens drawn with it. Stays as it is if left out. */
    readonly expires_at?: string | null | undefined;
  };
  readonly assign_name: {
    /** The key's id, not its secret. */
    readonly key_id: string;
    /** An agent. */
    readonly agent_id?: string | null | undefined;
    /** A worker. */
    readonly worker_id?: string | null | undefined;
    /** A cell. */
    readonly cell?: string | null | undefined;
  };
  readonly set_policy: {
    /** The policy's id: lower-case letters, digits and `. _ -`. */
    readonly policy_id: string;
    /** What it is for. */
    readonly description?: string | null | undefined;
    /** The tenants that it applies to; empty: all. */
    readonly tenants?: readonly string[] | null | undefined;
    /** The roles that it applies to; empty: all. */
    readonly roles?: readonly Role[] | null | undefined;
    /** The keys that it applies to, and the agents that they registered; empty: all. */
    readonly key_ids?: readonly string[] | null | undefined;
    /** None: everything is allowed. */
    readonly rules: readonly PolicyRuleInput[];
  };
  readonly list_policies: {
    /** At most this many; 100 if left out. */
    readonly limit?: number | null | undefined;
    /** The `next_cursor` of the page before. */
    readonly cursor?: string | null | undefined;
  };
  readonly get_policy: {
    /** The policy's id: lower-case letters, digits and `. _ -`. */
    readonly policy_id: string;
  };
  readonly delete_policy: {
    /** The policy's id: lower-case letters, digits and `. _ -`. */
    readonly policy_id: string;
  };
  readonly test_policies: {
    /** Of a credential with this role, and no scopes. */
    readonly role?: Role | null | undefined;
    /** Of this key. */
    readonly key_id?: string | null | undefined;
    /** Of this agent's token. Without a role, key or agent: of the caller. */
    readonly agent_id?: string | null | undefined;
    /** What would be leased. */
    readonly intents?: readonly Intent[] | null | undefined;
    /** What else would be done. */
    readonly checks?: readonly PolicyCheckInput[] | null | undefined;
    /** One that is not set: it takes the place of the one with its id. */
    readonly policy?:
      | {
          /** The policy's id: lower-case letters, digits and `. _ -`. */
          readonly policy_id: string;
          /** What it is for. */
          readonly description?: string | null | undefined;
          /** The tenants that it applies to; empty: all. */
          readonly tenants?: readonly string[] | null | undefined;
          /** The roles that it applies to; empty: all. */
          readonly roles?: readonly Role[] | null | undefined;
          /** The keys that it applies to, and the agents that they registered; empty: all. */
          readonly key_ids?: readonly string[] | null | undefined;
          /** None: everything is allowed. */
          readonly rules: readonly PolicyRuleInput[];
        }
      | null
      | undefined;
  };
  readonly list_token_keys: Readonly<Record<string, never>>;
  readonly rotate_token_keys: {
    /** How long tokens of the key before stay good; six minutes if left out, 0 ends them at once. */
    readonly overlap_ms?: number | null | undefined;
  };
  readonly get_cluster: Readonly<Record<string, never>>;
  readonly resign_leader: {
    /** Whose shards; the server that answers if absent. */
    readonly server_id?: string | null | undefined;
    /** Only this shard, of any server; all of the server's if absent. */
    readonly shard?: number | null | undefined;
  };
}

/** What each operation answers where it is not refused. */
export interface OperationAnswers {
  readonly register_agent: RegisteredAgent;
  readonly list_agents: {
    readonly agents: readonly Agent[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_agent: Agent;
  readonly transition_agent: MovedAgent;
  readonly restart_agent: Agent;
  readonly pause_agent: Agent;
  readonly unpause_agent: Agent;
  readonly save_digest: Digest;
  readonly get_digest: Digest;
  readonly get_observation: ObservationUpdate;
  readonly resume_agent: Resumed;
  readonly verify_all: {
    readonly now: string;
    readonly leases: readonly (
      | {
          readonly id: string;
          readonly state: LeaseState;
          /** `TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; `/d/**` at the end leases `/d` and everything below it. */
          readonly resource: string;
          /** What the holder intends to do with the resource. */
          readonly predicate: Predicate;
          /** Greater than every earlier fence of the tenant; show it to the resource. */
          readonly fence: number;
          readonly expires_in_ms: number;
        }
      | {
          readonly id: string;
          readonly state: "UNKNOWN";
        }
    )[];
    /** How many there are; absent where all are listed. At most 10000 are. */
    readonly leases_total?: number;
  };
  readonly renew_agent_token: RegisteredAgent;
  readonly acquire: Granted | Waiting | Standby;
  readonly get_request: Granted | Waiting | Standby;
  readonly list_requests: {
    readonly requests: readonly OpenRequest[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly cancel_request: Done;
  readonly heartbeat: KeptLease;
  readonly heartbeat_all: {
    readonly leases: readonly Lease[];
    readonly lost: readonly LeaseEnd[];
    /** Of `leases`, those that keep their present end, and why. */
    readonly not_extended?: readonly LeaseEnd[];
    /** How many there are; absent where all are listed. At most 10000 are. */
    readonly leases_total?: number;
    readonly directives: readonly string[];
    /** What others did to the resources that concern the agent while it was not executing (A4). */
    readonly observation_update?: ObservationUpdate;
  };
  readonly renew_lease: KeptLease;
  readonly release_lease: LeaseEnd;
  readonly release_all: {
    readonly leases: readonly LeaseEnd[];
    /** How many there are; absent where all are listed. At most 10000 are. */
    readonly leases_total?: number;
  };
  readonly transfer_lease: Lease;
  readonly downgrade_lease: Lease;
  readonly report_violation: Lease;
  readonly list_leases: {
    readonly leases: readonly Lease[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_lease: Lease;
  readonly revoke: {
    readonly revoked: number;
  };
  readonly declare_resource: Resource;
  readonly list_resources: {
    readonly resources: readonly Resource[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly fence_resource: Resource;
  readonly reset_resource: Resource;
  readonly withdraw_resource: Resource | Cell;
  readonly list_cells: {
    readonly cells: readonly CellView[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly readmit_cell: Cell;
  readonly verify_token: VerifiedToken;
  readonly create_task: CreatedTask;
  readonly create_tasks: CreatedTasks;
  readonly get_task: TaskWithReceipts;
  readonly list_tasks: {
    readonly tasks: readonly Task[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly cancel_task: Task;
  readonly explain_task: Explained;
  readonly redrive_task: Task;
  readonly cancel_tasks: {
    /** For `GET /v1/operations/{operation_id}`. */
    readonly operation_id: string;
  };
  readonly redrive_tasks: {
    /** For `GET /v1/operations/{operation_id}`. */
    readonly operation_id: string;
  };
  readonly get_operation: BulkOperation;
  readonly poll_tasks: Offer | Offers | null;
  readonly heartbeat_task: TaskLease;
  readonly heartbeat_tasks: TaskLeases;
  readonly release_task: {
    readonly id: string;
    readonly state: LeaseState;
  };
  readonly set_task_type: SetTaskType;
  readonly list_task_types: {
    readonly task_types: readonly TaskType[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly list_workers: {
    readonly workers: readonly Worker[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly submit_receipt: Receipt;
  readonly submit_receipts: StoredReceipts;
  readonly get_receipt: Receipt;
  readonly get_receipt_chain: ReceiptChain;
  readonly list_receipts: {
    readonly receipts: readonly Receipt[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_inbox: {
    readonly obligations: readonly Obligation[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly list_obligations: {
    readonly obligations: readonly Obligation[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly recover_obligation: Obligation;
  readonly get_ledger_head: LedgerHead;
  readonly list_artifacts: {
    readonly artifacts: readonly {
      /** SHA-256 of the bytes, in lower-case hex. */
      readonly sha256: string;
      readonly size: number;
      /** When it was stored last; null where something points to it. */
      readonly stored_at: string | null;
      /** A task or a receipt has pointed to it, so that it is kept. */
      readonly referenced: boolean;
    }[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly delete_artifact: {
    /** SHA-256 of the bytes, in lower-case hex. */
    readonly sha256: string;
    readonly deleted: boolean;
  };
  readonly get_overview: Overview;
  readonly list_activity: {
    readonly agents: readonly AgentActivity[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly list_waits: {
    readonly waits: readonly Wait[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_history: HistoryAt;
  readonly healthz: {
    readonly status: "ok";
  };
  readonly readyz: {
    readonly status: "ready";
  };
  readonly openapi: unknown;
  readonly list_audit: {
    readonly entries: readonly AuditEntry[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_session: Session;
  readonly create_session: Session;
  readonly end_session: Session;
  readonly create_session_link: {
    /** Below the server's address. */
    readonly path: string;
    /** How long it can be used. */
    readonly expires_in_ms: number;
  };
  readonly create_tenant: Tenant;
  readonly list_tenants: {
    readonly tenants: readonly Tenant[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly suspend_tenant: Tenant;
  readonly resume_tenant: Tenant;
  readonly set_tenant_settings: Tenant;
  readonly set_tenant_quotas: Tenant;
  readonly get_usage: {
    readonly tenant_id: string;
    readonly usage: readonly QuotaUse[];
  };
  readonly create_key: NewKey;
  readonly list_keys: {
    readonly keys: readonly Key[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly delete_key: Key;
  readonly rotate_key: NewKey;
  readonly assign_name: Key;
  readonly set_policy: Policy;
  readonly list_policies: {
    readonly policies: readonly Policy[];
    /** The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history. */
    readonly sequence?: number;
    /** null on the last page. */
    readonly next_cursor: string | null;
  };
  readonly get_policy: Policy;
  readonly delete_policy: Policy;
  readonly test_policies: PolicyVerdict;
  readonly list_token_keys: TokenKeys;
  readonly rotate_token_keys: TokenKeys;
  readonly get_cluster: Cluster;
  readonly resign_leader: {
    /** Of the server that resigns. */
    readonly server_id: string;
    /** Of the term that ends; of several, of the first. */
    readonly epoch: number;
    /** Those that it resigns. */
    readonly shards: readonly number[];
  };
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
}

/** Fields that the path does not name go into the query (GET, DELETE) or the body (POST, PUT). */
export const routes: Readonly<Record<keyof OperationInputs, Route>> = {
  register_agent: { method: "POST", path: "/v1/agents" },
  list_agents: { method: "GET", path: "/v1/agents" },
  get_agent: { method: "GET", path: "/v1/agents/{agent_id}" },
  transition_agent: { method: "POST", path: "/v1/agents/{agent_id}/transition" },
  restart_agent: { method: "POST", path: "/v1/agents/{agent_id}/restart" },
  pause_agent: { method: "POST", path: "/v1/agents/{agent_id}/pause" },
  unpause_agent: { method: "POST", path: "/v1/agents/{agent_id}/unpause" },
  save_digest: { method: "PUT", path: "/v1/agents/{agent_id}/digest" },
  get_digest: { method: "GET", path: "/v1/agents/{agent_id}/digest" },
  get_observation: { method: "GET", path: "/v1/agents/{agent_id}/observation" },
  resume_agent: { method: "POST", path: "/v1/agents/{agent_id}/resume" },
  verify_all: { method: "POST", path: "/v1/agents/{agent_id}/verify-all" },
  renew_agent_token: { method: "POST", path: "/v1/agents/{agent_id}/token" },
  acquire: { method: "POST", path: "/v1/acquire" },
  get_request: { method: "GET", path: "/v1/requests/{request_id}" },
  list_requests: { method: "GET", path: "/v1/requests" },
  cancel_request: { method: "DELETE", path: "/v1/requests/{request_id}" },
  heartbeat: { method: "POST", path: "/v1/leases/{lease_id}/heartbeat" },
  heartbeat_all: { method: "POST", path: "/v1/heartbeat" },
  renew_lease: { method: "POST", path: "/v1/leases/{lease_id}/renew" },
  release_lease: { method: "POST", path: "/v1/leases/{lease_id}/release" },
  release_all: { method: "POST", path: "/v1/release" },
  transfer_lease: { method: "POST", path: "/v1/leases/{lease_id}/transfer" },
  downgrade_lease: { method: "POST", path: "/v1/leases/{lease_id}/downgrade" },
  report_violation: { method: "POST", path: "/v1/leases/{lease_id}/violations" },
  list_leases: { method: "GET", path: "/v1/leases" },
  get_lease: { method: "GET", path: "/v1/leases/{lease_id}" },
  revoke: { method: "POST", path: "/v1/revoke" },
  declare_resource: { method: "PUT", path: "/v1/resources" },
  list_resources: { method: "GET", path: "/v1/resources" },
  fence_resource: { method: "POST", path: "/v1/resources/fence" },
  reset_resource: { method: "POST", path: "/v1/resources/reset" },
  withdraw_resource: { method: "POST", path: "/v1/resources/withdraw" },
  list_cells: { method: "GET", path: "/v1/cells" },
  readmit_cell: { method: "POST", path: "/v1/cells/{cell}/readmit" },
  verify_token: { method: "POST", path: "/v1/tokens/verify" },
  create_task: { method: "POST", path: "/v1/tasks" },
  create_tasks: { method: "POST", path: "/v1/tasks/batch" },
  get_task: { method: "GET", path: "/v1/tasks/{task_id}" },
  list_tasks: { method: "GET", path: "/v1/tasks" },
  cancel_task: { method: "POST", path: "/v1/tasks/{task_id}/cancel" },
  explain_task: { method: "GET", path: "/v1/tasks/{task_id}/explain" },
  redrive_task: { method: "POST", path: "/v1/tasks/{task_id}/redrive" },
  cancel_tasks: { method: "POST", path: "/v1/tasks/cancel" },
  redrive_tasks: { method: "POST", path: "/v1/tasks/redrive" },
  get_operation: { method: "GET", path: "/v1/operations/{operation_id}" },
  poll_tasks: { method: "POST", path: "/v1/lease" },
  heartbeat_task: { method: "POST", path: "/v1/lease/{lease_id}/heartbeat" },
  heartbeat_tasks: { method: "POST", path: "/v1/lease/heartbeats" },
  release_task: { method: "POST", path: "/v1/lease/{lease_id}/release" },
  set_task_type: { method: "PUT", path: "/v1/task-types/{task_type}" },
  list_task_types: { method: "GET", path: "/v1/task-types" },
  list_workers: { method: "GET", path: "/v1/workers" },
  submit_receipt: { method: "POST", path: "/v1/receipts" },
  submit_receipts: { method: "POST", path: "/v1/receipts/batch" },
  get_receipt: { method: "GET", path: "/v1/receipts/{receipt_id}" },
  get_receipt_chain: { method: "GET", path: "/v1/receipts/{receipt_id}/chain" },
  list_receipts: { method: "GET", path: "/v1/receipts" },
  get_inbox: { method: "GET", path: "/v1/inbox/{recipient_ai}" },
  list_obligations: { method: "GET", path: "/v1/obligations" },
  recover_obligation: { method: "POST", path: "/v1/obligations/{obligation_id}/recover" },
  get_ledger_head: { method: "GET", path: "/v1/ledger/head" },
  list_artifacts: { method: "GET", path: "/v1/artifacts" },
  delete_artifact: { method: "DELETE", path: "/v1/artifacts/{sha256}" },
  get_overview: { method: "GET", path: "/v1/overview" },
  list_activity: { method: "GET", path: "/v1/activity" },
  list_waits: { method: "GET", path: "/v1/waits" },
  get_history: { method: "GET", path: "/v1/history" },
  healthz: { method: "GET", path: "/healthz" },
  readyz: { method: "GET", path: "/readyz" },
  openapi: { method: "GET", path: "/openapi.json" },
  list_audit: { method: "GET", path: "/v1/audit" },
  get_session: { method: "GET", path: "/v1/session" },
  create_session: { method: "POST", path: "/v1/session" },
  end_session: { method: "DELETE", path: "/v1/session" },
  create_session_link: { method: "POST", path: "/v1/session/link" },
  create_tenant: { method: "POST", path: "/v1/tenants" },
  list_tenants: { method: "GET", path: "/v1/tenants" },
  suspend_tenant: { method: "POST", path: "/v1/tenants/{tenant_id}/suspend" },
  resume_tenant: { method: "POST", path: "/v1/tenants/{tenant_id}/resume" },
  set_tenant_settings: { method: "PUT", path: "/v1/tenants/{tenant_id}/settings" },
  set_tenant_quotas: { method: "PUT", path: "/v1/tenants/{tenant_id}/quotas" },
  get_usage: { method: "GET", path: "/v1/usage" },
  create_key: { method: "POST", path: "/v1/keys" },
  list_keys: { method: "GET", path: "/v1/keys" },
  delete_key: { method: "DELETE", path: "/v1/keys/{key_id}" },
  rotate_key: { method: "POST", path: "/v1/keys/{key_id}/rotate" },
  assign_name: { method: "POST", path: "/v1/keys/{key_id}/assign" },
  set_policy: { method: "PUT", path: "/v1/policies/{policy_id}" },
  list_policies: { method: "GET", path: "/v1/policies" },
  get_policy: { method: "GET", path: "/v1/policies/{policy_id}" },
  delete_policy: { method: "DELETE", path: "/v1/policies/{policy_id}" },
  test_policies: { method: "POST", path: "/v1/policies/test" },
  list_token_keys: { method: "GET", path: "/v1/token-keys" },
  rotate_token_keys: { method: "POST", path: "/v1/token-keys/rotate" },
  get_cluster: { method: "GET", path: "/v1/cluster" },
  resign_leader: { method: "POST", path: "/v1/cluster/resign" },
};

export type ErrorCode =
  | "invalid_request"
  | "invalid_resource"
  | "reserved_resource"
  | "invalid_predicate"
  | "invalid_units"
  | "invalid_target"
  | "invalid_ttl"
  | "invalid_wait_timeout"
  | "invalid_idle_timeout"
  | "invalid_purpose"
  | "invalid_request_id"
  | "invalid_version"
  | "invalid_reason"
  | "empty_manifest"
  | "manifest_too_large"
  | "duplicate_intent"
  | "invalid_agent_id"
  | "invalid_labels"
  | "invalid_digest"
  | "invalid_state"
  | "invalid_tenant_id"
  | "invalid_settings"
  | "invalid_quotas"
  | "invalid_capacity"
  | "invalid_refill"
  | "invalid_key"
  | "invalid_worker_id"
  | "invalid_cell"
  | "invalid_policy"
  | "invalid_task"
  | "invalid_receipt"
  | "unauthorized"
  | "stale_epoch"
  | "token_invalid"
  | "stale_token"
  | "caveat_failed"
  | "policy_denied"
  | "forbidden"
  | "not_lease_holder"
  | "quota_exceeded"
  | "lease_denied"
  | "cell_taken"
  | "tenant_mismatch"
  | "host_not_allowed"
  | "origin_not_allowed"
  | "csrf_failed"
  | "tls_required"
  | "certificate_required"
  | "not_found"
  | "agent_unknown"
  | "lease_unknown"
  | "request_unknown"
  | "resource_unknown"
  | "obligation_unknown"
  | "policy_unknown"
  | "cell_unknown"
  | "worker_unknown"
  | "tenant_unknown"
  | "digest_unknown"
  | "key_unknown"
  | "task_unknown"
  | "receipt_unknown"
  | "dependency_unknown"
  | "operation_unknown"
  | "artifact_unknown"
  | "method_not_allowed"
  | "lease_expired"
  | "lease_released"
  | "lease_revoked"
  | "history_pruned"
  | "wait_timeout"
  | "request_canceled"
  | "die"
  | "would_wait"
  | "renew_required"
  | "verify_required"
  | "stale_generation"
  | "invalid_transition"
  | "assumption_failed"
  | "not_weaker"
  | "transfer_refused"
  | "resource_in_use"
  | "strategy_in_use"
  | "tenant_exists"
  | "last_operator_key"
  | "key_exists"
  | "lease_not_binding"
  | "lease_not_closing"
  | "stale_session"
  | "probe_required"
  | "reset_failed"
  | "complete_without_accept"
  | "already_completed"
  | "stale_fence"
  | "dedupe_conflict"
  | "task_not_dead"
  | "obligation_not_overdue"
  | "idempotency_key_reused"
  | "artifact_mismatch"
  | "tenant_suspended"
  | "request_id_reused"
  | "paused"
  | "resource_withdrawn"
  | "resource_fenced"
  | "request_timeout"
  | "artifact_too_large"
  | "payload_too_large"
  | "unsupported_media_type"
  | "headers_too_large"
  | "rate_limited"
  | "too_many_in_flight"
  | "slow_reader"
  | "artifact_space_exhausted"
  | "too_many_connections"
  | "memory_exhausted"
  | "shutting_down"
  | "database_unavailable"
  | "no_leader"
  | "internal_error";

/** Whether the same request, sent again later, can succeed. */
export const retryable: Readonly<Record<ErrorCode, boolean>> = {
  invalid_request: false,
  invalid_resource: false,
  reserved_resource: false,
  invalid_predicate: false,
  invalid_units: false,
  invalid_target: false,
  invalid_ttl: false,
  invalid_wait_timeout: false,
  invalid_idle_timeout: false,
  invalid_purpose: false,
  invalid_request_id: false,
  invalid_version: false,
  invalid_reason: false,
  empty_manifest: false,
  manifest_too_large: false,
  duplicate_intent: false,
  invalid_agent_id: false,
  invalid_labels: false,
  invalid_digest: false,
  invalid_state: false,
  invalid_tenant_id: false,
  invalid_settings: false,
  invalid_quotas: false,
  invalid_capacity: false,
  invalid_refill: false,
  invalid_key: false,
  invalid_worker_id: false,
  invalid_cell: false,
  invalid_policy: false,
  invalid_task: false,
  invalid_receipt: false,
  unauthorized: false,
  stale_epoch: false,
  token_invalid: false,
  stale_token: false,
  caveat_failed: false,
  policy_denied: false,
  forbidden: false,
  not_lease_holder: false,
  quota_exceeded: false,
  lease_denied: false,
  cell_taken: false,
  tenant_mismatch: false,
  host_not_allowed: false,
  origin_not_allowed: false,
  csrf_failed: false,
  tls_required: false,
  certificate_required: false,
  not_found: false,
  agent_unknown: false,
  lease_unknown: false,
  request_unknown: false,
  resource_unknown: false,
  obligation_unknown: false,
  policy_unknown: false,
  cell_unknown: false,
  worker_unknown: false,
  tenant_unknown: false,
  digest_unknown: false,
  key_unknown: false,
  task_unknown: false,
  receipt_unknown: false,
  dependency_unknown: false,
  operation_unknown: false,
  artifact_unknown: false,
  method_not_allowed: false,
  lease_expired: false,
  lease_released: false,
  lease_revoked: false,
  history_pruned: false,
  wait_timeout: true,
  request_canceled: false,
  die: true,
  would_wait: true,
  renew_required: false,
  verify_required: false,
  stale_generation: false,
  invalid_transition: false,
  assumption_failed: false,
  not_weaker: false,
  transfer_refused: true,
  resource_in_use: true,
  strategy_in_use: true,
  tenant_exists: false,
  last_operator_key: false,
  key_exists: false,
  lease_not_binding: false,
  lease_not_closing: false,
  stale_session: false,
  probe_required: false,
  reset_failed: false,
  complete_without_accept: false,
  already_completed: false,
  stale_fence: false,
  dedupe_conflict: false,
  task_not_dead: false,
  obligation_not_overdue: false,
  idempotency_key_reused: false,
  artifact_mismatch: false,
  tenant_suspended: false,
  request_id_reused: false,
  paused: false,
  resource_withdrawn: false,
  resource_fenced: false,
  request_timeout: true,
  artifact_too_large: false,
  payload_too_large: false,
  unsupported_media_type: false,
  headers_too_large: false,
  rate_limited: true,
  too_many_in_flight: true,
  slow_reader: true,
  artifact_space_exhausted: true,
  too_many_connections: true,
  memory_exhausted: true,
  shutting_down: true,
  database_unavailable: true,
  no_leader: true,
  internal_error: true,
};

export type GatewayCode =
  | "invalid_request"
  | "token_invalid"
  | "stale_token"
  | "caveat_failed"
  | "program_not_allowed"
  | "path_not_allowed"
  | "environment_not_allowed"
  | "not_found"
  | "method_not_allowed"
  | "request_timeout"
  | "run_timeout"
  | "conflict"
  | "lease_expired"
  | "lease_released"
  | "lease_revoked"
  | "payload_too_large"
  | "range_not_satisfiable"
  | "resource_fenced"
  | "driver_failed"
  | "upstream_failed"
  | "too_many_connections"
  | "too_many_runs"
  | "cell_not_ready"
  | "upstream_timeout";

/** What the gateways of cells refuse and fail with, and the status of that in HTTP. */
export const gatewayStatuses: Readonly<Record<GatewayCode, number>> = {
  invalid_request: 400,
  token_invalid: 401,
  stale_token: 401,
  caveat_failed: 401,
  program_not_allowed: 403,
  path_not_allowed: 403,
  environment_not_allowed: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  run_timeout: 408,
  conflict: 409,
  lease_expired: 410,
  lease_released: 410,
  lease_revoked: 410,
  payload_too_large: 413,
  range_not_satisfiable: 416,
  resource_fenced: 423,
  driver_failed: 500,
  upstream_failed: 502,
  too_many_connections: 503,
  too_many_runs: 503,
  cell_not_ready: 503,
  upstream_timeout: 504,
};

export type EventType =
  | "lease.binding"
  | "lease.granted"
  | "lease.renewed"
  | "lease.reissued"
  | "lease.held"
  | "lease.revived"
  | "lease.transferred"
  | "lease.downgraded"
  | "lease.violated"
  | "lease.closing"
  | "lease.released"
  | "lease.expired"
  | "lease.revoked"
  | "request.waiting"
  | "request.standing_by"
  | "request.granted"
  | "request.timed_out"
  | "request.canceled"
  | "request.paused"
  | "request.died"
  | "agent.registered"
  | "agent.taken_up"
  | "agent.paused"
  | "agent.unpaused"
  | "agent.forgotten"
  | "agent.transitioned"
  | "resource.declared"
  | "resource.fenced"
  | "resource.reset"
  | "resource.withdrawn"
  | "cell.enrolled"
  | "cell.gone"
  | "cell.withdrawn"
  | "cell.readmitted"
  | "tenant.created"
  | "tenant.suspended"
  | "tenant.resumed"
  | "tenant.changed"
  | "task.created"
  | "task.offered"
  | "task.accepted"
  | "task.completed"
  | "task.requeued"
  | "task.escalated"
  | "task.canceled"
  | "task.redriven"
  | "task.recovered"
  | "audit.recorded"
  | "receipt.stored";
