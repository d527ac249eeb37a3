/**
 * What a call can end with beside its answer. `code` is one of a closed list: the server's own codes, and the few that
 * only the caller's side can know. What carries more than a sentence has a class of its own.
 */
import {
  type Blocker,
  type ErrorCode,
  type GatewayCode,
  gatewayStatuses,
  type ObservationUpdate,
  retryable as retryableCodes,
} from "./wire.ts";

export type SdkCode =
  /** No answer came, from this address at least. */
  | "unreachable"
  | "timeout"
  /** The caller's own signal. */
  | "aborted"
  /** The client was closed before the answer came. */
  | "closed"
  /** Something answered, but not in Leasehold's words. */
  | "bad_answer"
  /** Work went on, or would have, without its leases. */
  | "lease_lost";

/** Of the server, of a cell's gateway, and of this side. */
export type LeaseholdCode = ErrorCode | GatewayCode | SdkCode;

export interface Failure {
  readonly code: LeaseholdCode;
  readonly detail: string;
  /** null where nothing was answered. */
  readonly status?: number | null;
  readonly body?: unknown;
  /** Whether the server may have acted all the same. */
  readonly outcomeUnknown?: boolean;
  /** Of a `Retry-After` header, for answers whose body does not say. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export class LeaseholdError extends Error {
  readonly code: LeaseholdCode;
  readonly detail: string;
  readonly status: number | null;
  readonly body: unknown;
  /** Whether the same call, made again later, can succeed without anybody changing it. */
  readonly retryable: boolean;
  readonly outcomeUnknown: boolean;
  /** How long the server asks to be left alone; null where it does not say. */
  readonly retryAfterMs: number | null;

  constructor({ code, detail, status = null, body = null, outcomeUnknown = false, retryAfterMs, cause }: Failure) {
    super(`${code}: ${detail}`, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.code = code;
    this.detail = detail;
    this.status = status;
    this.body = body;
    this.retryable = isRetryable(code);
    this.outcomeUnknown = outcomeUnknown;
    this.retryAfterMs = numberIn(body, "retry_after_ms") ?? retryAfterMs ?? null;
  }

  /** The reason that the server gives beside the code; null where there is none. */
  get reasonSaid(): string | null {
    return textIn(this.body, "reason");
  }

  /** What stands in the way, where something does (W11). */
  get blockedBy(): readonly Blocker[] {
    return listIn<Blocker>(this.body, "blocked_by");
  }
}

/** DIE: somebody older is in the way (W2). Roll back, let go, ask again after `retryAfterMs`. */
export class Died extends LeaseholdError {
  get attempt(): number {
    return numberIn(this.body, "attempt") ?? 1;
  }
  get priorityTimestamp(): number | null {
    return numberIn(this.body, "priority_timestamp");
  }
}

/** PAUSED: neither waiting nor retrying helps until somebody acts (W9). */
export class Paused extends LeaseholdError {
  get reason(): string {
    return this.reasonSaid ?? "";
  }
}

/** There is no lease to work under: it was denied, or it has ended (G9). What differs is what to do about it. */
export abstract class LeaseFailure extends LeaseholdError {
  abstract readonly reason: string;
}

/** Not for this tenant, this resource or this agent (G2), or not with this token at a cell's gateway (G5). */
export class Denied extends LeaseFailure {
  get reason(): string {
    return this.reasonSaid ?? "";
  }
}

/** The events after that one are forgotten: read the present state, and follow from `earliest`. */
export class HistoryPruned extends LeaseholdError {
  get earliest(): number | null {
    return numberIn(this.body, "earliest");
  }
}

export interface FailedAssumption {
  readonly resource: string;
  readonly expected: string;
  readonly actual: string | null;
}

/** The agent was taken up, but what it relied on has changed: its digest is dropped, and it plans again (A5). */
export class AssumptionFailed extends LeaseholdError {
  get failed(): readonly FailedAssumption[] {
    return listIn<FailedAssumption>(this.body, "failed");
  }
  get observationUpdate(): ObservationUpdate | null {
    return (fieldOf(this.body, "observation_update") as ObservationUpdate | undefined) ?? null;
  }
}

/** Of `stale_generation`: how often the lease has been issued by now. */
export function generationIn({ body }: LeaseholdError): number | null {
  return numberIn(body, "generation");
}

/** From a refusal's status and body. */
export function errorOf(status: number, body: unknown, retryAfterMs?: number): LeaseholdError {
  const named = textIn(body, "error");
  if (named === null || !isErrorCode(named)) {
    const said = named === null ? "something that is not Leasehold's" : `a code this version does not know (${named})`;
    return new LeaseholdError({
      code: "bad_answer",
      detail: `The answer, with status ${status}, is ${said}; check the address, and what stands between.`,
      status,
      body,
      outcomeUnknown: status >= 500,
      retryAfterMs,
    });
  }
  const detail = textIn(body, "detail") ?? `The server refused with ${named}.`;
  const failure: Failure = { code: named, detail, status, body, outcomeUnknown: isOutcomeUnknown(named), retryAfterMs };
  return new (classes[named] ?? LeaseholdError)(failure);
}

const classes: Readonly<Partial<Record<ErrorCode, typeof LeaseholdError>>> = {
  die: Died,
  paused: Paused,
  lease_denied: Denied,
  history_pruned: HistoryPruned,
  assumption_failed: AssumptionFailed,
};

export function aborted(signal: AbortSignal, outcomeUnknown: boolean): LeaseholdError {
  const { reason } = signal as { readonly reason?: unknown };
  return new LeaseholdError({ code: "aborted", detail: "The caller has given up.", cause: reason, outcomeUnknown });
}

/** Of these the server cannot say whether the command was committed (S2). */
function isOutcomeUnknown(code: ErrorCode): boolean {
  return code === "database_unavailable" || code === "internal_error" || code === "shutting_down";
}

/** A gateway's own trouble passes; its refusals stay. */
function isRetryable(code: LeaseholdCode): boolean {
  if (isErrorCode(code)) return retryableCodes[code];
  if (Object.hasOwn(gatewayStatuses, code)) return gatewayStatuses[code as GatewayCode] >= 502;
  return code === "unreachable" || code === "timeout";
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(retryableCodes, text);
}

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>)[name] : undefined;
}

function textIn(body: unknown, name: string): string | null {
  const value = fieldOf(body, name);
  return typeof value === "string" ? value : null;
}

function numberIn(body: unknown, name: string): number | null {
  const value = fieldOf(body, name);
  return typeof value === "number" ? value : null;
}

function listIn<T>(body: unknown, name: string): readonly T[] {
  const value = fieldOf(body, name);
  return Array.isArray(value) ? (value as readonly T[]) : [];
}
