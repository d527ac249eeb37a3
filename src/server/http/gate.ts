/**
 * Who may reach the server at all, before it is asked who they are. A web page elsewhere can make a browser call a
 * server on the same machine, by its address (CSRF) or by a name of its own that it lets point there (DNS rebinding).
 * The first shows in `Origin`, the second in `Host`; both are checked for every request.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";

export interface GateOptions {
  /** The address that the server listens on. */
  readonly host: string;
  /** Names that it goes by beside its own; "*" lets all in. */
  readonly allowedHosts: readonly string[];
  /** Pages that may call it beside its own: "https://ops.example.com". */
  readonly allowedOrigins: readonly string[];
}

export interface Gate {
  /** An answer where the request is turned away. */
  check(request: IncomingMessage): Answer | null;
  /** Whether a page of this origin, which is not the server's own, may read the answers. */
  lets(origin: string): boolean;
}

/** Values of `Host` that were accepted; clients use few, and past the limit none is remembered. */
const hostsKnownMax = 1_000;

export function createGate({ host, allowedHosts, allowedOrigins }: GateOptions): Gate {
  const names = new Set(allowedHosts.map((name) => name.toLowerCase()));
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  const known = new Set<string>();
  const isOpen = names.has("*");
  const onLoopback = isLoopback(host);

  const isAllowedHost = (shown: string): boolean => {
    if (isOpen || known.has(shown)) return true;
    const name = hostNameOf(shown);
    if (name === null) return false;
    // Behind an address stands no name that could be made to point here. Yet on loopback only its own are expected.
    const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
    if (!(isLoopback(name) || names.has(name) || names.has(shown.toLowerCase()) || (isAddress && !onLoopback)))
      return false;
    if (known.size < hostsKnownMax) known.add(shown);
    return true;
  };

  return {
    check(request) {
      const { headers, url = "", httpVersionMajor } = request;
      // A target with a host of its own would be a second word on where this goes.
      if (url.charCodeAt(0) !== 0x2f && !(url === "*" && request.method === "OPTIONS")) return notForHere;
      if (httpVersionMajor !== 1) return otherVersion;
      if (headers.host === undefined) {
        // HTTP/1.0 knows no Host; a browser always sends one.
        if (request.httpVersionMinor !== 0) return noHost;
      } else if (!isAllowedHost(headers.host)) return hostNotAllowed;
      if (headers.origin === undefined && headers["sec-fetch-site"] === undefined) return null;
      return isAllowedPage(request.method, headers, origins) ? null : originNotAllowed;
    },
    lets: (origin) => origins.has(origin.toLowerCase()),
  };
}

/** A browser says where a call comes from. Following a link from elsewhere to a page of the server is harmless. */
function isAllowedPage(
  method: string | undefined,
  headers: IncomingHttpHeaders,
  origins: ReadonlySet<string>,
): boolean {
  const { origin, host } = headers;
  if (origin !== undefined) {
    const shown = origin.toLowerCase();
    return (
      origins.has(shown) || shown === `http://${host?.toLowerCase()}` || shown === `https://${host?.toLowerCase()}`
    );
  }
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return true;
  return method === "GET" && headers["sec-fetch-mode"] === "navigate";
}

/** "localhost:7117" is "localhost", "[::1]:7117" is "[::1]"; null if it is not a host. */
function hostNameOf(shown: string): string | null {
  const found = /^(\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\,]+)(?::\d{1,5})?$/i.exec(shown);
  return found?.[1]?.toLowerCase().replace(/\.$/, "") ?? null;
}

export function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, "").toLowerCase();
  if (bare === "localhost" || bare === "::1") return true;
  return isIP(bare) === 4 && bare.startsWith("127.");
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
const originNotAllowed = errorAnswer(
  "origin_not_allowed",
  "Pages of this origin may not call the server; start it with --allowed-origin to let them.",
);
