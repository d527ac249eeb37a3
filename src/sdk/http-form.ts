/** A call as an HTTP request, and an HTTP answer as a reply, whatever carries them. */
import type { OperationName } from "./idempotency.ts";
import { WireBroken, type WireReply } from "./transport.ts";
import { type Route, routes } from "./wire.ts";

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
