/** Upgrades: two WebSockets are admitted by the same checks as a request; all others are refused. */
import type { IncomingMessage, Server } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { WebSocketServer } from "ws";
import type { Millis } from "../../kernel/contract/records.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { cellLinkLimits } from "../../protocol/resources/cell-link.ts";
import { connectCell } from "../../protocol/resources/cells.ts";
import { stream } from "../../protocol/watching/watching.ts";
import { authenticate, type Credentials, isCaller } from "../auth/authenticate.ts";
import type { Readers } from "../auth/may-read.ts";
import type { CellConnections } from "../cells/connections.ts";
import type { Caller, Service } from "../service.ts";
import type { StreamServer } from "../stream/stream.ts";
import type { Connections } from "./connections.ts";
import { type Gate, sendAnswer, sendRaw } from "./edge.ts";
import type { Elsewhere } from "./http.ts";

export interface UpgradeOptions {
  readonly service: Service;
  readonly gate: Gate;
  readonly connections: Connections;
  readonly isLoopback: boolean;
  readonly streams: StreamServer;
  readonly cells: CellConnections;
  readonly isStillKnown: Readers["isStillKnown"];
  /** How often open streams are held against what they were let in with. */
  readonly lookEveryMs: number;
  readonly elsewhere: Elsewhere | null;
  /** What a cell must show beside its key (M10). */
  readonly cellCertificate: "none" | "any" | "named";
}

/** Takes over a socket whose caller is known. */
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller) => void;
interface Admitted {
  readonly caller: Caller;
  readonly operation: typeof stream | typeof connectCell;
}

/** Returns how to stop looking after them. */
export function takeUpgrades(server: Server | SecureServer, options: UpgradeOptions): () => void {
  const endings = new Endings(options);
  const toCells = cellDoor(options);
  server.on("upgrade", (request, socket, head) => {
    // A client that goes away in the middle is none of the server's trouble.
    socket.on("error", () => socket.destroy());
    if (options.elsewhere === null) take(request, socket, head);
    else options.elsewhere.upgrade(request, socket, head, () => take(request, socket, head));
  });
  const take = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const admitted = admit(request, options);
    if (!("caller" in admitted)) {
      options.service.counts.refuse(admitted.code);
      return sendRaw(socket, admitted);
    }
    const connection = options.connections.open.get(request.socket);
    if (connection === undefined || connection.isTaken) return void socket.destroy();
    const full = connection.owner === null ? options.connections.claim(connection, admitted.caller) : null;
    if (full !== null) {
      options.service.counts.refuse(full.code);
      return sendRaw(socket, full);
    }
    endings.watch(socket, request.headers, admitted.caller.until);
    const upgrade: Upgrade = admitted.operation === connectCell ? toCells : options.streams.upgrade;
    upgrade(request, socket, head, admitted.caller);
  };
  server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    sendRaw(socket, noProxy, ["Allow: GET, POST, PUT, DELETE, HEAD, OPTIONS"]);
  });
  server.on("checkExpectation", (request, response) => {
    response.shouldKeepAlive = false;
    sendAnswer(response, options.gate.check(request) ?? noExpectation);
  });
  return () => endings.stop();
}

function cellDoor({ cells, cellCertificate }: UpgradeOptions): Upgrade {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: cellLinkLimits.frameBytesMax,
  });
  return (request, socket, head, caller) => {
    const names = cellCertificate === "named" ? certificateNames(request.socket as TLSSocket) : null;
    server.handleUpgrade(request, socket, head, (webSocket) => cells.accept(webSocket, caller, names));
  };
}

/** Of the certificate that the peer has shown: its common name and its DNS names, as they are written. */
function certificateNames(socket: TLSSocket): readonly string[] {
  const shown = socket.getPeerX509Certificate();
  if (shown === undefined) return [];
  const { CN = [] } = shown.toLegacyObject().subject as { readonly CN?: string | readonly string[] };
  const alternatives = (shown.subjectAltName ?? "")
    .split(", ")
    .flatMap((one) => /^DNS:([\w.-]+)$/.exec(one)?.[1] ?? []);
  return [CN, alternatives].flat(2);
}

interface OpenSocket {
  readonly shown: Credentials;
  ending: NodeJS.Timeout | null;
}

/** The longest that a timer can be set for; the sockets are looked at much more often. */
const timerMsMax = 2 ** 31 - 1;

/**
 * A socket ends at once when its credential does: when its key is deleted or its former secret is no longer good, and at
 * the end of a key or token; soon after another instance took its agent up (A3).
 */
class Endings {
  private readonly options: UpgradeOptions;
  private readonly open = new Map<Duplex, OpenSocket>();
  private readonly timer: NodeJS.Timeout;

  constructor(options: UpgradeOptions) {
    this.options = options;
    options.service.keys.onChange = () => this.look();
    this.timer = setInterval(() => this.look(), options.lookEveryMs);
    this.timer.unref();
  }

  watch(socket: Duplex, shown: Credentials, until: Millis): void {
    const entry: OpenSocket = { shown, ending: null };
    this.open.set(socket, entry);
    this.setEnding(socket, entry, until);
    socket.once("close", () => {
      this.open.delete(socket);
      clearTimeout(entry.ending ?? undefined);
    });
  }

  stop(): void {
    clearInterval(this.timer);
    for (const { ending } of this.open.values()) clearTimeout(ending ?? undefined);
  }

  /** A change of keys can bring an end forward, or move it. */
  private look(): void {
    for (const [socket, entry] of this.open) this.check(socket, entry);
  }

  private check(socket: Duplex, entry: OpenSocket): void {
    const { service, isLoopback, isStillKnown } = this.options;
    if (!isStillKnown(entry.shown)) return void socket.destroy();
    const caller = authenticate(service, entry.shown, isLoopback);
    // While the store is away nobody is known, and nobody is ended.
    if (isCaller(caller)) this.setEnding(socket, entry, caller.until);
  }

  private setEnding(socket: Duplex, entry: OpenSocket, until: Millis): void {
    clearTimeout(entry.ending ?? undefined);
    entry.ending = null;
    const leftMs = until - this.options.service.engine.now();
    if (leftMs > timerMsMax) return;
    entry.ending = setTimeout(() => this.check(socket, entry), Math.max(leftMs, 1));
    entry.ending.unref();
  }
}

function admit(request: IncomingMessage, options: UpgradeOptions): Admitted | Answer {
  const { service, gate, isLoopback, cellCertificate } = options;
  if (service.isClosing) return shuttingDown;
  const turnedAway = gate.check(request);
  if (turnedAway !== null) return turnedAway;
  const [path] = (request.url ?? "").split("?", 1);
  const operation = [stream, connectCell].find((one) => one.path === path);
  if (operation === undefined) return notHere;
  const isAuthorized = (request.socket as Partial<TLSSocket>).authorized === true;
  if (operation === connectCell && cellCertificate !== "none" && !isAuthorized) return noCertificate;
  // A page follows events by GET /v1/events; a socket takes commands, which a cookie alone must not.
  const { cookie: _, ...shown } = request.headers;
  const caller = authenticate(service, shown, isLoopback);
  if (!isCaller(caller)) {
    const address = gate.addressOf(request);
    return (caller.code === "unauthorized" ? service.failedLogins.note(address) : null) ?? caller;
  }
  if (operation.roles !== "anyone" && !operation.roles.includes(caller.actor.role)) {
    return errorAnswer("forbidden", `A key with the role ${caller.actor.role} may not open ${operation.path}.`);
  }
  const elsewhere = service.place === null ? null : service.place.whyElsewhere(operation, {}, caller);
  if (elsewhere !== null) return elsewhere;
  if (!isHandshake(request.headers)) return noHandshake;
  return service.limiter.take(caller.meter) ?? { caller: { ...caller, address: gate.addressOf(request) }, operation };
}

/** Looked at here too, so that a bad one is refused in the words of the wire and not in the library's. */
function isHandshake(headers: IncomingMessage["headers"]): boolean {
  return headers["sec-websocket-version"] === "13" && /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "");
}

const shuttingDown = errorAnswer("shutting_down", "The server is shutting down; try again when it is back.", {
  retry_after_ms: 1_000,
});
const notHere = errorAnswer(
  "not_found",
  "The WebSockets are at /v1/stream, and for cells at /v1/cells/connect; see /openapi.json.",
);
const noHandshake = errorAnswer(
  "invalid_request",
  "This is not a WebSocket handshake; send Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key.",
  { field: "Sec-WebSocket-Key" },
);
const noCertificate = errorAnswer(
  "certificate_required",
  "A cell shows a client certificate of the server's CA here: give it with --tls-cert and --tls-key.",
);
const noProxy = errorAnswer(
  "method_not_allowed",
  "The server is not a proxy; use a method that the Allow header lists.",
);
const noExpectation = errorAnswer(
  "invalid_request",
  "The server knows no such expectation; leave the Expect header out.",
  {
    field: "Expect",
  },
);
