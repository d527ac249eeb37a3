/**
 * What leaves the server, the same for HTTP, the stream and MCP: a status and a value. The value is encoded when it leaves,
 * as text or as an object, so that nobody parses our own JSON.
 */

import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import { type Form, type FormContext, show, timeless } from "../schema/convert.ts";
import type { Fault } from "../schema/explain.ts";
import { refusalBody } from "../schema/views.ts";
import { type ErrorCode, statusOf } from "./errors.ts";

export interface Answer {
  readonly status: number;
  /** Of an error; null for all others. */
  readonly code: ErrorCode | null;
  readonly value: object;
  readonly form: Form;
  readonly context: FormContext;
  /** For the header of that name, in seconds. */
  readonly retryAfter: number | null;
}

/** What the encoder of an answer needs besides the kernel's reply. */
export interface AnswerContext extends FormContext {
  /** The new instance's credential, for a registration or a resumption (A3). */
  readonly agentToken?: { readonly token: string; readonly expiresInMs: number };
  /** A new key's secret, shown this once. */
  readonly keySecret?: string;
  /** What the caller should know of what it has done. */
  readonly warnings?: readonly string[];
  /** The caller stands above, and is shown whose names are (L13). */
  readonly showsOwners?: boolean;
  /** Several offers were asked for, so that even one comes in a list (T1). */
  readonly inList?: boolean;
}

export function answer<T extends object>(status: number, form: Form<T>, value: T, context = timeless): Answer {
  return { status, code: null, value, form, context, retryAfter: null };
}

/** Of an object that is what the wire shows. */
export function answerJson(status: number, value: object): Answer {
  return answer(status, plain, value);
}

const plain: Form<object> = { text: (value) => JSON.stringify(value), object: (value) => value };

export function bodyText({ form, value, context }: Answer): string {
  return form.text(value as never, context);
}

export function bodyObject({ form, value, context }: Answer): object {
  return form.object(value as never, context);
}

/** Context goes beside `error` and `detail`; `retry_after_ms` also becomes the header. */
export function errorAnswer(code: ErrorCode, detail: string, context: Readonly<Record<string, unknown>> = {}): Answer {
  const { retry_after_ms: wait } = context;
  const value = { error: code, detail, ...context };
  const retryAfter = typeof wait === "number" ? inSeconds(wait) : null;
  return { ...answerJson(statusOf(code), value), code, retryAfter };
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
  const { code } = refusal;
  if (code === "invalid_worker_id") return invalidWorkerId;
  return { ...answerJson(statusOf(code), show(refusalBody, refusal, { now })), code };
}

/** Rounded up, so that a client that waits this long is not too early. */
export function inSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
