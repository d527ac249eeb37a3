/**
 * Which headers go through a gateway, in either direction. It frames every request itself (G14), and says itself who
 * asks: what a client says of either is dropped, in every spelling that a service may read the same way.
 */
import type { IncomingMessage } from "node:http";
import type { CellLease } from "../binding.ts";
import type { Framing } from "./http-framing.ts";

/** They are about one connection, and each of the two has its own (RFC 9110 §7.6.1). */
const ofOneConnection = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);

/** What the gateway writes itself, or has answered already. */
const ownNames = ["host", "content-length", "expect", "http2-settings"];
/** By these a service would take a request for one of another client, to another path, or with another method. */
const disguises = [
  ...["forwarded", "via", "proxy", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"],
  ...["x-original-url", "x-original-host", "x-rewrite-url", "x-host"],
  ...["x-http-method", "x-http-method-override", "x-method-override"],
];
const dropped: ReadonlySet<string> = new Set([...ofOneConnection, ...ownNames, ...disguises]);
const droppedPrefix = /^(?:leasehold|x-forwarded)-/;
/** No service sees a token. */
const tokenInAuthorization = /^\s*bearer\s+lht1\./i;

/** Names come again and again. What clients make up must not fill memory. */
const judged = new Map<string, boolean>();
const judgedMax = 1_000;

export interface Question {
  readonly lease: CellLease;
  readonly host: string;
  readonly framing: Framing;
  /** The protocol to change to. */
  readonly upgrade: string | null;
}

/** As pairs, in the order in which they came: Node writes these as they are, and adds no framing of its own. */
export function questionHeaders({ rawHeaders, socket }: IncomingMessage, question: Question): string[] {
  const { lease, host, framing, upgrade } = question;
  const kept: string[] = ["Host", host];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const value = rawHeaders[at + 1] ?? "";
    if (isForwarded(name) && !tokenInAuthorization.test(value)) kept.push(name, value);
  }
  switch (framing.body) {
    case "none":
      break;
    case "length":
      kept.push("Content-Length", String(framing.length));
      break;
    case "chunked":
      kept.push("Transfer-Encoding", "chunked");
      break;
  }
  if (upgrade !== null) kept.push("Connection", "Upgrade", "Upgrade", upgrade);
  kept.push("X-Forwarded-For", socket.remoteAddress ?? "");
  kept.push("Leasehold-Tenant", lease.tenant, "Leasehold-Lease", lease.id, "Leasehold-Fence", String(lease.fence));
  return kept;
}

/** CGI and its followers write - and _ and other signs of a name all the same way. */
function isForwarded(name: string): boolean {
  const known = judged.get(name);
  if (known !== undefined) return known;
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, "-");
  const is = !dropped.has(plain) && !droppedPrefix.test(plain);
  if (judged.size < judgedMax) judged.set(name, is);
  return is;
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
    if (!ofOneConnection.has(lower) && (lower === "content-length" || named?.has(lower) !== true)) {
      kept.push(name, raw[at + 1] ?? "");
    }
  }
  return kept;
}

function namedBy(connection: string | undefined): Set<string> | null {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
