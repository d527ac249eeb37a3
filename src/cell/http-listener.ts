/** What the gateways that speak HTTP have in common: the listener, the token of a request, typed answers. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { gatewayStatuses } from "../protocol/resources/gateway-codes.ts";
import type { ReloadingTls } from "../trust/server-tls.ts";
import type { Access, Admission, Admitted } from "./admission.ts";
import type { Cut } from "./binding.ts";
import { type AccessFailure, failureText } from "./failure.ts";
import { type Listening, listen } from "./listening.ts";
import { closeWith, noteCarriers, resetSocket } from "./reset-socket.ts";

interface HttpHandlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void;
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

const headersTimeoutMs = 10_000;
/** How often Node looks for those that are late; its own default would let a silent connection stay for 40 s. */
const checkingMs = 1_000;
/** Requests of one connection that are not answered yet. */
const pipelinedMax = 32;
/** Each of them listens for the end of the connection, some several times. */
const listenersMax = 10 * pipelinedMax;
const bearer = /^Bearer (lht1\.[A-Za-z0-9_-]+)$/;

export class HttpListener {
  readonly server: Server | SecureServer;
  /** host:port, once it listens. */
  address: string | null = null;
  private readonly listening: Listening;
  private readonly tls: ReloadingTls | null;
  private opening: Promise<void> | null = null;

  constructor(listening: Listening, tls: ReloadingTls | null, handlers: HttpHandlers, headersMs = headersTimeoutMs) {
    this.listening = listening;
    this.tls = tls;
    // A request may last as long as its lease does; only its head has to come quickly.
    const options = {
      headersTimeout: headersMs,
      connectionsCheckingInterval: Math.min(checkingMs, headersMs),
      requestTimeout: 0,
      keepAliveTimeout: 30_000,
    };
    this.server = tls === null ? createServer(options) : createSecureServer({ ...options, ...tls.options });
    if (tls !== null) noteCarriers(this.server);
    this.server.maxConnections = listening.connectionsMax;
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      if (hasRoom(request.socket, response)) handlers.request(request, response);
      else resetSocket(request.socket);
    };
    this.server.on("connection", (socket) => socket.setMaxListeners(listenersMax));
    this.server.on("request", serve);
    this.server.on("checkContinue", serve);
    this.server.on("clientError", (error: NodeJS.ErrnoException, socket) => refuseUnreadable(error, socket));
    this.server.on("connect", (_request, socket) => {
      socket.on("error", () => socket.destroy());
      refuseUpgrade(socket, { code: "method_not_allowed", detail: "A gateway is not a proxy for CONNECT." });
    });
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
        if (this.tls !== null && "setSecureContext" in this.server) this.tls.watch(this.server);
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

  /** Where holders reach it. */
  get url(): string {
    return `${this.tls === null ? "http" : "https"}://${this.address}`;
  }

  async close(): Promise<void> {
    if (this.tls !== null && "setSecureContext" in this.server) this.tls.unwatch(this.server);
    if (this.address === null) return;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }
}

const underWay = new WeakMap<Socket, number>();

/** S4: requests that are pipelined are all forwarded at once, so one connection would be as good as any number. */
function hasRoom(socket: Socket, response: ServerResponse): boolean {
  const count = (underWay.get(socket) ?? 0) + 1;
  underWay.set(socket, count);
  response.once("close", () => underWay.set(socket, (underWay.get(socket) ?? 1) - 1));
  return count <= pipelinedMax;
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
): Admitted | Promise<Admitted> {
  return admission.admitFrom(request.socket, tokenOf(request), asked, cut);
}

/** The typed failure if the answer has not begun; else the connection is cut. */
export function answerFailure(response: ServerResponse, failure: AccessFailure): void {
  if (response.headersSent || response.destroyed) return resetConnection(response);
  const body = failureText(failure);
  // The rest of a request's body is not waited for.
  response.shouldKeepAlive = response.shouldKeepAlive && response.req.complete;
  response.writeHead(gatewayStatuses[failure.code], {
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
  const body = failureText(failure);
  const head = `HTTP/1.1 ${gatewayStatuses[failure.code]} Refused\r\nContent-Type: application/json\r\n`;
  closeWith(socket, `${head}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
}

/** G9: a malformed request gets a typed answer too, unless it would land in the middle of another. */
function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Duplex & { _httpMessage?: ServerResponse | null },
): void {
  if (error.code === "ECONNRESET" || socket._httpMessage?.headersSent === true) socket.destroy();
  else if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    refuseUpgrade(socket, { code: "request_timeout", detail: "The head of the request did not come in time." });
  } else refuseUpgrade(socket, { code: "invalid_request", detail: "The request is not well-formed HTTP." });
}
