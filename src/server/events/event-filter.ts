/** Which events a follower wants, and what there is to choose by: an event's type, whom it concerns, what it is about. */
import type { KernelEvent } from "../../kernel/contract/events.ts";
import type { Lease, Request } from "../../kernel/contract/records.ts";
import { namesOverlap, parseResourceName, type ResourceName } from "../../kernel/views.ts";

export interface EventFilter {
  readonly tenant: string;
  readonly types: ReadonlySet<string> | null;
  /** Events about resources that overlap with it. */
  readonly resource: ResourceName | null;
  readonly agentId: string | null;
  /** Whether the follower may see the audit log (S7). */
  readonly seesAudit: boolean;
}

export const auditType = "audit.recorded";

/** An event as filters see it, live or read back from the store. */
export class Subject {
  readonly type: string;
  readonly agentIds: readonly string[];
  private readonly resources: readonly string[];
  private parsed: readonly ResourceName[] | null = null;

  constructor(type: string, agentIds: readonly string[], resources: readonly string[]) {
    this.type = type;
    this.agentIds = agentIds;
    this.resources = resources;
  }

  /** Parsed once for all who ask, and not at all if nobody does. */
  get names(): readonly ResourceName[] {
    if (this.parsed !== null) return this.parsed;
    const names = this.resources.flatMap((text) => {
      const name = parseResourceName(text);
      return "problem" in name ? [] : [name];
    });
    this.parsed = names;
    return names;
  }
}

export function matches({ types, agentId, resource, seesAudit }: EventFilter, subject: Subject): boolean {
  if (!seesAudit && subject.type === auditType) return false;
  if (types !== null && !types.has(subject.type)) return false;
  if (agentId !== null && !subject.agentIds.includes(agentId)) return false;
  return resource === null || subject.names.some((name) => namesOverlap(resource, name));
}

export function subjectOf(event: KernelEvent): Subject {
  if ("lease" in event) {
    const { agentId, resource } = event.lease;
    // The giver of the lease gets the event too; the reason is its id.
    const giver = event.type === "lease.transferred" ? event.reason : null;
    return new Subject(event.type, giver === null ? [agentId] : [agentId, giver], [resource]);
  }
  if ("request" in event) return new Subject(event.type, [event.request.agentId], resourcesOf(event.request.intents));
  if ("task" in event)
    return new Subject(event.type, event.workerId === null ? [] : [event.workerId], [taskName(event.task.id)]);
  if ("receipt" in event) return new Subject(event.type, [], [taskName(event.receipt.taskId)]);
  if ("agent" in event) return new Subject(event.type, [event.agent.id], []);
  if ("resource" in event) return new Subject(event.type, [], [event.resource.name]);
  if ("agentId" in event) return new Subject(event.type, [event.agentId], "resources" in event ? event.resources : []);
  return new Subject(event.type, [], []);
}

/** An event in the words of the wire, as far as it is looked into. */
export interface StoredEvent {
  readonly type: string;
  readonly reason?: string;
  readonly agent_id?: string;
  readonly resources?: readonly string[];
  readonly lease?: { readonly agent_id: string } & Pick<Lease, "resource">;
  readonly request?: { readonly agent_id: string } & Pick<Request, "intents">;
  readonly agent?: { readonly agent_id: string };
  readonly resource?: { readonly resource: string };
  readonly task_id?: string;
  readonly worker_id?: string;
}

export function storedSubjectOf(event: StoredEvent): Subject {
  const { type, lease, request, agent, resource, agent_id: agentId } = event;
  if (lease !== undefined) {
    const giver = type === "lease.transferred" ? event.reason : undefined;
    return new Subject(type, giver === undefined ? [lease.agent_id] : [lease.agent_id, giver], [lease.resource]);
  }
  if (request !== undefined) return new Subject(type, [request.agent_id], resourcesOf(request.intents));
  if (event.task_id !== undefined)
    return new Subject(type, event.worker_id === undefined ? [] : [event.worker_id], [taskName(event.task_id)]);
  if (agent !== undefined) return new Subject(type, [agent.agent_id], []);
  if (resource !== undefined) return new Subject(type, [], [resource.resource]);
  return new Subject(type, agentId === undefined ? [] : [agentId], event.resources ?? []);
}

/** The name that its lease has (T10). */
function taskName(taskId: string): string {
  return `TASK:/${taskId}`;
}

function resourcesOf(intents: Request["intents"]): readonly string[] {
  return intents.flatMap(({ resource, to }) => (to === null ? [resource] : [resource, to]));
}
