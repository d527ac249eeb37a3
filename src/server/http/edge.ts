/**
 * The outermost layer: which requests are let in at all, and how answers are written.
 *
 * Requests are checked before it is asked who sends them. A web page elsewhere can make a browser call a
 * server on the same machine, by its address (CSRF) or by a name of its own that it lets point there (DNS rebinding).
 * The first shows in `Origin`, the second in `Host`; both are checked for every request.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { BlockList, isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { closeWith } from "../../cell/reset-socket.ts";
import { type Answer, bodyText, errorAnswer } from "../../protocol/answers/answer.ts";
import { isLoopback } from "../../trust/loopback.ts";
import type { HandOver } from "./hand-over.ts";

export interface GateOptions {
  /** The address that the server listens on. */
  readonly host: string;
  /** Names that it goes by beside its own; "*" lets all in. */
  readonly allowedHosts: readonly string[];
  /** Pages that may call it beside its own: "https://ops.example.com". */
  readonly allowedOrigins: readonly string[];
  /** Addresses of the proxies that do TLS; with any of them, nobody else is let in from another machine. */
  readonly behindProxy: readonly string[];
  /** What servers of the same cluster say of the requests that they pass on; null, or absent: there are none. */
  readonly handOver?: HandOver | null;
}

export interface Gate {
  /** An answer where the request is turned away. */
  check(request: IncomingMessage): Answer | null;
  /** Whether a page of this origin, which is not the server's own, may read the answers. */
  lets(origin: string): boolean;
  /** Whether the client speaks TLS, with this server or with a trusted proxy. */
  speaksTls(request: IncomingMessage): boolean;
  /** The address of the client, also where a trusted proxy or another server of the cluster stands between. */
  addressOf(request: IncomingMessage): string | undefined;
}

/** Values of `Host` that were accepted; clients use few, and past the limit none is remembered. */
const hostsKnownMax = 1_000;

export function createGate(options: GateOptions): Gate {
  const { host, allowedHosts, allowedOrigins, behindProxy, handOver = null } = options;
  const names = new Set(allowedHosts.map((name) => name.toLowerCase()));
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  const known = new Set<string>();
  const isOpen = names.has("*");
  const onLoopback = isLoopback(host);
  const proxies = behindProxy.length === 0 ? null : networksOf(behindProxy);

  const isAllowedHost = (shown: string): boolean => {
    const name = hostNameOf(shown);
    if (name === null) return false;
    // A literal IP address cannot be rebound by DNS, so any is accepted; on loopback only loopback addresses are.
    const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
    if (!(isLoopback(name) || names.has(name) || names.has(shown.toLowerCase()) || (isAddress && !onLoopback)))
      return false;
    if (known.size < hostsKnownMax) known.add(shown);
    return true;
  };

  return {
    check(request) {
      const { headers, url = "", httpVersionMajor } = request;
      // The host of an absolute-form target could contradict the Host header.
      if (url.charCodeAt(0) !== 0x2f && !(url === "*" && request.method === "OPTIONS")) return notForHere;
      if (httpVersionMajor !== 1) return otherVersion;
      if (proxies !== null && !isEncrypted(request, proxies)) return notEncrypted;
      if (headers.host === undefined) {
        // HTTP/1.0 knows no Host; a browser always sends one.
        if (request.httpVersionMinor !== 0) return noHost;
      } else if (!isOpen && !known.has(headers.host) && !isAllowedHost(headers.host)) return hostNotAllowed;
      if (headers.origin === undefined && headers["sec-fetch-site"] === undefined) return null;
      return isAllowedPage(request, origins) ? null : originNotAllowed;
    },
    lets: (origin) => origins.has(origin.toLowerCase()),
    speaksTls({ socket, headers }) {
      if ((socket as Partial<TLSSocket>).encrypted === true) return true;
      const proto = headers["x-forwarded-proto"];
      if (proto === undefined || proxies === null || !isOf(proxies, peerOf(socket))) return false;
      return String(proto).split(",").at(-1)?.trim().toLowerCase() === "https";
    },
    addressOf(request) {
      const { socket, headers } = request;
      const passedOn = handOver === null ? null : handOver.saidIn(request);
      if (passedOn !== null) return passedOn.address;
      const forwarded = headers["x-forwarded-for"];
      if (forwarded === undefined || proxies === null || !isOf(proxies, peerOf(socket))) return socket.remoteAddress;
      // The nearest proxy adds what it saw at the end.
      return String(forwarded).split(",").at(-1)?.trim().slice(0, addressLengthMax);
    },
  };
}

/** S5: what the proxies say of a request is believed of them alone: that its client spoke TLS with them. */
function isEncrypted({ socket, headers }: IncomingMessage, proxies: BlockList): boolean {
  const peer = peerOf(socket);
  if (!isOf(proxies, peer)) return isLoopback(peer) || (socket as Partial<TLSSocket>).encrypted === true;
  const proto = headers["x-forwarded-proto"];
  // The nearest proxy adds its own at the end.
  return proto === undefined || String(proto).split(",").at(-1)?.trim().toLowerCase() !== "http";
}

const addressLengthMax = 64;

function peerOf({ remoteAddress = "" }: { readonly remoteAddress?: string | undefined }): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/i, "");
}

function isOf(networks: BlockList, address: string): boolean {
  return isIP(address) !== 0 && networks.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

function networksOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * A browser says where a call comes from. Following a link from elsewhere to a page of the server is harmless; a link to an
 * operation is not, since asking for a request may collect its grant (W8).
 */
function isAllowedPage({ method, headers, url = "" }: IncomingMessage, origins: ReadonlySet<string>): boolean {
  const { origin, host } = headers;
  if (origin !== undefined) {
    const shown = origin.toLowerCase();
    return (
      origins.has(shown) || shown === `http://${host?.toLowerCase()}` || shown === `https://${host?.toLowerCase()}`
    );
  }
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return true;
  return method === "GET" && headers["sec-fetch-mode"] === "navigate" && !url.startsWith("/v1/");
}

/** "localhost:7117" is "localhost", "[::1]:7117" is "[::1]"; null if it is not a host. */
function hostNameOf(shown: string): string | null {
  const found = /^(\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\,]+)(?::\d{1,5})?$/i.exec(shown);
  return found?.[1]?.toLowerCase().replace(/\.$/, "") ?? null;
}

const notForHere = errorAnswer(
  "invalid_request",
  "The request's target is not a path; send one that begins with a slash.",
);
const otherVersion = errorAnswer("invalid_request", "The server speaks HTTP/1.1 and HTTP/1.0; send one of them.");
const noHost = errorAnswer("invalid_request", "The request has no Host header; send one.", { field: "Host" });
const hostNotAllowed = errorAnswer(
  "host_not_allowed",
  "The server does not go by the name in the Host header; use its address, or start it with --allowed-host.",
);
const notEncrypted = errorAnswer(
  "tls_required",
  "This connection is not encrypted, or does not come from the proxy that the server is behind; use https, through it.",
);
const originNotAllowed = errorAnswer(
  "origin_not_allowed",
  "Pages of this origin may not call the server; start it with --allowed-origin to let them.",
);

/** Every 401 says how to authenticate (RFC 9110, 11.6.1). */
const challenge = 'Bearer realm="leasehold"';

export const jsonType = "application/json; charset=utf-8";

/**
 * Writes answers as HTTP: head and body leave in one piece, with no more headers than a client has use for. Returns the
 * size of the body.
 */
export function sendAnswer(response: ServerResponse, answer: Answer): number {
  const { status, retryAfter } = answer;
  // The client may have gone away while its answer was held or committed.
  if (response.destroyed || response.headersSent) return 0;
  if (status === 204) return sendNothing(response, retryAfter);
  const body = bodyText(answer);
  const bytes = Buffer.byteLength(body);
  const headers = [
    "Content-Type",
    jsonType,
    "Content-Length",
    String(bytes),
    "Cache-Control",
    "no-store",
    "X-Content-Type-Options",
    "nosniff",
  ];
  if (retryAfter !== null) headers.push("Retry-After", String(retryAfter));
  if (status === 401) headers.push("WWW-Authenticate", challenge);
  response.writeHead(status, headers);
  response.end(body);
  return bytes;
}

/** No content, and so nothing that describes it. */
function sendNothing(response: ServerResponse, retryAfter: number | null): number {
  const headers = ["Cache-Control", "no-store"];
  if (retryAfter !== null) headers.push("Retry-After", String(retryAfter));
  response.writeHead(204, headers);
  response.end();
  return 0;
}

export function sendText(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, [
    "Content-Type",
    type,
    "Content-Length",
    String(Buffer.byteLength(body)),
    "Cache-Control",
    "no-store",
    "X-Content-Type-Options",
    "nosniff",
    // A page of the server loads nothing and is shown in no frame.
    "Content-Security-Policy",
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options",
    "DENY",
  ]);
  response.end(body);
}

/**
 * For what never became a request: an answer is written to the socket as it stands, and a moment later the connection is
 * gone, whether or not its client closes its own side.
 */
export function sendRaw(socket: Duplex, answer: Answer, headers: readonly string[] = []): void {
  const { status, retryAfter } = answer;
  const body = bodyText(answer);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `Content-Type: ${jsonType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "X-Content-Type-Options: nosniff",
    "Connection: close",
    ...(retryAfter === null ? [] : [`Retry-After: ${retryAfter}`]),
    ...(status === 401 ? [`WWW-Authenticate: ${challenge}`] : []),
    ...headers,
  ];
  closeWith(socket, `${lines.join("\r\n")}\r\n\r\n${body}`);
}
