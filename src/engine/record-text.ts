/**
 * Records as they are stored: JSON with what is null, false or usual left out, because most of a lease is. Leases and
 * agents are written by hand, for nearly every command changes one; a test holds that nothing is lost on the way.
 */
import type { RestoredRecord } from "../kernel/kernel.ts";
import type { Agent, Lease, RecordKind, RecordOf } from "../kernel/records.ts";

export function recordText<K extends RecordKind>(kind: K, record: RecordOf[K]): string {
  if (kind === "lease") return leaseText(record as Lease);
  return kind === "agent" ? agentText(record as Agent) : JSON.stringify(record);
}

/** An ended lease in history reads the same as a live one in its row. */
export function leaseText(lease: Lease): string {
  let text = `{"tenant":${quote(lease.tenant)},"id":${quote(lease.id)},"resource":${quote(lease.resource)},"predicate":"${lease.predicate}","agentId":${quote(lease.agentId)},"state":"${lease.state}","fence":${lease.fence},"acquiredAt":${lease.acquiredAt},"expiresAt":${lease.expiresAt},"ttl":${lease.ttl}`;
  if (lease.holder !== lease.agentId) text += `,"holder":${quote(lease.holder)}`;
  if (lease.generation !== 1) text += `,"generation":${lease.generation}`;
  if (lease.units !== 1) text += `,"units":${lease.units}`;
  if (lease.purpose !== null) text += `,"purpose":${quote(lease.purpose)}`;
  if (lease.tokens) text += `,"tokens":true`;
  if (lease.idleTimeout !== null) text += `,"idleTimeout":${lease.idleTimeout}`;
  if (lease.activeAt !== lease.acquiredAt) text += `,"activeAt":${lease.activeAt}`;
  if (lease.claimBy !== null) text += `,"claimBy":${lease.claimBy}`;
  if (lease.heldUntil !== null) text += `,"heldUntil":${lease.heldUntil}`;
  if (lease.verified) text += `,"verified":true`;
  if (lease.linkedTo !== null) text += `,"linkedTo":${quote(lease.linkedTo)}`;
  if (lease.cell !== null) text += `,"cell":${quote(lease.cell)}`;
  if (lease.cellBy !== null) text += `,"cellBy":${lease.cellBy}`;
  if (lease.coordinate !== null) text += `,"coordinate":${quote(lease.coordinate)}`;
  if (lease.closingAs !== null) text += `,"closingAs":"${lease.closingAs}"`;
  if (lease.endedAt !== null) text += `,"endedAt":${lease.endedAt}`;
  if (lease.endReason !== null) text += `,"endReason":${quote(lease.endReason)}`;
  if (lease.version !== null) text += `,"version":${quote(lease.version)}`;
  return `${text}}`;
}

function agentText(agent: Agent): string {
  let text = `{"tenant":${quote(agent.tenant)},"id":${quote(agent.id)},"state":"${agent.state}","priority":${agent.priority},"attempts":${agent.attempts},"epoch":${agent.epoch},"registeredAt":${agent.registeredAt},"idleSince":${agent.idleSince}`;
  for (const _ in agent.labels) {
    text += `,"labels":${JSON.stringify(agent.labels)}`;
    break;
  }
  if (agent.restarting) text += `,"restarting":true`;
  if (agent.pausedByOperator) text += `,"pausedByOperator":true`;
  if (agent.pausedAt !== null) text += `,"pausedAt":${agent.pausedAt}`;
  return `${text}}`;
}

function readAgent(text: string): Agent {
  const agent = JSON.parse(text) as Omit<Agent, "labels" | "restarting" | "pausedByOperator" | "pausedAt"> &
    Partial<Agent>;
  return {
    tenant: agent.tenant,
    id: agent.id,
    labels: agent.labels ?? {},
    state: agent.state,
    restarting: agent.restarting ?? false,
    pausedByOperator: agent.pausedByOperator ?? false,
    priority: agent.priority,
    attempts: agent.attempts,
    epoch: agent.epoch,
    registeredAt: agent.registeredAt,
    pausedAt: agent.pausedAt ?? null,
    idleSince: agent.idleSince,
  };
}

/** Most texts need no escaping, and looking is cheaper than quoting through the language's own routine. */
function quote(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return JSON.stringify(text);
  }
  return `"${text}"`;
}

export function readLease(text: string): Lease {
  const lease = JSON.parse(text) as Partial<Lease> & Pick<Lease, "tenant" | "id" | "agentId" | "acquiredAt">;
  // One literal, so that a million restored leases share one hidden shape with those that are granted later.
  return {
    tenant: lease.tenant,
    id: lease.id,
    resource: lease.resource ?? "",
    predicate: lease.predicate ?? "MUTATES",
    agentId: lease.agentId,
    holder: lease.holder ?? lease.agentId,
    state: lease.state ?? "ACTIVE",
    fence: lease.fence ?? 0,
    generation: lease.generation ?? 1,
    units: lease.units ?? 1,
    purpose: lease.purpose ?? null,
    acquiredAt: lease.acquiredAt,
    expiresAt: lease.expiresAt ?? lease.acquiredAt,
    ttl: lease.ttl ?? 0,
    tokens: lease.tokens ?? false,
    idleTimeout: lease.idleTimeout ?? null,
    activeAt: lease.activeAt ?? lease.acquiredAt,
    claimBy: lease.claimBy ?? null,
    heldUntil: lease.heldUntil ?? null,
    verified: lease.verified ?? false,
    linkedTo: lease.linkedTo ?? null,
    cell: lease.cell ?? null,
    cellBy: lease.cellBy ?? null,
    coordinate: lease.coordinate ?? null,
    closingAs: lease.closingAs ?? null,
    endedAt: lease.endedAt ?? null,
    endReason: lease.endReason ?? null,
    version: lease.version ?? null,
  };
}

export function readRecord(kind: string, text: string, row: number): RestoredRecord {
  if (kind === "lease") return { kind, record: readLease(text), row };
  if (kind === "agent") return { kind, record: readAgent(text), row };
  return { kind, record: JSON.parse(text), row } as RestoredRecord;
}
