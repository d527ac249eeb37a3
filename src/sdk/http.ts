/** Calls over HTTP: one request each, on connections that are kept open between them. */

import type { ClientTls } from "../trust/client-tls.ts";
import type { OperationName } from "./idempotency.ts";
import { nodeWires } from "./platform.ts";
import { createDispatcher, fetchThrough } from "./platform-tls.ts";
import { type Credentials, headersFor, type Outgoing, type Wire, WireBroken, type WireReply } from "./transport.ts";
import { type Route, routes } from "./wire.ts";

export type Fetch = typeof fetch;

export interface HttpWireOptions {
  readonly url: string;
  readonly credentials: Credentials;
  /** The caller's own; null: the platform's. */
  readonly fetch: Fetch | null;
  readonly tls: ClientTls | null;
}

/** Under Node by its sockets, which costs a tenth of what its fetch does (decision 0032); elsewhere by fetch. */
export function createHttpWire(options: HttpWireOptions): Wire {
  const headers = headersFor(options.credentials);
  const loading = options.fetch === null ? nodeWires() : null;
  if (loading === null) return new FetchWire(options.url, headers, options.fetch ?? platformFetch(options.tls));
  return new LoadedWire(loading.then(({ createNodeHttp }) => createNodeHttp({ ...options, headers })));
}

function platformFetch(tls: ClientTls | null): Fetch {
  return tls === null ? fetch : fetchThrough(createDispatcher(tls));
}

/** Waits for the module that has Node's part. */
class LoadedWire implements Wire {
  private wire: Wire | null = null;
  private readonly loading: Promise<Wire>;

  constructor(loading: Promise<Wire>) {
    this.loading = loading.then((wire) => {
      this.wire = wire;
      return wire;
    });
    this.loading.catch(() => undefined);
  }

  send(call: Outgoing): void {
    if (this.wire !== null) return this.wire.send(call);
    let isDropped = false;
    call.giveUp = () => {
      isDropped = true;
    };
    this.loading.then(
      (wire) => {
        call.giveUp = null;
        if (!isDropped) wire.send(call);
      },
      (error: unknown) => call.broken(new WireBroken("this platform has no sockets", false, error)),
    );
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }
}

class FetchWire implements Wire {
  private readonly url: string;
  private readonly plain: Readonly<Record<string, string>>;
  private readonly withBody: Readonly<Record<string, string>>;
  private readonly fetcher: Fetch;

  constructor(url: string, headers: Readonly<Record<string, string>>, fetcher: Fetch) {
    this.url = url;
    this.plain = headers;
    this.withBody = { ...headers, "content-type": "application/json" };
    this.fetcher = fetcher;
  }

  send(call: Outgoing): void {
    const controller = new AbortController();
    call.giveUp = () => controller.abort();
    call.isSent = true;
    this.exchange(call, controller.signal).then(
      (reply) => controller.signal.aborted || call.answered(reply),
      (error: unknown) => controller.signal.aborted || call.broken(broken(error)),
    );
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }

  private async exchange({ name, input }: Outgoing, signal: AbortSignal): Promise<WireReply> {
    const { plain, withBody, fetcher } = this; // A browser's fetch refuses to be called as a method.
    const { method, path, body } = requestFor(name, input);
    const sent = body === null ? { method, signal, headers: plain } : { method, signal, headers: withBody, body };
    const response = await fetcher(`${this.url}${path}`, sent);
    return replyOf(response.status, await response.text(), response.headers.get("retry-after"));
  }
}

export function replyOf(status: number, text: string, retryAfter: string | null): WireReply {
  const reply = { status, body: parsed(text) };
  const retryAfterMs = status < 300 ? null : msIn(retryAfter);
  return retryAfterMs === null ? reply : { ...reply, retryAfterMs };
}

export interface HttpRequest {
  readonly method: Route["method"];
  readonly path: string;
  readonly body: string | null;
}

/** Fields that the path names go there, the others into the query or the body. */
export function requestFor(name: OperationName, input: object): HttpRequest {
  const { method, path } = routes[name];
  const hasBody = method === "POST" || method === "PUT";
  if (hasBody && !path.includes("{")) return { method, path, body: JSON.stringify(input) };
  const inPath = new Set<string>();
  const filled = path.replaceAll(/\{(\w+)\}/g, (_braces, field: string) => {
    inPath.add(field);
    return encodeURIComponent(String((input as Readonly<Record<string, unknown>>)[field] ?? ""));
  });
  if (hasBody) return { method, path: filled, body: JSON.stringify(without(input, inPath)) };
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(input)) {
    if (inPath.has(field) || value === undefined || value === null) continue;
    query.set(field, Array.isArray(value) ? value.join(",") : String(value));
  }
  return { method, path: query.size === 0 ? filled : `${filled}?${query}`, body: null };
}
function without(input: object, names: ReadonlySet<string>): object {
  return Object.fromEntries(Object.entries(input).filter(([name]) => !names.has(name)));
}

/** Seconds, or a date; a proxy says no more than this. */
function msIn(retryAfter: string | null): number | null {
  if (retryAfter === null) return null;
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : null;
}

/** What is not JSON is kept as text, for the error to show. */
export function parsed(text: string): WireReply["body"] {
  if (text === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Of these, in the words of Node, Bun and Deno, no byte of the request has left. */
const neverSent =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|Connection refused|FailedToOpenSocket|dns error|Unable to connect/i;

export function broken(error: unknown, isActing = true): WireBroken {
  const words = causesOf(error);
  const mayHaveActed = isActing && !neverSent.test(words.join(" "));
  return new WireBroken(words[words.length - 1] ?? "no answer", mayHaveActed, error);
}

/** fetch says only that it failed; why is in its cause. */
function causesOf(error: unknown): readonly string[] {
  const words: string[] = [];
  let one = error;
  for (let depth = 0; depth < 4 && one instanceof Error; depth++) {
    const { code } = one as { readonly code?: unknown };
    const parts: readonly unknown[] = one instanceof AggregateError ? one.errors : [];
    const inner = parts.length === 0 ? [] : causesOf(parts[0]);
    words.push([typeof code === "string" ? code : "", one.message || inner.join(" ")].filter(Boolean).join(" "));
    one = one.cause;
  }
  return words;
}
