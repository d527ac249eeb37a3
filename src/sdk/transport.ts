/** What carries calls: plain HTTP or the stream. Either gives an answer, whatever its status, or is broken. */
import type { OperationName } from "./idempotency.ts";

/** What a caller shows; each set of credentials has connections of its own. */
export interface Credentials {
  /** A key, or an agent's token. */
  readonly secret: string | null;
  readonly tenant: string | null;
}

export interface WireReply {
  readonly status: number;
  readonly body: unknown;
  /** Of a `Retry-After` header; left out where there is none. */
  readonly retryAfterMs?: number;
}

export interface Wire {
  /** Rejects with `WireBroken` where no answer came, the signal's firing included. */
  send(name: OperationName, input: object, signal: AbortSignal): Promise<WireReply>;
}

export class WireBroken extends Error {
  /** Whether the server may have got the call, and acted. */
  readonly mayHaveActed: boolean;

  constructor(message: string, mayHaveActed: boolean, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "WireBroken";
    this.mayHaveActed = mayHaveActed;
  }
}

export function headersFor({ secret, tenant }: Credentials): Readonly<Record<string, string>> {
  return {
    ...(secret !== null && { authorization: `Bearer ${secret}` }),
    ...(tenant !== null && { "leasehold-tenant": tenant }),
  };
}
