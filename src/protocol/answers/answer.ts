/** What leaves the server: a status and a body that is JSON text already, the same for HTTP, the stream and MCP. */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import { blockersText } from "../leases/lease-json.ts";
import type { Fault } from "../schema/explain.ts";
import { type ErrorCode, statusOf } from "./errors.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** For the header of that name, in seconds. */
  readonly retryAfter: number | null;
}

/** What an answer needs beside the kernel's reply. */
export interface AnswerContext {
  readonly now: Millis;
  /** Mints the token of a lease that has one (G3). */
  readonly tokenOf?: (lease: Lease) => string | null;
  /** The new instance's credential, for a registration or a resumption (A3). */
  readonly agentToken?: string;
  /** A new key's secret, shown this once. */
  readonly keySecret?: string;
  /** What the reply's `observe` asked for (A4). */
  readonly observation?: Observation;
  /** Several offers were asked for, so that even one comes in a list (T1). */
  readonly inList?: boolean;
}

/** A4: what happened to the resources an agent relied on. */
export interface Observation {
  readonly since: Millis;
  /** Older history was pruned, so there may have been more. */
  readonly truncated: boolean;
  readonly changes: readonly {
    readonly resource: string;
    readonly predicate: string;
    readonly agentId: string;
    readonly at: Millis;
    readonly version: string | null;
  }[];
}

export function answer(status: number, body: string): Answer {
  return { status, body, retryAfter: null };
}

export function answerJson(status: number, value: object): Answer {
  return answer(status, JSON.stringify(value));
}

/** Context goes beside `error` and `detail`; `retry_after_ms` also becomes the header. */
export function errorAnswer(code: ErrorCode, detail: string, context: Readonly<Record<string, unknown>> = {}): Answer {
  const { retry_after_ms: wait } = context;
  return {
    status: statusOf(code),
    body: JSON.stringify({ error: code, detail, ...context }),
    retryAfter: typeof wait === "number" ? inSeconds(wait) : null,
  };
}

/** Of a receipt or a task the reason is told apart, in a few words: the part of the sentence before what to do. */
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
  const body = JSON.stringify({
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
  });
  if (blockers === undefined) return answer(statusOf(code), body);
  const total = blockersTotal ?? blockers.length;
  return answer(
    statusOf(code),
    `${body.slice(0, -1)},"blocked_by":${blockersText(blockers, now)},"blocked_by_total":${total}}`,
  );
}

/** Rounded up: who comes back after so many seconds is not too early. */
export function inSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
