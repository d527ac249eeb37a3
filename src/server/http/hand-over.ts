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

/** What another server of the cluster has said of a request. */
export interface HandedOver {
  readonly address: string;
  /** The shard whose leader it is meant for. */
  readonly shard: number;
}

type Sent = Pick<IncomingMessage, "method" | "url" | "headers">;

export class HandOver {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The header's value. */
  say(request: Sent, address: string, shard = 0): string {
    return `${wordsOf(address, shard)} ${this.#sum(request, address, shard)}`;
  }

  /** null: no server of this cluster has said it. */
  saidIn(request: IncomingMessage): HandedOver | null {
    const shown = request.headers[passedOnHeader];
    if (typeof shown !== "string") return null;
    const end = shown.lastIndexOf(" ");
    const words = shown.slice(0, Math.max(end, 0));
    const address = words.replace(/ #\d+$/, "");
    const shard = shardIn(words) ?? 0;
    const [one, other] = [Buffer.from(shown.slice(end + 1)), Buffer.from(this.#sum(request, address, shard))];
    return one.length === other.length && timingSafeEqual(one, other) ? { address, shard } : null;
  }

  #sum({ method, url, headers }: Sent, address: string, shard: number): string {
    const { authorization = null, cookie = null } = headers;
    const said = [method, url, authorization, cookie, headers["x-api-key"] ?? null, wordsOf(address, shard)];
    return createHmac("sha256", this.#key).update(JSON.stringify(said)).digest("base64url");
  }
}

/** The first shard goes without saying. */
function wordsOf(address: string, shard: number): string {
  return shard === 0 ? address : `${address} #${shard}`;
}

/** The shard that a header names, true or not; null: none. */
export function shardIn(shown: string): number | null {
  const found = / #(\d{1,4})(?: |$)/.exec(shown)?.[1];
  return found === undefined ? null : Number(found);
}
