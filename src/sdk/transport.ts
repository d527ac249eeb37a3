/** What carries calls: plain HTTP or the stream. A call is answered, whatever the status, or is broken. */
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

/** A call on its way: the object itself waits for the answer, so that a call costs no closures. */
export interface Outgoing {
  readonly name: OperationName;
  readonly input: object;
  /** Called once, unless it was dropped: with the answer, or with what broke. */
  answered(reply: WireReply): void;
  broken(error: WireBroken): void;
  /** The stream's own: the number that its frames carry, and what was heard when it left. */
  frameId: number;
  heardBefore: number;
  /** Whether the server may have got it. */
  isSent: boolean;
  /** How its wire gives it up, where that takes more than forgetting it. */
  giveUp: (() => void) | null;
}

export interface Wire {
  send(call: Outgoing): void;
  /** Nobody waits for it any more; it is not called back. `isLate`: because its time is up. */
  drop(call: Outgoing, isLate: boolean): void;
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

/** One call without retries or a limit of its own; rejects with `WireBroken`, also when the signal fires. */
export function exchange(wire: Wire, name: OperationName, input: object, signal: AbortSignal): Promise<WireReply> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new WireBroken("no answer in time", false));
    const onAbort = (): void => {
      wire.drop(call, false);
      reject(new WireBroken("no answer in time", call.isSent));
    };
    const call: Outgoing = {
      name,
      input,
      frameId: 0,
      heardBefore: 0,
      isSent: false,
      giveUp: null,
      answered(reply) {
        signal.removeEventListener("abort", onAbort);
        resolve(reply);
      },
      broken(error) {
        signal.removeEventListener("abort", onAbort);
        reject(error);
      },
    };
    signal.addEventListener("abort", onAbort, { once: true });
    wire.send(call);
  });
}

export function headersFor({ secret, tenant }: Credentials): Readonly<Record<string, string>> {
  return {
    ...(secret !== null && { authorization: `Bearer ${secret}` }),
    ...(tenant !== null && { "leasehold-tenant": tenant }),
  };
}
