/** What the gateways that speak HTTP have in common: the listener, the token of a request, typed answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Access, Admission } from "./admission.ts";
import type { Cut, Pass } from "./binding.ts";
import { type AccessFailure, accessStatuses } from "./failure.ts";
import { type Listening, listen } from "./listening.ts";
import { peerProgram } from "./peer-program.ts";
import { resetSocket } from "./reset-socket.ts";

interface HttpHandlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

const headersTimeoutMs = 10_000;
const bearer = /^Bearer (lht1\.[A-Za-z0-9_-]+)$/;

export class HttpListener {
  readonly server: Server;
  /** host:port, once it listens. */
  address: string | null = null;
  private readonly listening: Listening;
  private opening: Promise<void> | null = null;

  constructor(listening: Listening, handlers: HttpHandlers) {
    this.listening = listening;
    // A request may last as long as its lease does; only its head has to come quickly.
    this.server = createServer({ headersTimeout: headersTimeoutMs, requestTimeout: 0, keepAliveTimeout: 30_000 });
    this.server.maxConnections = listening.connectionsMax;
    this.server.on("request", handlers.request);
    this.server.on("checkContinue", handlers.request);
    this.server.on("clientError", (error: NodeJS.ErrnoException, socket) => refuseUnreadable(error, socket));
    this.server.on("upgrade", (request, socket, head) => {
      socket.on("error", () => socket.destroy());
      if (handlers.upgrade !== undefined) handlers.upgrade(request, socket, head);
      else refuseUpgrade(socket, { code: "invalid_request", detail: "Nothing can be upgraded to here." });
    });
  }

  open(): Promise<void> {
    this.opening ??= listen(this.server, this.listening).then(
      (address) => {
        this.address = address;
        // Later errors are of single connections; they must not bring the cell down.
        this.server.on("error", () => {});
      },
      (error) => {
        this.opening = null;
        throw error;
      },
    );
    return this.opening;
  }

  async close(): Promise<void> {
    if (this.address === null) return;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }
}

/** `Leasehold-Token` is for those whose service needs Authorization for itself. */
export function tokenOf({ headers }: IncomingMessage): string | null {
  const own = headers["leasehold-token"];
  if (own !== undefined) return typeof own === "string" ? own : null;
  return bearer.exec(headers.authorization ?? "")?.[1] ?? null;
}

export function admitRequest(
  admission: Admission,
  request: IncomingMessage,
  asked: Access,
  cut: Cut,
): Pass | AccessFailure {
  return admission.admit(tokenOf(request), { ...asked, program: () => peerProgram(request.socket) }, cut);
}

/** The typed failure if the answer has not begun; else the connection is cut. */
export function answerFailure(response: ServerResponse, failure: AccessFailure): void {
  if (response.headersSent || response.destroyed) return resetConnection(response);
  const body = failureText(failure);
  // The rest of a request's body is not waited for.
  response.shouldKeepAlive = response.shouldKeepAlive && response.req.complete;
  response.writeHead(accessStatuses[failure.code], {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...(failure.code === "token_invalid" ? { "www-authenticate": "Bearer" } : {}),
  });
  response.end(body);
}

export function resetConnection(response: ServerResponse): void {
  resetSocket(response.req.socket);
}

/**
 * Calls once when an answer is over, or will never be. Its own "close" is not enough: an answer that waits for an
 * earlier one on the same connection gets no event when that connection closes. Returns a function that unsubscribes.
 */
export function whenOver(response: ServerResponse, act: () => void): () => void {
  const { socket } = response.req;
  const cancel = (): void => {
    socket.off("close", over);
    response.off("close", over);
  };
  const over = (): void => {
    cancel();
    act();
  };
  socket.on("close", over);
  response.on("close", over);
  if (socket.destroyed) over();
  return cancel;
}

export function refuseUpgrade(socket: Duplex, failure: AccessFailure): void {
  if (!socket.writable) return void socket.destroy();
  const body = failureText(failure);
  const head = `HTTP/1.1 ${accessStatuses[failure.code]} Refused\r\nContent-Type: application/json\r\n`;
  socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
}

/** G9: a malformed request gets a typed answer too, unless it would land in the middle of another. */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Duplex & { _httpMessage?: ServerResponse | null },
): void {
  if (error.code === "ECONNRESET" || socket._httpMessage?.headersSent === true) socket.destroy();
  else refuseUpgrade(socket, { code: "invalid_request", detail: "The request is not well-formed HTTP." });
}

function failureText({ code, detail, caveat }: AccessFailure): string {
  return JSON.stringify({ error: code, detail, caveat });
}

/** The path of a request in the one form that can be compared; null for what has no such form. */
export function plainPathOf({ url = "" }: IncomingMessage): string | null {
  const at = url.indexOf("?");
  const raw = at < 0 ? url : url.slice(0, at);
  if (raw === "/") return raw;
  if (!raw.startsWith("/")) return null;
  const segments = raw.slice(1).split("/").map(decodeSegment);
  return segments.includes(null) ? null : `/${segments.join("/")}`;
}

export function queryOf({ url = "" }: IncomingMessage): URLSearchParams {
  const at = url.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
}

/** Whatever two programs could understand differently is refused: encoded slashes, dots, controls, broken UTF-8. */
function decodeSegment(segment: string): string | null {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    return null;
  }
  const isPlain = text !== "" && text !== "." && text !== ".." && !/[/\\%]|[^ -~\u0080-\uffff]/.test(text);
  return isPlain ? text : null;
}
