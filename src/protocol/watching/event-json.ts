/** Events on the wire: `{type, at, …}` as text. Every grant and every end makes one, so leases and tasks are text at once. */
import {
  type EventKind,
  events,
  type KernelEvent,
  type LeaseEvent,
  type TaskEvent,
} from "../../kernel/contract/events.ts";
import type { Fields } from "../../kernel/contract/field.ts";
import { leaseText } from "../leases/lease-json.ts";
import { agentObject, resourceObject } from "../operating/record-json.ts";
import { show } from "../schema/convert.ts";
import { escaped, isoTime } from "../schema/text.ts";

const kinds = new Map(
  Object.entries(events).flatMap(([kind, { types }]) => types.map((type) => [type, kind as EventKind] as const)),
);

export function eventText(event: KernelEvent): string {
  const content = "lease" in event ? leaseEventText(event) : contentText(event);
  return `{"type":"${event.type}","at":"${isoTime(event.at)}",${content}}`;
}

function contentText(event: Exclude<KernelEvent, LeaseEvent>): string {
  if ("task" in event) return taskEventText(event);
  if ("agent" in event) return `"agent":${JSON.stringify(agentObject(event.agent))}`;
  if ("resource" in event) return `"resource":${JSON.stringify(resourceObject(event.resource))}`;
  if ("receipt" in event) {
    const { id, taskId, phase, sequence } = event.receipt;
    return `"receipt_id":"${escaped(id)}","task_id":"${taskId}","phase":"${phase}","sequence":${sequence}`;
  }
  if (event.type === "agent.transitioned") {
    return `"agent_id":"${escaped(event.agentId)}","from":"${event.from}","to":"${event.to}"`;
  }
  const kind = kinds.get(event.type);
  if (kind === undefined || kind === "tenant") return `"tenant_id":${JSON.stringify(event.tenant)}`;
  const fields: Fields = events[kind].fields;
  return JSON.stringify(show(fields, event)).slice(1, -1);
}

/** The remaining time is as of the event. */
function leaseEventText({ lease, at, reason }: LeaseEvent): string {
  const version = lease.version === null ? "" : `,"version":${JSON.stringify(lease.version)}`;
  return `"lease":${leaseText(lease, at)}${version}${reason === null ? "" : reasonText(reason)}`;
}

/** Every step of a task makes one: it says only what tells whether to read the task. The kernel's ids need no escaping. */
function taskEventText({ task, workerId, leaseId, reason }: TaskEvent): string {
  const { id, spec, status, attempts } = task;
  const worker = workerId === null ? "" : `,"worker_id":"${escaped(workerId)}"`;
  const lease = leaseId === null ? "" : `,"lease_id":"${leaseId}"`;
  return `"task_id":"${id}","task_type":"${escaped(spec.taskType)}","status":"${status}","attempt":${attempts}${worker}${lease}${reason === null ? "" : reasonText(reason)}`;
}

function reasonText(reason: string): string {
  return `,"reason":${JSON.stringify(reason)}`;
}
