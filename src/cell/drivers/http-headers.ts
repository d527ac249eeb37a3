/** Which headers go through a gateway, in either direction. */

import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { CellLease } from "../binding.ts";

/** They speak of one connection, and each of the two has its own (RFC 9110 §7.6.1). */
const ofOneConnection = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What the gateway says itself must not be said by others in its name; and no service sees a token. */
const ownHeaders = /^leasehold-/;
const tokenInAuthorization = /^Bearer lht1\./;

export function questionHeaders(
  { headers, socket }: IncomingMessage,
  lease: CellLease,
  host: string,
  upgrade: boolean,
): OutgoingHttpHeaders {
  const named = namedBy(headers.connection);
  const kept: OutgoingHttpHeaders = {};
  for (const name in headers) {
    if (ofOneConnection.has(name) || ownHeaders.test(name) || named?.has(name) === true || name === "expect") continue;
    kept[name] = headers[name];
  }
  if (tokenInAuthorization.test(headers.authorization ?? "")) delete kept.authorization;
  if (headers["transfer-encoding"] !== undefined) kept["transfer-encoding"] = "chunked";
  if (upgrade) {
    kept.connection = "Upgrade";
    kept.upgrade = headers.upgrade;
  }
  kept.host = host;
  kept["x-forwarded-for"] = socket.remoteAddress;
  kept["leasehold-tenant"] = lease.tenant;
  kept["leasehold-lease"] = lease.id;
  kept["leasehold-fence"] = lease.fence;
  return kept;
}

/** As pairs, because a header may come several times. */
export function answerHeaders(raw: readonly string[]): string[] {
  let named: Set<string> | null = null;
  for (let at = 0; at < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() === "connection") named = namedBy(raw[at + 1]);
  }
  const kept: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? "";
    const lower = name.toLowerCase();
    if (!ofOneConnection.has(lower) && named?.has(lower) !== true) kept.push(name, raw[at + 1] ?? "");
  }
  return kept;
}

function namedBy(connection: string | undefined): Set<string> | null {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
