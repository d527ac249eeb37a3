/** How a cell fails, in closed lists: towards the control plane, and towards holders of tokens (G9). */
import type { CellEndCode } from "../protocol/resources/cell-link.ts";
import type { GatewayCode } from "../protocol/resources/gateway-codes.ts";

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

export interface AccessFailure {
  readonly code: GatewayCode;
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
