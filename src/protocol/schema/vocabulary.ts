/** The closed lists of the wire. `satisfies` holds each to the kernel's own list, of which only the type is imported. */
import type { KernelEvent } from "../../kernel/contract/events.ts";
import type { predicates as kernelPredicates } from "../../kernel/contract/predicates.ts";
import type {
  Cell,
  agentStates as kernelAgentStates,
  resolutionStrategies as kernelResolutionStrategies,
  roles as kernelRoles,
  LeaseState,
  Strategy,
} from "../../kernel/contract/records.ts";
import type { DenialReason } from "../../kernel/contract/refusals.ts";
import type { Directive, PauseReason } from "../../kernel/contract/replies.ts";
import type {
  completeStatuses as kernelCompleteStatuses,
  escalationClasses as kernelEscalationClasses,
  outcomeKinds as kernelOutcomeKinds,
  receiptPhases as kernelReceiptPhases,
  taskStatuses as kernelTaskStatuses,
  Obligation,
} from "../../kernel/contract/task-records.ts";

export const predicates = [
  "PROVIDES",
  "CONSUMES",
  "MUTATES",
  "DELETES",
  "DEPENDS_ON",
  "RENAMES",
] as const satisfies typeof kernelPredicates;

export const agentStates = [
  "PLANNING",
  "ACQUIRING",
  "EXECUTING",
  "PAUSED",
  "VERIFYING",
  "COMPLETED",
  "ABORTED",
] as const satisfies typeof kernelAgentStates;

/** On the wire DIE_RESTART is a state like the others (A1). */
export const wireAgentStates = [...agentStates, "DIE_RESTART"] as const;

export const resolutionStrategies = ["RETRY", "ABORT", "MERGE"] as const satisfies typeof kernelResolutionStrategies;

export const roles = [
  "operator",
  "supervisor",
  "agent",
  "worker",
  "reader",
  "cell",
] as const satisfies typeof kernelRoles;

export const leaseStates = keysOf<LeaseState>({
  BINDING: true,
  ACTIVE: true,
  HELD: true,
  CLOSING: true,
  RELEASED: true,
  EXPIRED: true,
  REVOKED: true,
});

/** What VERIFY_ALL and its kin say of an id that never was (L8). */
export const unknownState = "UNKNOWN";

export const resourceStates = ["READY", "FENCED", "WITHDRAWN"] as const;
export type ResourceState = (typeof resourceStates)[number];

export const cellStates = keysOf<Cell["state"]>({ READY: true, GONE: true });

export const strategies = keysOf<Strategy>({ wait_die: true, wound_wait: true });

export const pauseReasons = keysOf<PauseReason>({
  resource_fenced: true,
  resource_withdrawn: true,
  tenant_suspended: true,
  agent_paused: true,
  cell_not_ready: true,
});

export const denialReasons = keysOf<DenialReason>({
  quota: true,
  capacity: true,
  self_blocked: true,
  bind_failed: true,
});

export const taskStatuses = [
  "queued",
  "leased",
  "accepted",
  "retry_pending",
  "succeeded",
  "failed",
  "canceled",
  "dead",
] as const satisfies typeof kernelTaskStatuses;

export const receiptPhases = [
  "accepted",
  "complete",
  "escalate",
  "progress",
] as const satisfies typeof kernelReceiptPhases;
export const completeStatuses = ["success", "failure", "canceled"] as const satisfies typeof kernelCompleteStatuses;
export const outcomeKinds = [
  "none",
  "response_text",
  "artifact_pointer",
  "mixed",
] as const satisfies typeof kernelOutcomeKinds;
export const escalationClasses = [
  "owner",
  "capability",
  "trust",
  "policy",
  "scope",
  "other",
] as const satisfies typeof kernelEscalationClasses;

export const obligationStates = keysOf<Obligation["state"]>({ OPEN: true, OVERDUE: true, CLOSED: true });
export const directives = keysOf<Directive>({ cancel: true, preempt: true });

export const eventTypes = keysOf<KernelEvent["type"]>({
  "lease.binding": true,
  "lease.granted": true,
  "lease.renewed": true,
  "lease.reissued": true,
  "lease.held": true,
  "lease.revived": true,
  "lease.transferred": true,
  "lease.downgraded": true,
  "lease.violated": true,
  "lease.closing": true,
  "lease.released": true,
  "lease.expired": true,
  "lease.revoked": true,
  "request.waiting": true,
  "request.granted": true,
  "request.timed_out": true,
  "request.canceled": true,
  "request.paused": true,
  "request.died": true,
  "agent.registered": true,
  "agent.taken_up": true,
  "agent.paused": true,
  "agent.unpaused": true,
  "agent.forgotten": true,
  "agent.transitioned": true,
  "resource.declared": true,
  "resource.fenced": true,
  "resource.reset": true,
  "resource.withdrawn": true,
  "cell.enrolled": true,
  "cell.gone": true,
  "cell.withdrawn": true,
  "cell.readmitted": true,
  "tenant.created": true,
  "tenant.suspended": true,
  "tenant.resumed": true,
  "tenant.changed": true,
  "task.created": true,
  "task.offered": true,
  "task.accepted": true,
  "task.completed": true,
  "task.requeued": true,
  "task.escalated": true,
  "task.canceled": true,
  "task.redriven": true,
  "receipt.stored": true,
});

/** A union has no list of its own; a record over it does, and leaves none out. */
function keysOf<K extends string>(record: Readonly<Record<K, true>>): readonly K[] {
  return Object.keys(record) as K[];
}
