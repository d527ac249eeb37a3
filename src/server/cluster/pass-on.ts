/**
 * A server that does not lead passes every request whole to the one that does: bodies, held answers, event streams,
 * upgrades, with back-pressure. It decides nothing but who may come in by Host and Origin. A request that was passed on
 * once is not passed on again, so there are no loops.
 */
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import {
  createServer as createSecureServer,
  request as httpsRequest,
  Agent as SecureAgent,
  type Server as SecureServer,
} from "node:https";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import { type Answer, answerJson, errorAnswer } from "../../protocol/answers/answer.ts";
import { isLoopback } from "../../trust/loopback.ts";
import { type Gate, sendAnswer, sendRaw } from "../http/edge.ts";

export interface PassOnOptions {
  /** Where the leader is; null: nobody leads, or nobody knows where. */
  readonly leaderUrl: () => string | null;
  readonly gate: Gate;
  readonly server: ServerOptions;
  readonly tls: TlsOptions | null;
  /** The certificates that a leader's is checked against, beside the usual ones. */
  readonly ca: string | null;
}

/** Says that a request was passed on. A leader takes it as any other. */
export const passedOnHeader = "leasehold-passed-on";
/** These are about one connection only (RFC 9110, 7.6.1); the others reach the leader. */
const ownHeaders = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** A page's origin was checked here, against the name that the browser knows this server by. */
const checkedHeaders = new Set([
  "host",
  "origin",
  "sec-fetch-site",
  "sec-fetch-mode",
  "sec-fetch-dest",
  passedOnHeader,
]);
const noLeader = errorAnswer("no_leader", "No server leads at the moment; try again.", { retry_after_ms: 1_000 });

export interface PassOn {
  readonly server: Server | SecureServer;
  close(): void;
}

export function createPassOn(options: PassOnOptions): PassOn {
  const agents = {
    "http:": new Agent({ keepAlive: true }),
    "https:": new SecureAgent({ keepAlive: true, ...(options.ca !== null && { ca: options.ca }) }),
  };
  const target = (request: IncomingMessage): URL | Answer => {
    const refused = options.gate.check(request);
    if (refused !== null) return refused;
    const url = options.leaderUrl();
    return url === null || request.headers[passedOnHeader] !== undefined ? noLeader : new URL(url);
  };
  const send = (request: IncomingMessage, to: URL, more: Readonly<Record<string, string>>) => {
    const isSecure = to.protocol === "https:";
    return (isSecure ? httpsRequest : httpRequest)({
      ...{ host: to.hostname.replace(/^\[|\]$/g, ""), port: to.port || (isSecure ? 443 : 80) },
      ...{ method: request.method, path: request.url, headers: { ...headersFor(request, to), ...more } },
      agent: isSecure ? agents["https:"] : agents["http:"],
    });
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const own = ownAnswer(request, options.leaderUrl());
    const to = own ?? target(request);
    if (!(to instanceof URL)) return void refuse(request, response, to);
    const passed = send(request, to, {});
    passed.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders.length > 0 ? endToEnd(answer.rawHeaders) : []);
      // At once: an event stream's head is what its reader waits for.
      response.flushHeaders();
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    passed.on("error", () => {
      if (response.headersSent) response.destroy();
      else refuse(request, response, noLeader);
    });
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  };
  const server =
    options.tls === null
      ? createServer(options.server, handle)
      : createSecureServer({ ...options.server, ...options.tls }, handle);
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const to = target(request);
    if (!(to instanceof URL)) return sendRaw(socket, to);
    const passed = send(request, to, { connection: "Upgrade", upgrade: String(request.headers.upgrade) });
    passed.on("upgrade", (answer, far, first) => join(socket, head, far, first, rawHead(answer)));
    passed.on("response", (answer) => {
      socket.write(rawHead(answer));
      answer.pipe(socket);
    });
    passed.on("error", () => sendRaw(socket, noLeader));
    socket.on("close", () => passed.destroy());
    passed.end();
  });
  return {
    server,
    close: () => {
      server.closeAllConnections();
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** Whether this process is there is its own to say; whether it can serve, too. */
function ownAnswer({ method, url }: IncomingMessage, leaderUrl: string | null): Answer | null {
  if (method !== "GET" && method !== "HEAD") return null;
  if (url === "/healthz") return answerJson(200, { status: "ok" });
  return url === "/readyz" && leaderUrl === null ? noLeader : null;
}

function refuse(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // What is left of the body belongs to no request that is read here.
  if (!request.complete) response.shouldKeepAlive = false;
  sendAnswer(response, answer);
}

function headersFor(request: IncomingMessage, to: URL): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !ownHeaders.has(name) && !checkedHeaders.has(name)) headers[name] = value;
  const { "x-forwarded-for": before } = request.headers;
  const address = request.socket.remoteAddress ?? "";
  // Who calls from this machine is trusted as this machine is; everybody else comes through a proxy.
  if (!isLoopback(address)) headers["x-forwarded-for"] = before === undefined ? address : `${before}, ${address}`;
  headers["host"] = to.host;
  headers[passedOnHeader] = "1";
  return headers;
}

/** As name, value, name, value. */
function endToEnd(raw: readonly string[]): string[] {
  return raw.filter((_, index) => !ownHeaders.has((raw[index - (index % 2)] ?? "").toLowerCase()));
}

function rawHead({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Two sockets as one; the end of either ends both. */
function join(near: Duplex, nearFirst: Buffer, far: Duplex, farFirst: Buffer, head: string): void {
  near.write(head);
  if (farFirst.length > 0) near.write(farFirst);
  if (nearFirst.length > 0) far.write(nearFirst);
  near.pipe(far);
  far.pipe(near);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
}
