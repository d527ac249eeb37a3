/**
 * Which calls may be sent again after an answer that never came. With a key of the SDK's own drawing an acquire is
 * decided once however often it is sent (W10); what sets something to a value can be set again; the rest is sent again
 * only when it is certain that the server never saw it.
 */
import { type OperationInputs, routes } from "./wire.ts";

export type OperationName = keyof OperationInputs;

/** Sent again, the outcome is the same. What only looks is not listed: its method says so. */
export const safe: ReadonlySet<OperationName> = new Set<OperationName>([
  "register_agent",
  "restart_agent",
  "pause_agent",
  "unpause_agent",
  "save_digest",
  "verify_all",
  "renew_agent_token",
  "cancel_request",
  "heartbeat",
  "heartbeat_all",
  "release_lease",
  "release_all",
  "declare_resource",
  "fence_resource",
  "reset_resource",
  "withdraw_resource",
  "readmit_cell",
  "verify_token",
  "suspend_tenant",
  "resume_tenant",
  "set_tenant_settings",
  "set_tenant_quotas",
  "assign_name",
  "set_policy",
  "test_policies",
  "cancel_task",
  "heartbeat_task",
  "heartbeat_tasks",
  "release_task",
  "set_task_type",
  "end_session",
]);

/** Safe once they carry a key, in the field named here; those of a batch, each in its own. */
export const keyFields: Readonly<Partial<Record<OperationName, string>>> = {
  acquire: "request_id",
  poll_tasks: "request_id",
  create_task: "idempotency_key",
  create_tasks: "idempotency_key",
  submit_receipt: "dedupe_key",
  submit_receipts: "dedupe_key",
};

/** One that is drawn here is for the calls that follow at once, so that it need not be remembered for long (T12). */
const taskKey = "idempotency_key";

/** Where a batch has its items. */
const batchFields: Readonly<Partial<Record<OperationName, string>>> = {
  create_tasks: "tasks",
  submit_receipts: "receipts",
};

/** These wait for a cell, which may take its time; a second attempt would start over. */
export function takesLong(name: OperationName): boolean {
  return name === "reset_resource" || name === "renew_lease";
}

/** One that is in no list is taken for one that may be sent once. */
export function isRepeatable(name: OperationName): boolean {
  return safe.has(name) || keyFields[name] !== undefined || routes[name].method === "GET";
}

/** The input with a key in it, if it takes one and has none. */
export function keyed<N extends OperationName>(name: N, input: OperationInputs[N]): OperationInputs[N] {
  const field = keyFields[name];
  if (field === undefined) return input;
  const batch = batchFields[name];
  if (batch === undefined) return withKey(input, field);
  const items = (input as Readonly<Record<string, unknown>>)[batch];
  if (!Array.isArray(items)) return input;
  return { ...input, [batch]: items.map((item: object) => withKey(item, field)) };
}

function withKey<T extends object>(input: T, field: string): T {
  const given = (input as Readonly<Record<string, unknown>>)[field];
  return given !== undefined && given !== null
    ? input
    : { ...input, [field]: drawKey(field === taskKey ? "once" : "sdk") };
}

/** How long the server may hold the call before it answers. */
export function holdMsOf(input: object): number {
  const { hold_ms: hold } = input as { readonly hold_ms?: unknown };
  return typeof hold === "number" ? hold : 0;
}

/**
 * 96 random bits of this program, and a count. Not a secret: it only has to differ from every other, and to draw numbers for
 * each would cost more than the call's frame.
 */
export function drawKey(prefix = "sdk"): string {
  return `${prefix}_${drawn}${(++keyCount).toString(36)}`;
}

const [a = 0, b = 0, c = 0] = crypto.getRandomValues(new Uint32Array(3));
const drawn = [a, b, c].map((part) => part.toString(36).padStart(7, "0")).join("");
let keyCount = 0;
