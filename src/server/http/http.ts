/**
 * HTTP: fastify finds the route and reads the body; the rest is the operation's. One route for each method and path, its
 * input checked by the operation's schemas, its answer encoded when it is written.
 */
import { isUtf8 } from "node:buffer";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { type Answer, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import { readHttp } from "../../protocol/http/http-input.ts";
import type { RawQuery } from "../../protocol/http/query-string.ts";
import type { Operation, Route } from "../../protocol/operation.ts";
import { operations } from "../../protocol/operations.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { takesTraceparent, withTraceparent } from "../../protocol/tasks/traceparent.ts";
import { Refused } from "../answering/faults.ts";
import { authenticate } from "../auth/authenticate.ts";
import type { Meter } from "../auth/rate-limit.ts";
import { csrfHeader, isSame } from "../auth/sessions.ts";
import { dispatch } from "../dispatch.ts";
import { legivellumPaths, mcpMethods, mcpPaths } from "../mcp/routes.ts";
import type { Caller, Service } from "../service.ts";
import { type Connections, pipelinedMax } from "./connections.ts";
import { type Gate, sendAnswer, sendRaw } from "./edge.ts";
import { answerForError, answerForParserError } from "./errors.ts";
import { answerUnrouted, pagePaths, takesHead } from "./unrouted.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Set before the body is read. */
    caller: Caller | null;
  }
}

/** An operation that the edge serves itself. */
export type EdgeHandler = (request: FastifyRequest, reply: FastifyReply) => void;

export interface HttpOptions {
  readonly service: Service;
  readonly gate: Gate;
  readonly connections: Connections;
  /** By the names of their operations, and `page` for what is at `/`. */
  readonly edges: Readonly<Record<string, EdgeHandler>>;
  /** Serves `/mcp` and what is below it. */
  readonly mcp: EdgeHandler;
  /** Whether the server listens on loopback only, and so needs no keys (S5). */
  readonly isLoopback: boolean;
  readonly server: ServerOptions;
  /** null: plain HTTP. */
  readonly tls: TlsOptions | null;
  /** Takes requests that are another shard's; null: there is one shard. */
  readonly elsewhere: Elsewhere | null;
  readonly log: { error(details: object, message: string): void };
}

/** Passes on what another shard decides, and gives back what is its own. */
export interface Elsewhere {
  request(request: IncomingMessage, response: ServerResponse, own: () => void): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, own: () => void): void;
}

export interface Http {
  readonly app: FastifyInstance;
  readonly server: Server | SecureServer;
}

export function createHttp(options: HttpOptions): Http {
  let made: Server | SecureServer | undefined;
  const app = fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    exposeHeadRoutes: false,
    genReqId: () => "",
    // A path's parameters are as long as the head allows; their own limits are the schemas'.
    routerOptions: { maxParamLength: 16_384 },
    frameworkErrors: (error, _request, reply) => refuse(options, reply, answerForError(error, options.log)),
    clientErrorHandler: (error, socket) => {
      const answer = answerForParserError(error, socket);
      if (answer === null) socket.destroy();
      else sendRaw(socket, answer);
    },
    serverFactory: (handler) => {
      const { server, tls, elsewhere } = options;
      const take: typeof handler =
        elsewhere === null
          ? handler
          : (request, response) => elsewhere.request(request, response, () => handler(request, response));
      made = tls === null ? createServer(server, take) : createSecureServer({ ...server, ...tls }, take);
      return made;
    },
  });
  app.decorateRequest("caller", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>("application/json", { parseAs: "buffer" }, bodyParser(options.service));
  app.setErrorHandler((error, _request, reply) => refuse(options, reply, answerForError(error, options.log)));
  app.register((scope, _options, done) => {
    refuseUnrouted(scope, options);
    done();
  });
  for (const operation of operations) {
    for (const route of [operation, ...operation.also]) addRoute(app, options, operation, route);
  }
  for (const url of mcpPaths) addMcpRoute(app, options, url);
  const { page } = options.edges;
  if (page !== undefined) {
    const onRequest = admission(options, "anyone");
    for (const url of pagePaths) app.route({ method: ["GET", "HEAD"], url, onRequest, handler: page });
  }
  if (made === undefined) throw new TypeError("fastify has not made its server");
  return { app, server: made };
}

/**
 * Without a route there is nothing that a body could be for: the answer comes before any of it is read. A hook of a scope
 * with no routes runs for nothing else.
 */
function refuseUnrouted(scope: FastifyInstance, options: HttpOptions): void {
  const admit = admission(options, "anyone");
  scope.addHook("onRequest", (request, reply) => {
    admit(request, reply, () => {
      if (hasBody(request.raw)) reply.raw.shouldKeepAlive = false;
      answerUnrouted(request.raw, reply.raw, options.gate, options.service.counts);
    });
  });
  scope.setNotFoundHandler(() => {
    throw new TypeError("an unrouted request is answered before its handler");
  });
}

function addRoute(app: FastifyInstance, options: HttpOptions, operation: Operation, route: Route): void {
  const { method, path } = route;
  const handler =
    operation.kind === "edge" ? edgeHandlerFor(options, operation) : handlerFor(options, operation, route);
  const described = {
    method: takesHead(operation, method) ? ["GET", "HEAD"] : method,
    url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
    onRequest: admission(options, operation.roles === "anyone" ? "anyone" : "known"),
    handler,
  };
  if (!operation.takesBytes) {
    app.route(described);
    return;
  }
  // Its body is bytes of any type, which the handler reads itself; the parsers are of this route alone.
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, parsed) => parsed(null));
    scope.route(described);
    done();
  });
}

/** MCP has its own errors for a body that it cannot read, so it gets the bytes. */
function addMcpRoute(app: FastifyInstance, options: HttpOptions, url: string): void {
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, parsed) => parsed(null, body));
    const whom = legivellumPaths.some((path) => path === url) ? "named later" : "known";
    scope.route({ method: [...mcpMethods], url, onRequest: admission(options, whom), handler: options.mcp });
    done();
  });
}

/** Edge operations never reach the kernel, so the caller's role is checked here. */
function edgeHandlerFor({ edges, service }: HttpOptions, operation: Operation): EdgeHandler {
  const { name, roles } = operation;
  const handler = edges[name];
  if (handler === undefined) throw new TypeError(`${name} has no handler`);
  if (roles === "anyone") return handler;
  return (request, reply) => {
    const { caller } = request;
    const role = caller?.actor.role;
    if (caller !== null && roles.includes(caller.actor.role)) {
      const elsewhere = service.place === null ? null : service.place.whyElsewhere(operation, {}, caller);
      return elsewhere === null ? handler(request, reply) : void sendAnswer(reply.raw, elsewhere);
    }
    service.counts.refuse("forbidden");
    sendAnswer(reply.raw, errorAnswer("forbidden", `A key with the role ${role} may not do this.`));
  };
}

function handlerFor({ service, gate }: HttpOptions, operation: Operation, route: Route): EdgeHandler {
  const takesBody = route.body !== null;
  const isTraced = takesTraceparent(operation);
  return (request, reply) => {
    const { raw } = reply;
    const { params, caller } = request;
    const body = takesBody || request.body !== undefined ? request.body : hasBody(request.raw) || undefined;
    if (caller === null) throw new TypeError("admission comes before the handler");
    const read = readHttp(operation, route, { params, query: request.query as RawQuery, body });
    if (!read.ok) {
      service.counts.refuse(read.code);
      return void sendAnswer(raw, faultAnswer(read));
    }
    const sender = operation.isAudited ? { ...caller, address: gate.addressOf(request.raw) } : caller;
    const { traceparent } = request.headers;
    const input = isTraced && traceparent !== undefined ? withTraceparent(read.value, traceparent) : read.value;
    const drop = dispatch(service, operation, input, sender, sendAnswer.bind(null, raw));
    // The answer may be held; it is dropped if the client goes away (W8).
    if (drop !== null) raw.once("close", drop);
  };
}

/**
 * Before the body is read: whether the caller may come in, as whom, and how often. Programs of LegiVellum may show their
 * credential in `X-API-Key`, or only in the arguments of a call: then the handler asks who it is ("named later").
 */
function admission(options: HttpOptions, whom: "anyone" | "known" | "named later") {
  const { service, gate, isLoopback, connections } = options;
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { raw } = request;
    const { headers } = raw;
    const connection = connections.open.get(raw.socket);
    // Nothing is served behind an event stream, whose answer never ends, nor on a connection that was refused.
    if (connection === undefined || connection.isTaken) return void raw.socket.destroy();
    if (service.isClosing) {
      reply.raw.shouldKeepAlive = false;
      return refuse(options, reply, shuttingDown);
    }
    const turnedAway = gate.check(raw);
    if (turnedAway !== null) return refuse(options, reply, turnedAway);
    // Without a socket of its own, it waits for the answer before it to leave.
    if (reply.raw.socket === null && !connections.pipeline(connection, reply.raw))
      return refuseLast(options, reply, tooManyPipelined);
    if (headers.origin !== undefined && gate.lets(headers.origin)) letPageRead(reply, headers.origin);
    const apiKey = headers["x-api-key"];
    // Its body has to be parsed to know who it is from, so an address that failed too often comes no further.
    if (whom === "named later") {
      const tooMany = service.failedLogins.note(gate.addressOf(raw), 0);
      if (tooMany !== null) return refuseLast(options, reply, tooMany);
    }
    if (whom === "known" || (whom === "named later" && (headers.authorization ?? apiKey) !== undefined)) {
      const isApiKey = whom === "named later" && headers.authorization === undefined;
      const shown = isApiKey ? { ...headers, authorization: `Bearer ${String(apiKey)}` } : headers;
      const found = authenticate(service, shown, isLoopback);
      if (!("actor" in found)) return refuseStranger(options, reply, found);
      if (found.csrf !== undefined && !isOfOwnPage(raw, gate, found.csrf)) return refuse(options, reply, csrfFailed);
      if (connection.owner === null) {
        const full = connections.claim(connection, found);
        if (full !== null) return refuseLast(options, reply, full);
      }
      // The body is not read yet, but its length is known.
      const { "content-length": length } = headers;
      const cost = length === undefined ? 1 : 1 + Math.floor(Number(length) / limits.bytesPerRequest);
      const tooMany = found.meter === null ? null : service.limiter.take(found.meter, cost);
      if (tooMany !== null) return refuseLater(options, reply, tooMany, found.meter, cost);
      request.caller = found;
    }
    if (headers["content-encoding"] !== undefined) return refuse(options, reply, notJson);
    done();
  };
}

/**
 * A browser shows its session for every page that calls. So only the server's own page counts, not one of an allowed origin, and
 * what can change something also shows what only that page can read.
 */
function isOfOwnPage({ method, headers }: IncomingMessage, gate: Gate, csrf: string): boolean {
  if (headers.origin !== undefined && gate.lets(headers.origin)) return false;
  return method === "GET" || method === "HEAD" || isSame(String(headers[csrfHeader] ?? ""), csrf);
}

const csrfFailed = errorAnswer(
  "csrf_failed",
  "A session needs the header Leasehold-Csrf with the csrf_token of GET /v1/session, from the server's own page.",
);

const tooManyPipelined = errorAnswer(
  "too_many_in_flight",
  `At most ${pipelinedMax} requests of a connection may wait for the answers before them; read those first.`,
);

function letPageRead({ raw }: FastifyReply, origin: string): void {
  raw.setHeader("Access-Control-Allow-Origin", origin);
  raw.setHeader("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate");
  raw.setHeader("Vary", "Origin");
}

function refuse({ service }: HttpOptions, reply: FastifyReply, answer: Answer): void {
  service.counts.refuse(answer.code);
  sendAnswer(reply.raw, answer);
}

/**
 * S4: to refuse takes time too, and to read the rest of a large body more. So the answer is held until the request would have been
 * let through, and nothing more is read from the connection meanwhile; but not for long.
 */
function refuseLater(options: HttpOptions, reply: FastifyReply, answer: Answer, meter: Meter | null, cost: number) {
  const ms = meter === null ? 0 : options.service.limiter.waitMs(meter, cost);
  setTimeout(() => refuse(options, reply, answer), Math.min(ms, limits.restMsMax)).unref();
}

/** With the answer the connection ends. */
function refuseLast(options: HttpOptions, reply: FastifyReply, answer: Answer): void {
  reply.raw.shouldKeepAlive = false;
  refuse(options, reply, answer);
}

/** Whose credential is missing or wrong. */
function refuseStranger(options: HttpOptions, reply: FastifyReply, answer: Answer): void {
  const { service, gate } = options;
  const tooMany = answer.code === "unauthorized" ? service.failedLogins.note(gate.addressOf(reply.raw.req)) : null;
  if (tooMany !== null) refuseLast(options, reply, tooMany);
  else refuse(options, reply, answer);
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && Number(length) !== 0);
}

const shuttingDown = errorAnswer("shutting_down", "The server is shutting down; try again when it is back.", {
  retry_after_ms: 1_000,
});

/** An empty body is the same as `{}`. Own keys named `__proto__` stay own keys here, and are unknown fields later. */
function bodyParser({ limiter }: Service) {
  return function parseBody(
    { headers, caller }: FastifyRequest,
    bytes: Buffer,
    done: (error: Error | null, body?: unknown) => void,
  ): void {
    // Without a length it was let in as if it were small.
    if (headers["content-length"] === undefined) limiter.charge(caller?.meter ?? null, bytes.length);
    const contentType = headers["content-type"];
    if (contentType !== "application/json" && !isJsonInUtf8(contentType)) return done(new Refused(notJson));
    if (bytes.length === 0) return done(null, undefined);
    if (!isUtf8(bytes)) return done(new Refused(notUtf8));
    let body: unknown;
    try {
      body = JSON.parse(bytes.toString());
    } catch {
      return done(new Refused(malformed));
    }
    done(null, body);
  };
}

const utf8Charsets: readonly string[] = ["utf-8", "utf8", '"utf-8"', '"utf8"'];

/** Without a regular expression: the header is as long as the caller likes, and each step here is linear. */
export function isJsonInUtf8(contentType = ""): boolean {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (type.trim() !== "application/json") return false;
  return parameters.every((parameter) => {
    const [name = "", value, ...rest] = parameter.split("=", 3);
    if (value === undefined) return name.trim() === "";
    return name.trim() === "charset" && utf8Charsets.includes(value.trim()) && rest.length === 0;
  });
}

const notJson = errorAnswer(
  "unsupported_media_type",
  "The body must be JSON in UTF-8; send `Content-Type: application/json`, and no Content-Encoding.",
);
const notUtf8 = errorAnswer("invalid_request", "The body is not UTF-8; send JSON in UTF-8.");
const malformed = errorAnswer("invalid_request", "The body is not JSON; send one JSON object.");
