/** What happened, in the past tense and in order. Edges pass events on; nothing in the kernel depends on them. */
import { auditEntry } from "./audit-records.ts";
import { choice, hidden, integer, list, omitted, optional, record, text, type Values, without } from "./field.ts";
import { agent, cell, lease, type Millis, request, resource, wireAgentStates } from "./records.ts";
import { receipt, task } from "./task-records.ts";

const reason = omitted(optional(text()));

/** Each kind of event: its types, and what it carries besides its tenant and time. */
export const events = {
  lease: {
    types: [
      "lease.binding",
      "lease.granted",
      "lease.renewed",
      "lease.reissued",
      "lease.held",
      "lease.revived",
      "lease.transferred",
      "lease.downgraded",
      "lease.violated",
      "lease.closing",
      "lease.released",
      "lease.expired",
      "lease.revoked",
    ],
    fields: { lease: record(lease), reason },
  },
  request: {
    types: [
      "request.waiting",
      "request.standing_by",
      "request.granted",
      "request.timed_out",
      "request.canceled",
      "request.paused",
    ],
    fields: { request: record(request), reason },
  },
  /** A DIE at once leaves no request behind, so its event names the agent and what it wanted. */
  died: {
    types: ["request.died"],
    fields: {
      agentId: text(),
      attempt: integer(),
      resources: list(text()),
      /** Of one that stood by (W14). */
      requestId: omitted(optional(text())),
    },
  },
  agent: {
    types: ["agent.registered", "agent.taken_up", "agent.paused", "agent.unpaused", "agent.forgotten"],
    fields: { agent: record(agent) },
  },
  transition: {
    types: ["agent.transitioned"],
    fields: { agentId: text(), from: choice(wireAgentStates), to: choice(wireAgentStates) },
  },
  resource: {
    types: ["resource.declared", "resource.fenced", "resource.reset", "resource.withdrawn"],
    fields: { resource: record(resource) },
  },
  cell: {
    types: ["cell.enrolled", "cell.gone", "cell.withdrawn", "cell.readmitted"],
    fields: { cell: record(cell) },
  },
  tenant: {
    types: ["tenant.created", "tenant.suspended", "tenant.resumed", "tenant.changed"],
    fields: {},
  },
  /** A task's lease has no events of its own: these report it (T10). */
  task: {
    types: [
      "task.created",
      "task.offered",
      "task.accepted",
      "task.completed",
      "task.requeued",
      "task.escalated",
      "task.canceled",
      "task.redriven",
      "task.recovered",
    ],
    fields: {
      task: hidden(record(task)),
      /** The worker it was offered to, or that had it; null where there was none. */
      workerId: omitted(optional(text())),
      leaseId: omitted(optional(text())),
      reason,
    },
  },
  /** For operators and supervisors only (S7). */
  audit: { types: ["audit.recorded"], fields: without(auditEntry, "tenant", "at") },
  receipt: { types: ["receipt.stored"], fields: { receipt: hidden(record(receipt)) } },
} as const;

type Events = typeof events;
export type EventKind = keyof Events;

interface EventBase {
  readonly tenant: string;
  readonly at: Millis;
}
type EventOf<K extends EventKind> = EventBase & { readonly type: Events[K]["types"][number] } & Values<
    Events[K]["fields"]
  >;

export type LeaseEvent = EventOf<"lease">;
export type RequestEvent = EventOf<"request">;
export type ResourceEvent = EventOf<"resource">;
export type CellEvent = EventOf<"cell">;
export type TaskEvent = EventOf<"task">;

export type KernelEvent = { [K in EventKind]: EventOf<K> }[EventKind];

export const eventTypes = Object.values(events).flatMap(({ types }): readonly KernelEvent["type"][] => types);
