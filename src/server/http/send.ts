/** Writes answers as HTTP: head and body leave in one piece, with no more headers than a client has use for. */
import type { ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Answer } from "../../protocol/answers/answer.ts";

export const jsonType = "application/json; charset=utf-8";

export function sendAnswer(response: ServerResponse, { status, body, retryAfter }: Answer): void {
  // The client may have gone away while its answer was held or committed.
  if (response.destroyed || response.headersSent) return;
  if (status === 204) return sendNothing(response, retryAfter);
  const headers = [
    "Content-Type",
    jsonType,
    "Content-Length",
    String(Buffer.byteLength(body)),
    "Cache-Control",
    "no-store",
  ];
  if (retryAfter !== null) headers.push("Retry-After", String(retryAfter));
  response.writeHead(status, headers);
  response.end(body);
}

/** No content, and so nothing that describes it. */
function sendNothing(response: ServerResponse, retryAfter: number | null): void {
  const headers = ["Cache-Control", "no-store"];
  if (retryAfter !== null) headers.push("Retry-After", String(retryAfter));
  response.writeHead(204, headers);
  response.end();
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
  ]);
  response.end(body);
}

/** For what never became a request: an answer is written to the socket as it stands, and that is the end of it. */
export function sendRaw(socket: Duplex, { status, body, retryAfter }: Answer, headers: readonly string[] = []): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `Content-Type: ${jsonType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
    ...(retryAfter === null ? [] : [`Retry-After: ${retryAfter}`]),
    ...headers,
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
