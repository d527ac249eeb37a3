/**
 * Between fastify and the SDK, which speaks in the web's own `Request` and `Response`. The SDK's adapter for Node would
 * bring a web framework along; this is all of it that is needed.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyRequest } from "fastify";

export function webRequest({ raw, body }: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(raw.headers)) {
    if (typeof value === "string") headers.set(name, value);
    else for (const one of value ?? []) headers.append(name, one);
  }
  if (acceptsJson(raw.headers) || acceptsStream(raw.headers)) headers.set("accept", bothTypes);
  // The gate has looked at the host; nobody looks at this one again.
  const url = new URL(raw.url ?? "/", "http://leasehold.invalid");
  const hasBody = Buffer.isBuffer(body) && body.length > 0;
  return new Request(url, {
    method: raw.method ?? "GET",
    headers,
    signal,
    ...(hasBody && { body: new Uint8Array(body) }),
  });
}

/** What the SDK insists on. What the client takes is known to who sends the answer. */
const bothTypes = "application/json, text/event-stream";

/** A missing Accept and a range with `*` both mean that JSON is fine (RFC 9110, 12.5.1). */
function acceptsJson({ accept }: IncomingHttpHeaders): boolean {
  return accept === undefined || accept === "" || /(^|[\s,])(application\/json|application\/\*|\*\/\*)/i.test(accept);
}

export function acceptsStream({ accept = "" }: IncomingHttpHeaders): boolean {
  return /(^|[\s,])text\/(event-stream|\*)/i.test(accept);
}

/** The SDK answers programs of 2025 with a stream that has the one message; a client that takes none gets that message. */
export async function withoutStream(response: Response): Promise<Response> {
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
  const events = (await response.text())
    .split("\n")
    .filter((line) => line.startsWith("data: {") || line.startsWith("data: ["));
  const messages = events.map((line) => line.slice("data: ".length));
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/json");
  return new Response(messages.length === 1 ? messages[0] : `[${messages.join(",")}]`, {
    status: response.status,
    headers,
  });
}

/** Resolves when all has been handed over, or nobody is there any more. */
export async function sendResponse(response: Response, raw: ServerResponse, signal: AbortSignal): Promise<void> {
  if (raw.destroyed || raw.headersSent) return;
  // In the place of the SDK's own, so that there is one. Streams must not be changed on their way either.
  const headers = { ...Object.fromEntries(response.headers), "cache-control": "no-store, no-transform" };
  raw.writeHead(response.status, headers);
  if (response.body === null) {
    raw.end();
    return;
  }
  const reader = response.body.getReader();
  const gone = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", gone, { once: true });
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (!raw.write(next.value)) await drained(raw, signal);
    }
  } finally {
    signal.removeEventListener("abort", gone);
    raw.end();
  }
}

function drained(raw: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      raw.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    raw.once("drain", done);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}
