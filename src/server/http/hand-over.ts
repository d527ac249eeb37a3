/**
 * What a server that passes a request on says of its client (S7): the address that it saw, with a sum under a key that only the
 * servers of the cluster have. So the audit log and the limit on failed logins are about the client, wherever it came in, and
 * what anybody else writes into the header is not believed.
 *
 * The sum is over the request's line and credential too: a header that was seen on the way fits no other request.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Says that a request was passed on. A leader takes it as any other. */
export const passedOnHeader = "leasehold-passed-on";

export class HandOver {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The header's value. */
  say(request: IncomingMessage, address: string): string {
    return `${address} ${this.#sum(request, address)}`;
  }

  /** null: no server of this cluster has said it. */
  addressIn(request: IncomingMessage): string | null {
    const shown = request.headers[passedOnHeader];
    if (typeof shown !== "string") return null;
    const end = shown.lastIndexOf(" ");
    const address = shown.slice(0, Math.max(end, 0));
    const [one, other] = [Buffer.from(shown.slice(end + 1)), Buffer.from(this.#sum(request, address))];
    return one.length === other.length && timingSafeEqual(one, other) ? address : null;
  }

  #sum({ method, url, headers }: IncomingMessage, address: string): string {
    const { authorization = null, cookie = null } = headers;
    const said = JSON.stringify([method, url, authorization, cookie, headers["x-api-key"] ?? null, address]);
    return createHmac("sha256", this.#key).update(said).digest("base64url");
  }
}
