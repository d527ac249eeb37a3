/** What happened, in the past tense and in order. Edges pass events on; nothing in the kernel depends on them. */
import type { Agent, AgentState, Cell, Lease, Millis, Request, Resource } from "./records.ts";
import type { Receipt, Task } from "./task-records.ts";

interface Happened {
  readonly tenant: string;
  readonly at: Millis;
}

export interface LeaseEvent extends Happened {
  readonly type:
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
    | "lease.revoked";
  readonly lease: Lease;
  readonly reason: string | null;
}
export interface RequestEvent extends Happened {
  readonly type: "request.waiting" | "request.granted" | "request.timed_out" | "request.canceled" | "request.paused";
  readonly request: Request;
  readonly reason: string | null;
}
/** A DIE leaves no request behind, so its event names the agent and what it wanted. */
export interface RequestDied extends Happened {
  readonly type: "request.died";
  readonly agentId: string;
  readonly attempt: number;
  readonly resources: readonly string[];
}
export interface AgentEvent extends Happened {
  readonly type: "agent.registered" | "agent.taken_up" | "agent.paused" | "agent.unpaused" | "agent.forgotten";
  readonly agent: Agent;
}
export interface AgentTransitioned extends Happened {
  readonly type: "agent.transitioned";
  readonly agentId: string;
  readonly from: AgentState | "DIE_RESTART";
  readonly to: AgentState | "DIE_RESTART";
}
export interface ResourceEvent extends Happened {
  readonly type: "resource.declared" | "resource.fenced" | "resource.reset" | "resource.withdrawn";
  readonly resource: Resource;
}
export interface CellEvent extends Happened {
  readonly type: "cell.enrolled" | "cell.gone" | "cell.withdrawn" | "cell.readmitted";
  readonly cell: Cell;
}
export interface TenantEvent extends Happened {
  readonly type: "tenant.created" | "tenant.suspended" | "tenant.resumed" | "tenant.changed";
}

/** A task's lease has no events of its own: these tell of it (T10). */
export interface TaskEvent extends Happened {
  readonly type:
    | "task.created"
    | "task.offered"
    | "task.accepted"
    | "task.completed"
    | "task.requeued"
    | "task.escalated"
    | "task.canceled"
    | "task.redriven";
  readonly task: Task;
  /** Whom it was offered to, or who had it; null where nobody did. */
  readonly workerId: string | null;
  readonly leaseId: string | null;
  readonly reason: string | null;
}
export interface ReceiptStored extends Happened {
  readonly type: "receipt.stored";
  readonly receipt: Receipt;
}

export type KernelEvent =
  | TaskEvent
  | ReceiptStored
  | LeaseEvent
  | RequestEvent
  | RequestDied
  | AgentEvent
  | AgentTransitioned
  | ResourceEvent
  | CellEvent
  | TenantEvent;
