/** Questions that change nothing, and their answers, beside the kernel's commands and replies. */
import type { Activity } from "../../kernel/contract/activities.ts";
import type { Actor } from "../../kernel/contract/commands.ts";
import type { Values } from "../../kernel/contract/field.ts";
import type { Policy } from "../../kernel/contract/policy-records.ts";
import type { Agent, Cell, Key, Lease, LeaseState, Resource, Role, Tenant } from "../../kernel/contract/records.ts";
import type { Observation, Reply } from "../../kernel/contract/replies.ts";
import type { HeartbeatTask, ReceiptInput, TaskInput } from "../../kernel/contract/task-commands.ts";
import type {
  ForeignObligation,
  Obligation,
  Payload,
  ReceiptPhase,
  Task,
  TaskType,
  Worker,
} from "../../kernel/contract/task-records.ts";
import type { AgentActivity, HostedResource, OpenRequest, PolicyTest, PolicyVerdict } from "../../kernel/views.ts";
import type { ShownReceipt } from "../receipts/receipt-json.ts";
import type { WireObject } from "../schema/convert.ts";
import type { Fault } from "../schema/explain.ts";
import type { ledgerHead, tokenCaveat, tokenKey } from "../schema/views.ts";
import type { ResourceState } from "../schema/vocabulary.ts";
import type { TaskFilter } from "../tasks/task-filter.ts";

interface Caller {
  readonly tenant: string;
  readonly actor: Actor;
}
export interface Paging {
  readonly limit: number;
  readonly cursor: string | null;
}

/** What each query asks for besides its type, tenant and caller. */
interface QueryFields {
  /** `state`: "DIE_RESTART" too. */
  readonly list_agents: Paging & { readonly state: string | null };
  readonly get_agent: { readonly agentId: string };
  readonly get_digest: { readonly agentId: string };
  readonly get_observation: { readonly agentId: string };
  readonly list_leases: Paging & {
    readonly resource: string | null;
    readonly agentId: string | null;
    readonly state: LeaseState | null;
  };
  readonly get_lease: { readonly leaseId: string };
  readonly list_requests: Paging & { readonly agentId: string | null };
  readonly list_resources: Paging & { readonly prefix: string | null; readonly state: ResourceState | null };
  readonly list_cells: Paging;
  /** G5, for data planes without a cell of their own. */
  readonly verify_token: {
    readonly token: string;
    readonly resource: string | null;
    readonly operation: string | null;
  };
  readonly list_token_keys: object;
  readonly list_tenants: Paging;
  readonly list_keys: Paging & { readonly tenantId: string | null; readonly role: Role | null };
  readonly list_policies: Paging;
  readonly get_policy: { readonly policyId: string };
  readonly test_policies: Omit<PolicyTest, "tenant" | "actor">;
  readonly get_task: { readonly taskId: string };
  readonly explain_task: { readonly taskId: string };
  readonly list_tasks: Paging & TaskFilter;
  readonly get_operation: { readonly operationId: string };
  readonly list_task_types: Paging;
  readonly list_workers: Paging;
  readonly get_receipt: { readonly receiptId: string };
  readonly get_receipt_chain: { readonly receiptId: string };
  readonly list_receipts: Paging & {
    readonly taskId: string | null;
    readonly phase: ReceiptPhase | null;
    readonly recipientAi: string | null;
    readonly sourceSystem: string | null;
    /** A time. */
    readonly since: number | null;
    readonly afterReceiptId: string | null;
    readonly sort: "asc" | "desc" | null;
  };
  readonly list_obligations: Paging & {
    readonly state: Obligation["state"] | null;
    readonly custodian: string | null;
  };
  /** A principal's open obligations (R5). */
  readonly get_inbox: Paging & { readonly recipientAi: string };
  readonly get_ledger_head: object;
  /** `by`: the key that made the change. */
  readonly list_audit: Paging & {
    readonly since: number | null;
    readonly by: string | null;
    readonly action: string | null;
  };
  readonly get_usage: object;
  readonly get_overview: object;
  readonly list_activity: Paging & {
    readonly agentId: string | null;
    readonly activity: Activity | null;
    readonly search: string | null;
  };
  readonly list_waits: Paging & {
    readonly agentId: string | null;
    readonly taskId: string | null;
    readonly resource: string | null;
    readonly waiter: "request" | "agent" | "task" | null;
  };
  readonly get_history: Paging & {
    /** A time. */
    readonly at: number;
    readonly agentId: string | null;
    readonly resource: string | null;
  };
}

export type QueryOf<K extends keyof QueryFields> = Caller & { readonly type: K } & QueryFields[K];
export type Query = { [K in keyof QueryFields]: QueryOf<K> }[keyof QueryFields];

/** A cell with what it hosts. */
export interface CellView {
  readonly cell: Cell;
  /** To the server that is asked. */
  readonly isConnected: boolean;
  readonly resources: readonly HostedResource[];
}

type Caveat = Values<typeof tokenCaveat>;
export type TokenCaveat = Pick<Caveat, "type"> & {
  readonly [K in Exclude<keyof Caveat, "type">]?: NonNullable<Caveat[K]>;
};
export interface TokenKeyInfo extends Values<typeof tokenKey> {}

/** A task with all that is known of it. */
export interface TaskView {
  readonly task: Task;
  readonly payload: Payload | null;
  /** The receipt that ended it. */
  readonly result: ShownReceipt | null;
  readonly receipts: readonly ShownReceipt[];
}

/** One thing that a task waits for (T11), in the words of the wire. */
export interface Waits {
  readonly kind: string;
  readonly detail: string;
  readonly [more: string]: unknown;
}

export interface TaskObligation {
  readonly task: Task | ForeignObligation;
  readonly obligation: Obligation;
  /** Absent: it has none. */
  readonly deadline?: number | null;
}

export interface LedgerHead extends Values<typeof ledgerHead> {}

interface Listed {
  readonly nextCursor: string | null;
  /** The last event that the page is sure to include; absent: it is read from history. */
  readonly sequence?: number;
}
/** One page of a list. Single records are answered with the kernel's own replies. */
export type Page =
  | (Listed & { readonly type: "agent_page"; readonly agents: readonly Agent[] })
  | (Listed & { readonly type: "lease_page"; readonly leases: readonly Lease[] })
  | (Listed & { readonly type: "request_page"; readonly requests: readonly OpenRequest[] })
  | (Listed & { readonly type: "resource_page"; readonly resources: readonly Resource[] })
  | (Listed & { readonly type: "cell_page"; readonly cells: readonly CellView[] })
  | (Listed & { readonly type: "audit_page"; readonly entries: readonly WireObject[] })
  | (Listed & { readonly type: "tenant_page"; readonly tenants: readonly Tenant[] })
  | (Listed & { readonly type: "key_page"; readonly keys: readonly Key[] })
  | (Listed & { readonly type: "policy_page"; readonly policies: readonly Policy[] })
  | (Listed & { readonly type: "task_page"; readonly tasks: readonly Task[] })
  | (Listed & { readonly type: "task_type_page"; readonly taskTypes: readonly TaskType[] })
  | (Listed & {
      readonly type: "worker_page";
      readonly workers: readonly { readonly worker: Worker; readonly leases: number }[];
    })
  | (Listed & { readonly type: "receipt_page"; readonly receipts: readonly ShownReceipt[] })
  | (Listed & { readonly type: "obligation_page"; readonly obligations: readonly TaskObligation[] })
  | (Listed & { readonly type: "activity_page"; readonly agents: readonly AgentActivity[] })
  | (Listed & { readonly type: "wait_page"; readonly waits: readonly WireObject[] })
  | HistoryPage;

/** A request that waited at a moment, in the words of the wire. */
export interface HistoryWait {
  readonly request_id: string;
  readonly agent_id: string;
  readonly intents: readonly { readonly resource: string; readonly to?: string | null }[];
  readonly resources: readonly string[];
  readonly purpose: string | null;
  readonly submitted_at: string;
  readonly ended_as: string | null;
  readonly ended_at: string | null;
}

/** What was held and who waited at a moment. */
export interface HistoryPage extends Listed {
  readonly type: "history_page";
  readonly at: number;
  readonly complete: boolean;
  readonly leases: readonly Lease[];
  readonly waits: readonly HistoryWait[];
}

/** What goes on now, in numbers. */
export interface OverviewAnswer {
  readonly type: "overview";
  readonly at: number;
  readonly sequence: number;
  /** By subject and name, as the wire has them. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>> | number>>;
}

/** What history and the ledger tell. */
export type ReadAnswer =
  | { readonly type: "task_view"; readonly view: TaskView }
  | { readonly type: "explained"; readonly task: Task; readonly waitingFor: readonly Waits[] }
  | { readonly type: "stored_receipt"; readonly stored: ShownReceipt; readonly created: boolean }
  | {
      readonly type: "receipt_chain";
      readonly stored: ShownReceipt;
      readonly causes: readonly ShownReceipt[];
      readonly effects: readonly ShownReceipt[];
      readonly truncated: boolean;
    }
  | { readonly type: "ledger_head"; readonly head: LedgerHead };

/** Answers about tokens and their keys. */
export type TokenAnswer =
  | {
      readonly type: "token_verified";
      readonly tenant: string;
      readonly lease: Lease;
      readonly caveats: readonly TokenCaveat[];
    }
  | { readonly type: "token_keys"; readonly keys: readonly TokenKeyInfo[] };

/** S4: how far a quota is used; null: nothing is counted, or there is no limit. */
export interface QuotaRow {
  /** On the wire: `leases_max`. */
  readonly quota: string;
  readonly unit: "number" | "bytes" | "ms" | "units";
  readonly used: number | null;
  readonly limit: number | null;
}
export interface UsageAnswer {
  readonly type: "usage";
  readonly tenantId: string;
  readonly usage: readonly QuotaRow[];
}

/** The answer to a dry run of policies. */
export interface PolicyAnswer extends PolicyVerdict {
  readonly type: "policy_verdict";
}

export interface ObservationAnswer {
  readonly type: "observation";
  readonly observation: Observation;
}

export type QueryReply =
  | Reply
  | ObservationAnswer
  | Page
  | ReadAnswer
  | TokenAnswer
  | UsageAnswer
  | PolicyAnswer
  | OverviewAnswer
  | OperationAnswer;

/** One of many that came together: as it is to be tried, or what is wrong with it. */
export type BatchItem<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: Fault };

export interface CreateTasks extends Caller {
  readonly type: "create_tasks";
  readonly items: readonly BatchItem<TaskInput>[];
}
export interface SubmitReceipts extends Caller {
  readonly type: "submit_receipts";
  readonly items: readonly BatchItem<ReceiptInput>[];
}

export interface HeartbeatTasks extends Caller {
  readonly type: "heartbeat_tasks";
  readonly items: readonly BatchItem<HeartbeatTask>[];
}

/** Something done to all tasks that match. */
export interface BulkTasks extends Caller {
  readonly type: "bulk_tasks";
  readonly action: "cancel" | "redrive";
  readonly filter: TaskFilter;
  readonly dryRun: boolean;
  readonly reason: string | null;
}

/** How far it is. */
export interface OperationView {
  readonly id: string;
  readonly action: BulkTasks["action"];
  readonly state: "matching" | "running" | "done" | "failed";
  readonly dryRun: boolean;
  readonly matched: number;
  readonly done: number;
  readonly failed: number;
  readonly detail: string | null;
  readonly begunAt: number;
  readonly endedAt: number | null;
}
export interface OperationAnswer {
  readonly type: "operation";
  readonly operation: OperationView;
}

/** A new master key for tokens; it lies beside the data, and the kernel knows nothing of it. */
export interface RotateTokenKeys extends Caller {
  readonly type: "rotate_token_keys";
  /** null: what is usual. */
  readonly overlapMs: number | null;
}
