/** What the audit log consists of (S7). */
import { choice, hidden, json, omitted, optional, text, time, type Values } from "./field.ts";
import { roles } from "./records.ts";

/** One change by an operator or a supervisor: who did what to what, when, and from where. */
export const auditEntry = {
  tenant: hidden(text()),
  at: time(),
  /** The id of the key that was shown; `keyless` where none was needed. */
  actor: text(),
  role: choice(roles),
  /** The address that the request came from; null: not known. */
  address: omitted(optional(text())),
  /** The name of the operation. */
  action: text(),
  /** What it was done to: the id of a key, a tenant, an agent, a lease or a task, or the name of a resource. */
  target: omitted(optional(text())),
  /** What was asked for, field by field. */
  detail: json(),
};
export interface AuditEntry extends Values<typeof auditEntry> {}
