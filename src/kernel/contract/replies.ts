/** What a command is answered with. Records in a reply are as they were when the command was decided. */
import type { Predicate } from "./predicates.ts";
import type { Agent, Cell, Digest, Key, Lease, Millis, Request, Resource, Tenant } from "./records.ts";
import type { Refusal } from "./refusals.ts";
import type { Payload, Receipt, Task, TaskType } from "./task-records.ts";

/** Something that stands in the way (W11): a live lease, or a request that waits ahead. */
export type Blocker =
  | { readonly type: "lease"; readonly lease: Lease }
  | { readonly type: "request"; readonly request: Request; readonly resource: string; readonly predicate: Predicate };

/** A4: what the observation update must cover. The engine looks it up in the store's history. */
export interface Observe {
  readonly since: Millis;
  readonly resources: readonly string[];
}

export const pauseReasons = [
  "resource_fenced",
  "resource_withdrawn",
  "tenant_suspended",
  "agent_paused",
  "cell_not_ready",
] as const;
export type PauseReason = (typeof pauseReasons)[number];

export type Verdict =
  | {
      readonly type: "granted";
      readonly requestId: string;
      readonly leases: readonly Lease[];
      readonly warnings: readonly string[];
      readonly observe: Observe | null;
    }
  | {
      readonly type: "waiting";
      readonly requestId: string;
      /** 1 for the first in line. */
      readonly position: number;
      readonly blockers: readonly Blocker[];
      readonly blockersTotal: number;
      readonly waitTimeoutMs: number;
      readonly claimWithinMs: number;
      readonly warnings: readonly string[];
    }
  | {
      readonly type: "died";
      readonly retryAfterMs: number;
      readonly attempt: number;
      readonly priority: number;
      readonly blockers: readonly Blocker[];
      readonly blockersTotal: number;
    }
  | {
      readonly type: "paused";
      readonly reason: PauseReason;
      readonly detail: string;
      readonly resource: string | null;
    };

export interface LostLease {
  readonly id: string;
  /** null: not alive; the store's history knows whether and how it ended. */
  readonly lease: Lease | null;
  readonly code: Refusal["code"] | null;
}

/** A task offered to a worker: its lease, and those of its manifest (T10). */
export interface Offer {
  readonly task: Task;
  readonly payload: Payload | null;
  readonly lease: Lease;
  readonly leases: readonly Lease[];
  /** The attempt that this would be, or is, if it was accepted before (`reclaim`). */
  readonly attempt: number;
}

export const directives = ["cancel", "preempt"] as const;
export type Directive = (typeof directives)[number];

export type TaskReply =
  | {
      readonly type: "task";
      readonly task: Task;
      readonly created: boolean;
      /** What of the input was capped (L2). */
      readonly warnings?: readonly string[];
    }
  /** The task of a repeated creation has ended: history knows it (T12). */
  | { readonly type: "task_ended"; readonly taskId: string }
  | {
      readonly type: "offers";
      readonly offers: readonly Offer[];
      /** The search was cut short; asking again at once goes on with it. */
      readonly more: boolean;
    }
  | {
      readonly type: "task_lease";
      readonly lease: Lease;
      readonly leases: readonly Lease[];
      readonly directives: readonly Directive[];
    }
  | { readonly type: "receipt"; readonly receipt: Receipt }
  /** Sent before: the first receipt is the answer, and the ledger knows it (R3). */
  | { readonly type: "receipt_known"; readonly receiptId: string }
  | { readonly type: "task_type"; readonly taskType: TaskType; readonly warnings: readonly string[] };

/** What a cell and the kernel believed, compared: what the cell is to do, and what of its inventory was not taken. */
export interface CellEnrolled {
  readonly type: "cell_enrolled";
  readonly cell: Cell;
  readonly bind: readonly Lease[];
  readonly update: readonly Lease[];
  readonly teardown: readonly { readonly leaseId: string; readonly code: string }[];
  readonly refused: readonly { readonly resource: string; readonly message: string }[];
}

export type Reply =
  | TaskReply
  | Refusal
  | Verdict
  | { readonly type: "agent"; readonly agent: Agent; readonly created: boolean }
  | { readonly type: "lease"; readonly lease: Lease }
  | { readonly type: "leases"; readonly leases: readonly Lease[]; readonly lost: readonly LostLease[] }
  | { readonly type: "digest"; readonly digest: Digest }
  | {
      readonly type: "resumed";
      readonly agent: Agent;
      readonly digest: Digest;
      readonly leases: readonly Lease[];
      readonly observe: Observe;
    }
  | { readonly type: "revoked"; readonly count: number }
  | { readonly type: "resource"; readonly resource: Resource; readonly created: boolean }
  | CellEnrolled
  | { readonly type: "cell"; readonly cell: Cell }
  | { readonly type: "tenant"; readonly tenant: Tenant; readonly created: boolean }
  | { readonly type: "key"; readonly key: Key }
  | { readonly type: "done" };
