/** What leaves the server, the same for HTTP, the stream and MCP: a status, and a body that is encoded already. */

import type { Values } from "../../kernel/contract/field.ts";
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import { blockersText } from "../leases/lease-json.ts";
import type { Fault } from "../schema/explain.ts";
import type { observation } from "../schema/views.ts";
import { type ErrorCode, statusOf } from "./errors.ts";

export interface Answer {
  readonly status: number;
  /** Of an error; null for all others. */
  readonly code: ErrorCode | null;
  readonly body: string;
  /** What the body says, where it was encoded from an object; null where the text was written directly. */
  readonly value: object | null;
  /** For the header of that name, in seconds. */
  readonly retryAfter: number | null;
}

/** What the encoder of an answer needs besides the kernel's reply. */
export interface AnswerContext {
  readonly now: Millis;
  /** Mints the token of a lease that has one (G3). */
  readonly tokenOf?: (lease: Lease, now: Millis) => string | null;
  /** The new instance's credential, for a registration or a resumption (A3). */
  readonly agentToken?: string;
  /** A new key's secret, shown this once. */
  readonly keySecret?: string;
  /** What the reply's `observe` asked for (A4). */
  readonly observation?: Observation;
  /** Several offers were asked for, so that even one comes in a list (T1). */
  readonly inList?: boolean;
}

export interface Observation extends Values<typeof observation> {}

export function answer(status: number, body: string): Answer {
  return { status, code: null, body, value: null, retryAfter: null };
}

export function answerJson(status: number, value: object): Answer {
  return { status, code: null, body: JSON.stringify(value), value, retryAfter: null };
}

/** Context goes beside `error` and `detail`; `retry_after_ms` also becomes the header. */
export function errorAnswer(code: ErrorCode, detail: string, context: Readonly<Record<string, unknown>> = {}): Answer {
  const { retry_after_ms: wait } = context;
  const value = { error: code, detail, ...context };
  const retryAfter = typeof wait === "number" ? inSeconds(wait) : null;
  return { status: statusOf(code), code, body: JSON.stringify(value), value, retryAfter };
}

/** For receipts and tasks `reason` repeats the first clause of `detail`. */
export function faultAnswer({ code, field, detail }: Fault): Answer {
  if (code === "invalid_worker_id") return invalidWorkerId;
  const [reason] = detail.split(/[;.]/, 1);
  const context = code === "invalid_receipt" || code === "invalid_task" ? { field, reason } : { field };
  return errorAnswer(code, detail, field === "" ? {} : context);
}

/** In the words of the AsyncGate document. */
const invalidWorkerId = errorAnswer("invalid_worker_id", "must match pattern {type}.{instance}");

export function refusalAnswer(refusal: Refusal, now: Millis): Answer {
  const { code, detail, field, leaseId, from, to, generation, blockers, blockersTotal } = refusal;
  const { taskId, problem, winningReceiptId, missing } = refusal;
  if (code === "invalid_worker_id") return invalidWorkerId;
  const value = {
    error: code,
    detail,
    field,
    reason: refusal.reason ?? problem,
    lease_id: leaseId,
    from,
    to,
    generation,
    task_id: taskId,
    winning_receipt_id: winningReceiptId,
    missing,
  };
  const text = JSON.stringify(value);
  if (blockers === undefined) return { status: statusOf(code), code, body: text, value, retryAfter: null };
  const total = blockersTotal ?? blockers.length;
  const body = `${text.slice(0, -1)},"blocked_by":${blockersText(blockers, now)},"blocked_by_total":${total}}`;
  return { status: statusOf(code), code, body, value: null, retryAfter: null };
}

/** Rounded up, so that a client that waits this long is not too early. */
export function inSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}

/** For MCP, whose answers are objects. */
export function bodyValue({ value, body }: Answer): object {
  return value ?? (body === "" ? {} : (JSON.parse(body) as object));
}
