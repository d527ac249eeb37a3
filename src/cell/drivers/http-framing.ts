/**
 * Where the body of a request ends, and what it asks of its connection. A gateway forwards only what it has framed
 * itself (G14): with a length, in chunks, or without a body.
 */
import type { IncomingMessage } from "node:http";
import type { AccessFailure } from "../failure.ts";

export type Framing = {
  /** A service may see its end elsewhere, so that its connection to the service is used for it alone. */
  readonly isOdd: boolean;
} & ({ readonly body: "none" } | { readonly body: "chunked" } | { readonly body: "length"; readonly length: number });

/** Methods whose body means nothing (RFC 9110 §9.3): some services take it for the next request. */
const bodiless = new Set(["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"]);
const withBody = new Set(["POST", "PUT", "PATCH"]);
const connectionOptions = new Set(["close", "keep-alive", "upgrade", "te"]);

export function framingOf(request: IncomingMessage): Framing | AccessFailure {
  const { headers, httpVersionMinor, method = "" } = request;
  const { "transfer-encoding": encoding, "content-length": lengthText, connection } = headers;
  if (connection !== undefined && !isUsual(connection)) {
    return refused("Connection names a header; it may name close, keep-alive, upgrade and te only.");
  }
  const isOdd = headers.expect !== undefined || httpVersionMinor !== 1;
  if (encoding !== undefined) {
    if (encoding.toLowerCase() !== "chunked" || lengthText !== undefined || httpVersionMinor !== 1) {
      return refused("Transfer-Encoding is chunked, alone, and of HTTP/1.1.");
    }
    if (method === "TRACE") return refused("TRACE has no body.");
    return { body: "chunked", isOdd: isOdd || !withBody.has(method) };
  }
  const length = Number(lengthText ?? 0);
  if (!Number.isSafeInteger(length) || length < 0) return refused("Content-Length is a whole number.");
  if (length === 0 && !withBody.has(method)) return { body: "none", isOdd: isOdd || !bodiless.has(method) };
  if (method === "TRACE") return refused("TRACE has no body.");
  return { body: "length", length, isOdd: isOdd || !withBody.has(method) };
}

/** The one protocol that an upgrade asks for, as it is configured. An upgrade has no body: what follows is not HTTP. */
export function upgradeOf(request: IncomingMessage, allowed: readonly string[]): string | AccessFailure {
  const { method, headers } = request;
  const asked = headers.upgrade?.trim().toLowerCase();
  const protocol = allowed.find((known) => known.toLowerCase() === asked);
  if (protocol === undefined) return refused(`Upgrades here: ${allowed.join(", ") || "none"}.`);
  const framing = framingOf(request);
  if ("code" in framing) return framing;
  if (method !== "GET" || framing.body !== "none") return refused("An upgrade is a GET without a body.");
  return protocol;
}

function isUsual(connection: string): boolean {
  if (connection === "keep-alive" || connection === "close") return true;
  return connection.split(",").every((option) => connectionOptions.has(option.trim().toLowerCase()));
}

function refused(detail: string): AccessFailure {
  return { code: "invalid_request", detail };
}
