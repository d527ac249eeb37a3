/**
 * A server that does not lead passes every request whole to the one that does: bodies, held answers, event streams,
 * upgrades, with back-pressure. It decides nothing but who may come in by Host and Origin. A request that was passed on
 * once is not passed on again, so there are no loops.
 *
 * Each connection of a client has one of its own to the leader, which ends with it. So the leader counts connections of
 * tenants and of strangers as if they had come to it, and no client's bytes ever stand on a connection before another's.
 */
import {
  Agent,
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { request as httpsRequest, Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Answer, answerJson, errorAnswer } from "../../protocol/answers/answer.ts";
import { isLoopback } from "../../trust/loopback.ts";
import { pipelinedMax } from "../http/connections.ts";
import { type Gate, sendAnswer, sendRaw } from "../http/edge.ts";
import { type HandOver, passedOnHeader } from "../http/hand-over.ts";

export interface PassOnOptions {
  /** Where a shard's leader is; null: nobody leads it, or nobody knows where. */
  readonly leaderUrl: (shard: number) => string | null;
  /** Which shard's leader a request is for. */
  readonly route: (request: IncomingMessage) => number | Promise<number>;
  readonly gate: Gate;
  readonly server: ServerOptions;
  /** The certificates that a leader's is checked against, beside the usual ones. */
  readonly ca: string | null;
  /** How the leader learns who the client is. */
  readonly handOver: HandOver;
}

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
/** Where a page is from was checked here, against the name that the browser knows this server by; framing is said again. */
const checkedHeaders = new Set([
  "content-length",
  "host",
  "sec-fetch-site",
  "sec-fetch-mode",
  "sec-fetch-dest",
  passedOnHeader,
]);
export const noLeader = errorAnswer("no_leader", "No server leads at the moment; try again.", {
  retry_after_ms: 1_000,
});
/** S2: the leader may have done it, and have lost its connection or its lease before the answer left. */
const outcomeUnknown = errorAnswer(
  "database_unavailable",
  "The server that leads did not answer, and what became of this is not known; try again, with the same request_id.",
  { retry_after_ms: 1_000 },
);
const tooManyPipelined = errorAnswer(
  "too_many_in_flight",
  `At most ${pipelinedMax} requests of a connection may wait for the answers before them; read those first.`,
);

export interface PassOn {
  /** Takes connections of clients that no term of this server takes. */
  readonly server: Server;
  leaderUrl(shard: number): string | null;
  /** Passes one request on, from whichever server it came to. */
  request(request: IncomingMessage, response: ServerResponse, shard: number): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, shard: number): void;
  close(): void;
}

/** How often it is asked whether another server leads than the one that answers are awaited from. */
const lookMs = 250;

export function createPassOn(options: PassOnOptions): PassOn {
  const clients = new Map<Socket, Client>();
  /** What is under way, by the shard and the address that it was sent to. */
  const underWay = new Map<Duplex | ClientRequest, { readonly shard: number; readonly origin: string }>();
  const track = (one: Duplex | ClientRequest, { origin }: URL, shard: number): void => {
    underWay.set(one, { shard, origin });
    one.once("close", () => underWay.delete(one));
  };
  // One that is deposed answers nothing any more, and if it is paused or cut off it does not say so either.
  const looking = setInterval(() => {
    const origins = new Map<number, string | null>();
    for (const [one, { shard, origin }] of underWay) {
      let leader = origins.get(shard);
      if (leader === undefined) {
        const url = options.leaderUrl(shard);
        leader = url === null ? null : new URL(url).origin;
        origins.set(shard, leader);
      }
      if (leader !== null && leader !== origin) one.destroy();
    }
  }, lookMs);
  looking.unref();
  const clientOf = (socket: Socket): Client => {
    const known = clients.get(socket);
    if (known !== undefined) return known;
    const client: Client = { agents: new Map(), underWay: 0 };
    clients.set(socket, client);
    socket.once("close", () => {
      for (const agent of client.agents.values()) agent.destroy();
      clients.delete(socket);
    });
    return client;
  };
  const agentTo = ({ agents }: Client, { protocol }: URL, shard: number): Agent | SecureAgent => {
    const name = `${protocol} ${shard}`;
    const known = agents.get(name);
    if (known !== undefined) return known;
    const one = { keepAlive: true, maxSockets: 1 };
    const ca = options.ca === null ? {} : { ca: options.ca };
    const agent = protocol === "https:" ? new SecureAgent({ ...one, ...ca }) : new Agent(one);
    agents.set(name, agent);
    return agent;
  };
  const target = (request: IncomingMessage, shard: number): URL | Answer => {
    const refused = options.gate.check(request);
    if (refused !== null) return refused;
    const url = options.leaderUrl(shard);
    return url === null || request.headers[passedOnHeader] !== undefined ? noLeader : new URL(url);
  };
  const send = (request: IncomingMessage, to: URL, shard: number, more: Readonly<Record<string, string>>) => {
    const isSecure = to.protocol === "https:";
    const headers = headersFor(request, to, shard, options);
    return (isSecure ? httpsRequest : httpRequest)({
      ...{ host: to.hostname.replace(/^\[|\]$/g, ""), port: to.port || (isSecure ? 443 : 80) },
      ...{ method: request.method, path: request.url, headers: { ...headers, ...more } },
      agent: agentTo(clientOf(request.socket), to, shard),
    });
  };
  const passRequest = (request: IncomingMessage, response: ServerResponse, shard: number): void => {
    const to = target(request, shard);
    if (!(to instanceof URL)) return void refuse(request, response, to);
    const client = clientOf(request.socket);
    if (client.underWay >= pipelinedMax) {
      response.shouldKeepAlive = false;
      return void sendAnswer(response, tooManyPipelined);
    }
    client.underWay++;
    const passed = send(request, to, shard, framingOf(request));
    track(passed, to, shard);
    passed.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders.length > 0 ? endToEnd(answer.rawHeaders) : []);
      // At once: an event stream's head is what its reader waits for.
      response.flushHeaders();
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    let isSent = false;
    const noteSent = (): void => {
      isSent = true;
    };
    passed.on("socket", (socket) => {
      // A connection that was used before is there already.
      if (socket.connecting) socket.once(to.protocol === "https:" ? "secureConnect" : "connect", noteSent);
      else noteSent();
    });
    passed.on("error", () => {
      if (response.headersSent) response.destroy();
      else refuse(request, response, isSent && mayChange(request) ? outcomeUnknown : noLeader);
    });
    response.on("close", () => {
      client.underWay--;
      // What is whole leaves the connection to the next request.
      if (!(response.writableFinished && request.complete)) passed.destroy();
    });
    request.pipe(passed);
  };
  const passUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, shard: number): void => {
    const to = target(request, shard);
    if (!(to instanceof URL)) return sendRaw(socket, to);
    const passed = send(request, to, shard, { connection: "Upgrade", upgrade: String(request.headers.upgrade) });
    track(passed, to, shard);
    passed.on("upgrade", (answer, far, first) => {
      underWay.delete(passed);
      track(far, to, shard);
      join(socket, head, far, first, rawHead(answer));
    });
    passed.on("response", (answer) => {
      socket.write(rawHead(answer));
      answer.pipe(socket);
    });
    passed.on("error", () => sendRaw(socket, noLeader));
    socket.on("close", () => passed.destroy());
    passed.end();
  };
  const server = createServer(options.server, (request, response) => {
    onRoute(options.route(request), (shard) => {
      if (request.socket.destroyed) return;
      const own = ownAnswer(request, options.leaderUrl(shard));
      if (own !== null) refuse(request, response, own);
      else passRequest(request, response, shard);
    });
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    onRoute(options.route(request), (shard) => {
      if (!request.socket.destroyed) passUpgrade(request, socket, head, shard);
    });
  });
  return {
    server,
    leaderUrl: options.leaderUrl,
    request: passRequest,
    upgrade: passUpgrade,
    close: () => {
      clearInterval(looking);
      server.closeAllConnections();
      for (const { agents } of clients.values()) for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** At once where it is known. */
function onRoute(found: number | Promise<number>, then: (shard: number) => void): void {
  if (typeof found === "number") then(found);
  else void found.then(then);
}

/** A connection of a client, with one of its own to the leader of each shard that it has asked for. */
interface Client {
  /** By protocol and shard: the other side takes a connection for one shard. */
  readonly agents: Map<string, Agent | SecureAgent>;
  /** Requests whose answers have not left. */
  underWay: number;
}

/** Whether this process is there is its own to say; whether it can serve, too. */
function ownAnswer({ method, url }: IncomingMessage, leaderUrl: string | null): Answer | null {
  if (method !== "GET" && method !== "HEAD") return null;
  if (url === "/healthz") return answerJson(200, { status: "ok" });
  return url === "/readyz" && leaderUrl === null ? noLeader : null;
}

function mayChange({ method }: IncomingMessage): boolean {
  return method !== "GET" && method !== "HEAD" && method !== "OPTIONS";
}

function refuse(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // What is left of the body belongs to no request that is read here.
  if (!request.complete) response.shouldKeepAlive = false;
  sendAnswer(response, answer);
}

/**
 * How the body is framed is said here, for every method: Node writes the body of a GET, DELETE or OPTIONS without any
 * framing if nothing says so, and the leader would take it for the next request.
 */
function framingOf({ headers }: IncomingMessage): Record<string, string> {
  const { "transfer-encoding": encoding, "content-length": length } = headers;
  if (encoding !== undefined) return { "transfer-encoding": "chunked" };
  return length === undefined ? {} : { "content-length": length };
}

function headersFor(
  request: IncomingMessage,
  to: URL,
  shard: number,
  { gate, handOver }: PassOnOptions,
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !ownHeaders.has(name) && !checkedHeaders.has(name)) headers[name] = value;
  const { "x-forwarded-for": before, origin } = request.headers;
  // This server's own page is nobody's elsewhere. One that was allowed beside it stays that: it has no session (CSRF).
  if (origin !== undefined && !gate.lets(origin)) delete headers["origin"];
  const address = request.socket.remoteAddress ?? "";
  // Who calls from this machine is trusted as this machine is; everybody else comes through a proxy.
  if (!isLoopback(address)) headers["x-forwarded-for"] = before === undefined ? address : `${before}, ${address}`;
  headers["host"] = to.host;
  headers[passedOnHeader] = handOver.say(request, gate.addressOf(request) ?? "", shard);
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
