/**
 * The audit log (S7): every change that an operator or a supervisor makes in that role. What anybody may do with its own
 * agents, leases and tasks is in the events and in the ledger.
 */
import type { AuditEntry } from "./contract/audit-records.ts";
import { type Actor, type Command, commands } from "./contract/commands.ts";
import { type FieldData, type Fields, wireName } from "./contract/field.ts";
import type { Millis } from "./contract/records.ts";
import type { Reply } from "./contract/replies.ts";
import { taskCommands } from "./contract/task-commands.ts";
import { isAbove } from "./memory/actors.ts";
import type { State } from "./memory/state.ts";
import type { Later } from "./requests/sweep.ts";

const described: Readonly<Record<string, Fields>> = { ...commands, ...taskCommands };

/** Called for commands that are audited. */
export function auditCommand(state: State, command: Command, reply: Reply | Later<Reply>, now: Millis): void {
  if (reply.type === "refused" || !isAbove(command.actor)) return;
  const detail = detailOf(described[command.type] ?? {}, command as unknown as Values);
  const key = reply.type === "key" ? reply.key : null;
  const tenant = key?.tenant ?? String(detail["tenant_id"] ?? command.tenant);
  const target = key?.id ?? targetOf(detail);
  recordAudit(state, auditEntryOf(tenant, command.actor, command.type, target, detail, now));
}

export function auditEntryOf(
  tenant: string,
  { keyId: actor = keyless, role, address }: Actor,
  action: string,
  target: string | null,
  detail: unknown,
  at: Millis,
): AuditEntry {
  return { tenant, at, actor, role, address: address ?? null, action, target, detail };
}

const keyless = "keyless";

export function recordAudit(state: State, entry: AuditEntry): void {
  state.audits.push(entry);
  state.events.push({ type: "audit.recorded", ...entry });
}

type Values = Readonly<Record<string, unknown>>;

/** What was given, under the names of the wire. Secrets and what the server adds are hidden there, and so here. */
function detailOf(fields: Fields, values: Values): Record<string, unknown> {
  const detail: Record<string, unknown> = {};
  for (const [key, field] of Object.entries<FieldData>(fields)) {
    const value = values[key];
    if (field.wire === null || value === null || value === undefined) continue;
    if (field.flat) Object.assign(detail, detailOf(field.fields ?? {}, value as Values));
    else detail[wireName(key, field)] = value;
  }
  return detail;
}

/** The first of these that the command names. */
const targets = [
  "key_id",
  "policy_id",
  "lease_id",
  "agent_id",
  "resource",
  "resource_prefix",
  "cell",
  "task_id",
  "obligation_id",
  "task_type",
  "tenant_id",
];

function targetOf(detail: Values): string | null {
  for (const name of targets) if (typeof detail[name] === "string") return detail[name];
  return null;
}
