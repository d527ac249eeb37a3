/** How a cell fails, in closed lists: towards the control plane, and towards holders of tokens (G9). */
import type { CellEndCode } from "../protocol/resources/cell-link.ts";
import type { TokenFailureCode } from "../token/index.ts";

/** How a lease ends, as its holder sees it. */
export type EndCode = CellEndCode;

/** What a command of the control plane can be refused with. */
export type CellFailureCode =
  | EndCode
  | "bind_failed"
  | "teardown_failed"
  | "probe_failed"
  | "reset_failed"
  | "lease_denied"
  | "lease_unknown"
  | "stale_generation"
  | "resource_unknown"
  | "cell_not_ready";

export class CellFailure extends Error {
  override name = "CellFailure";
  readonly code: CellFailureCode;

  constructor(code: CellFailureCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** What an operation at a gateway can be answered with, and the status of that in HTTP. */
export const accessStatuses = {
  invalid_request: 400,
  token_invalid: 401,
  stale_token: 401,
  caveat_failed: 401,
  program_not_allowed: 403,
  path_not_allowed: 403,
  environment_not_allowed: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  run_timeout: 408,
  conflict: 409,
  lease_expired: 410,
  lease_released: 410,
  lease_revoked: 410,
  payload_too_large: 413,
  range_not_satisfiable: 416,
  resource_fenced: 423,
  driver_failed: 500,
  upstream_failed: 502,
  too_many_connections: 503,
  too_many_runs: 503,
  cell_not_ready: 503,
  upstream_timeout: 504,
} as const satisfies Record<TokenFailureCode | EndCode, number> & Record<string, number>;

export interface AccessFailure {
  readonly code: keyof typeof accessStatuses;
  readonly detail: string;
  readonly caveat?: string;
}

const endDetails: Readonly<Record<EndCode, string>> = {
  lease_expired: "The lease has ended; acquire again.",
  lease_released: "The lease was given back; acquire again if it is still needed.",
  lease_revoked: "The lease was taken away.",
  resource_fenced: "The resource is fenced until an operator has reset it.",
};

export function ended(code: EndCode): AccessFailure {
  return { code, detail: endDetails[code] };
}

/** As holders get it, at every gateway. */
export function failureText({ code, detail, caveat }: AccessFailure): string {
  return JSON.stringify({ error: code, detail, caveat });
}

/** The sentence of whatever was thrown. */
export function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
