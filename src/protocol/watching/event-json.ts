/** Events on the wire: `{type, at, …}` as text. Every grant and every end makes one, so leases are put in as text. */
import type { KernelEvent, TaskEvent } from "../../kernel/contract/events.ts";
import { leaseText } from "../leases/lease-json.ts";
import { agentObject, cellObject, requestObject, resourceObject } from "../operating/record-json.ts";
import { isoTime } from "../schema/iso-time.ts";
import { escaped } from "../schema/json-text.ts";

export function eventText(event: KernelEvent): string {
  return `{"type":"${event.type}","at":"${isoTime(event.at)}",${contentText(event)}}`;
}

/** A lease's remaining time is as of the event. */
function contentText(event: KernelEvent): string {
  switch (event.type) {
    case "lease.binding":
    case "lease.granted":
    case "lease.renewed":
    case "lease.reissued":
    case "lease.held":
    case "lease.revived":
    case "lease.transferred":
    case "lease.downgraded":
    case "lease.violated":
    case "lease.closing":
    case "lease.released":
    case "lease.expired":
    case "lease.revoked": {
      const version = event.lease.version === null ? "" : `,"version":${JSON.stringify(event.lease.version)}`;
      return `"lease":${leaseText(event.lease, event.at)}${version}${reasonText(event.reason)}`;
    }
    case "request.waiting":
    case "request.granted":
    case "request.timed_out":
    case "request.canceled":
    case "request.paused":
      return `"request":${JSON.stringify(requestObject(event.request))}${reasonText(event.reason)}`;
    case "request.died": {
      const { agentId, attempt, resources } = event;
      return `"agent_id":${JSON.stringify(agentId)},"attempt":${attempt},"resources":${JSON.stringify(resources)}`;
    }
    case "agent.registered":
    case "agent.taken_up":
    case "agent.paused":
    case "agent.unpaused":
    case "agent.forgotten":
      return `"agent":${JSON.stringify(agentObject(event.agent))}`;
    case "agent.transitioned":
      return `"agent_id":${JSON.stringify(event.agentId)},"from":"${event.from}","to":"${event.to}"`;
    case "resource.declared":
    case "resource.fenced":
    case "resource.reset":
    case "resource.withdrawn":
      return `"resource":${JSON.stringify(resourceObject(event.resource))}`;
    case "cell.enrolled":
    case "cell.gone":
    case "cell.withdrawn":
    case "cell.readmitted":
      return `"cell":${JSON.stringify(cellObject(event.cell))}`;
    case "task.created":
    case "task.offered":
    case "task.accepted":
    case "task.completed":
    case "task.requeued":
    case "task.escalated":
    case "task.canceled":
    case "task.redriven":
      return taskText(event);
    case "receipt.stored": {
      const { id, taskId, phase, sequence } = event.receipt;
      return `"receipt_id":"${escaped(id)}","task_id":"${taskId}","phase":"${phase}","sequence":${sequence}`;
    }
    case "tenant.created":
    case "tenant.suspended":
    case "tenant.resumed":
    case "tenant.changed":
      return `"tenant_id":${JSON.stringify(event.tenant)}`;
  }
}

/** Every step of a task makes one: no more is in it than what tells whether to look. Ids of our own are plain. */
function taskText({ task, workerId, leaseId, reason }: TaskEvent): string {
  const { id, spec, status, attempts } = task;
  const worker = workerId === null ? "" : `,"worker_id":"${escaped(workerId)}"`;
  const lease = leaseId === null ? "" : `,"lease_id":"${leaseId}"`;
  return `"task_id":"${id}","task_type":"${escaped(spec.taskType)}","status":"${status}","attempt":${attempts}${worker}${lease}${reasonText(reason)}`;
}

function reasonText(reason: string | null): string {
  return reason === null ? "" : `,"reason":${JSON.stringify(reason)}`;
}
