/** What leads out of plain HTTP: the stream's WebSocket is let through the same door as a request; the rest is not. */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { type Answer, errorAnswer } from "../protocol/answer.ts";
import { stream as operation } from "../protocol/operations/watching.ts";
import type { Gate } from "./gate.ts";
import { authenticate, type Credentials, isCaller, shownIn } from "./keys.ts";
import type { Readers } from "./readers.ts";
import { sendAnswer, sendRaw } from "./send.ts";
import type { Caller, Service } from "./service.ts";
import type { StreamServer } from "./stream.ts";

export interface UpgradeOptions {
  readonly service: Service;
  readonly gate: Gate;
  readonly isLoopback: boolean;
  readonly streams: StreamServer;
  readonly isStillKnown: Readers["isStillKnown"];
  /** How often open streams are held against what they were let in with. */
  readonly lookEveryMs: number;
  readonly isClosing: () => boolean;
}

/** Returns how to stop looking after them. */
export function takeUpgrades(server: Server, options: UpgradeOptions): () => void {
  const open = new Map<Duplex, Credentials>();
  server.on("upgrade", (request, socket, head) => {
    // A client that goes away in the middle is none of the server's trouble.
    socket.on("error", () => socket.destroy());
    const caller = admit(request, options);
    if (!isCaller(caller)) {
      options.service.tally.refuseWith(caller);
      return sendRaw(socket, caller);
    }
    open.set(socket, shownIn(request));
    socket.once("close", () => open.delete(socket));
    options.streams.upgrade(request, socket, head, caller);
  });
  server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    sendRaw(socket, noProxy, ["Allow: GET, POST, PUT, DELETE, HEAD, OPTIONS"]);
  });
  server.on("checkExpectation", (_request, response) => {
    response.shouldKeepAlive = false;
    sendAnswer(response, noExpectation);
  });
  return endUnknown(open, options);
}

/** A stream ends at once when its key is deleted, and soon after another instance took its agent up (A3). */
function endUnknown(open: ReadonlyMap<Duplex, Credentials>, { service, isStillKnown, lookEveryMs }: UpgradeOptions) {
  const look = (): void => {
    for (const [socket, shown] of open) if (!isStillKnown(shown)) socket.destroy();
  };
  service.keys.onChange = look;
  const timer = setInterval(look, lookEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}

function admit(request: IncomingMessage, { service, gate, isLoopback, isClosing }: UpgradeOptions): Caller | Answer {
  if (isClosing()) return shuttingDown;
  const turnedAway = gate.check(request);
  if (turnedAway !== null) return turnedAway;
  const [path] = (request.url ?? "").split("?", 1);
  if (path !== operation.path) return notHere;
  const caller = authenticate(service, shownIn(request), isLoopback);
  if (!isCaller(caller)) return caller;
  if (operation.roles !== "anyone" && !operation.roles.includes(caller.actor.role)) return notAllowed;
  if (!isHandshake(request.headers)) return noHandshake;
  return service.limiter.take(caller.meter) ?? caller;
}

/** Looked at here too, so that a bad one is refused in the words of the wire and not in the library's. */
function isHandshake(headers: IncomingMessage["headers"]): boolean {
  return headers["sec-websocket-version"] === "13" && /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "");
}

const shuttingDown = errorAnswer("shutting_down", "The server is shutting down; try again when it is back.", {
  retry_after_ms: 1_000,
});
const notHere = errorAnswer("not_found", "The WebSocket is at /v1/stream; see /openapi.json.");
const notAllowed = errorAnswer("forbidden", "A key with this role may not open the stream.");
const noHandshake = errorAnswer(
  "invalid_request",
  "This is no WebSocket handshake; send Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key.",
  { field: "Sec-WebSocket-Key" },
);
const noProxy = errorAnswer("method_not_allowed", "The server is no proxy; use a method that the Allow header lists.");
const noExpectation = errorAnswer(
  "invalid_request",
  "The server knows no such expectation; leave the Expect header out.",
  {
    field: "Expect",
  },
);
