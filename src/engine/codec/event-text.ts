/**
 * Events as they are stored. Leases, agents' transitions, tasks and receipts make nearly all of them; these are lists, half
 * as long as what the wire shows, and the row of a lease is the text that the same commit stores of it anyway. What the
 * wire shows is encoded when somebody reads it (decision 0058). All others are stored as the wire shows them: an object.
 */
import type { KernelEvent, LeaseEvent, TaskEvent } from "../../kernel/contract/events.ts";
import type { Lease } from "../../kernel/contract/records.ts";
import { type LeaseRow, leaseFrom, leaseText } from "./records.gen.ts";

/** Encodes an event as it is sent. */
export type EncodeEvent = (event: KernelEvent) => string;

/** `leaseTexts`: rows of leases that are encoded already. */
export function storedEventText(
  event: KernelEvent,
  leaseTexts: ReadonlyMap<Lease, string>,
  encode: EncodeEvent,
): string {
  if ("lease" in event) {
    const { type, at, reason, lease } = event;
    return `["${type}",${at},${textOrNull(reason)},${leaseTexts.get(lease) ?? leaseText(lease)}]`;
  }
  if (event.type === "agent.transitioned") {
    return `["${event.type}",${event.at},${JSON.stringify(event.agentId)},"${event.from}","${event.to}"]`;
  }
  if ("task" in event) {
    const { type, at, task, workerId, leaseId, reason } = event;
    // Ids of tasks and leases are the kernel's own, and need no escapes.
    const lease = leaseId === null ? "null" : `"${leaseId}"`;
    const of = `"${task.id}",${JSON.stringify(task.spec.taskType)},"${task.status}",${task.attempts}`;
    return `["${type}",${at},${textOrNull(reason)},${of},${textOrNull(workerId)},${lease}]`;
  }
  if ("receipt" in event) {
    const { id, taskId, phase, sequence } = event.receipt;
    return `["${event.type}",${event.at},${JSON.stringify(id)},"${taskId}","${phase}",${sequence}]`;
  }
  return encode(event);
}

/** What the wire shows of an event as it was stored, by this version or an earlier one. */
export function sentEventText(tenant: string, stored: string, encode: EncodeEvent): string {
  return stored.startsWith("[") ? encode(eventFrom(tenant, JSON.parse(stored) as StoredList)) : stored;
}

type Head<Type> = [type: Type, at: number];
type LeaseList = [...Head<LeaseEvent["type"]>, reason: string | null, lease: LeaseRow];
type TransitionEvent = Extract<KernelEvent, { readonly type: "agent.transitioned" }>;
type TransitionList = [
  ...Head<"agent.transitioned">,
  agentId: string,
  from: TransitionEvent["from"],
  to: TransitionEvent["to"],
];
type TaskList = [
  ...Head<TaskEvent["type"]>,
  reason: string | null,
  id: string,
  taskType: string,
  status: TaskEvent["task"]["status"],
  attempts: number,
  workerId: string | null,
  leaseId: string | null,
];
type ReceiptList = [...Head<"receipt.stored">, id: string, taskId: string, phase: string, sequence: number];
type StoredList = LeaseList | TransitionList | TaskList | ReceiptList;

/** As much of the event as its encoder reads. */
function eventFrom(tenant: string, list: StoredList): KernelEvent {
  const [type, at] = list;
  if (isOf<LeaseList>(list, "lease.")) return { type: list[0], tenant, at, reason: list[2], lease: leaseFrom(list[3]) };
  if (isOf<TaskList>(list, "task.")) {
    const [, , reason, id, taskType, status, attempts, workerId, leaseId] = list;
    const task = { id, spec: { taskType }, status, attempts };
    return { type, tenant, at, reason, workerId, leaseId, task } as unknown as TaskEvent;
  }
  if (isOf<TransitionList>(list, "agent.")) {
    const [, , agentId, from, to] = list;
    return { type: "agent.transitioned", tenant, at, agentId, from, to };
  }
  const [, , id, taskId, phase, sequence] = list as ReceiptList;
  return { type, tenant, at, receipt: { id, taskId, phase, sequence } } as unknown as KernelEvent;
}

function isOf<T extends StoredList>(list: StoredList, start: string): list is T {
  return list[0].startsWith(start);
}

function textOrNull(text: string | null): string {
  return text === null ? "null" : JSON.stringify(text);
}
