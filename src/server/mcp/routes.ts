/**
 * MCP inside the running server: streamable HTTP at `/mcp`, and under AsyncGate's and ReceiptGate's names at
 * `/mcp/legivellum`. Both revisions are served from one factory: that of 2026 without sessions, those of 2025 the same
 * way. Admission (gate, keys, rates) is that of all of HTTP.
 */
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { tokenIn } from "../../mcp/legivellum/plain.ts";
import { readToolsets, type Toolset, toolsetNames, toolsetsDefault } from "../../mcp/toolsets.ts";
import { type Answer, answerJson, errorAnswer } from "../../protocol/answers/answer.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { internalError } from "../answering/faults.ts";
import { authenticate, isCaller } from "../auth/authenticate.ts";
import { type Gate, sendAnswer } from "../http/edge.ts";
import type { Caller, Service } from "../service.ts";
import { type ControlPlaneOptions, controlPlaneFor } from "./control-plane.ts";
import { acceptsStream, sendResponse, webRequest, withoutStream } from "./exchange.ts";
import { createLostAnswers } from "./lost-answers.ts";
import { createPresence, type PresenceOptions } from "./presence.ts";

/** Programs of LegiVellum add `/mcp` to whatever address they are given. */
export const legivellumPaths = ["/mcp/legivellum", "/mcp/legivellum/mcp"] as const;
export const mcpPaths = ["/mcp", ...legivellumPaths] as const;
/** GET and DELETE are for sessions, and there are none. */
export const mcpMethods = ["POST"] as const;
/** Beside those of all of HTTP, for pages of allowed origins. */
export const mcpHeaders = "mcp-protocol-version, mcp-method, mcp-name, mcp-session-id";

export interface McpOptions {
  readonly service: Service;
  readonly depotFor: ControlPlaneOptions["depotFor"];
  readonly isLoopback: boolean;
  readonly version: string;
  /** Counts the connection for its tenant, where the arguments of a call say whose it is; an answer if it is one too many. */
  readonly claim: (socket: Socket, caller: Caller) => Answer | null;
  /** The client's, wherever it came in. */
  readonly addressOf: Gate["addressOf"];
  /** For tests. */
  readonly presence?: PresenceOptions;
}

export interface Mcp {
  handle(request: FastifyRequest, reply: FastifyReply): void;
  /** Resolves when all is answered and every stream has ended. */
  close(): Promise<void>;
}

export function createMcp(options: McpOptions): Mcp {
  const { service, depotFor, isLoopback, version, claim, addressOf, presence: presenceOptions } = options;
  const presence = createPresence(service, presenceOptions);
  const lostAnswers = createLostAnswers();
  // The SDK takes long to load: `prepareMcp` does it before the first call, where a server is to stay.
  let loading: Promise<Loaded> | null = null;
  let isClosed = false;
  const underWay = new Set<Promise<void>>();

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { headers } = request;
    const isLegivellum = legivellumPaths.some((path) => path === request.routeOptions.url);
    const message = isLegivellum ? messageIn(request.body) : null;
    const caller = request.caller ?? callerNaming(request, message);
    if (!isCaller(caller)) return void sendAnswer(reply.raw, caller);
    // Of programs that show their key in the arguments only: no server could see it on the way.
    if (service.place !== null && !service.place.takes(caller.tenant)) return void sendAnswer(reply.raw, showKey);
    const takesStream = acceptsStream(headers);
    const sets = toolsetsIn(request.query);
    if (sets === undefined) return void sendAnswer(reply.raw, unknownToolset);
    const gone = new AbortController();
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) gone.abort();
    });
    loading ??= load(version);
    const { open, plain } = await loading;
    const from = { ...caller, address: addressOf(request.raw) };
    const plane = controlPlaneFor({
      service,
      depotFor,
      caller: from,
      isLoopback,
      presence,
      lostAnswers,
      gone: gone.signal,
    });
    const context = { plane, sets, role: caller.actor.role, hasKey: !service.keys.isEmpty, isLegivellum };
    if (isLegivellum && !takesStream && headers["mcp-protocol-version"] === undefined) {
      const answered = await plain(message, context, gone.signal);
      if (answered !== null) return void sendAnswer(reply.raw, answerJson(200, answered));
    }
    const response = await open(webRequest(request, gone.signal), context);
    await sendResponse(takesStream ? response : await withoutStream(response), reply.raw, gone.signal);
  }

  /** Who is named by the arguments alone; admission has let the request in as nobody (S5). */
  function callerNaming({ headers, raw }: FastifyRequest, message: unknown): Caller | Answer {
    const token = tokenIn(message);
    // A session's cookie counts only with the page's token, which admission did not ask for here (CSRF).
    const shown = { ...headers, cookie: undefined, ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
    const found = authenticate(service, shown, isLoopback);
    if (!isCaller(found)) {
      const refused = service.failedLogins.note(addressOf(raw)) ?? found;
      service.counts.refuse(refused.code);
      return refused;
    }
    return claim(raw.socket, found) ?? service.limiter.take(found.meter) ?? found;
  }

  return {
    handle(request, reply) {
      const served = answer(request, reply).catch((fault: unknown) => {
        if (isClosed || reply.raw.destroyed) return;
        service.log.error({ err: fault }, "an MCP request failed for a reason that is not its own");
        sendAnswer(reply.raw, internalError);
      });
      if (isEndless(request)) return;
      underWay.add(served);
      void served.then(() => underWay.delete(served));
    },
    async close() {
      isClosed = true;
      presence.close();
      // Held answers leave with the shutdown; only then are endless streams cut.
      await Promise.all(underWay);
      const loaded = await loading;
      await loaded?.close();
    },
  };
}

/** A stream for changes that may come; those of 2026 say so in a header. */
function isEndless({ headers }: FastifyRequest): boolean {
  return headers["mcp-method"] === "subscriptions/listen";
}

type Loaded = Awaited<ReturnType<typeof load>>;

async function load(version: string) {
  const { createMcpEndpoint } = await import("../../mcp/endpoint.ts");
  return createMcpEndpoint({ version, bodyBytesMax: limits.bodyBytesMax });
}

/** null where it is not JSON, which the SDK then says. */
function messageIn(body: unknown): unknown {
  try {
    return Buffer.isBuffer(body) ? JSON.parse(body.toString()) : null;
  } catch {
    return null;
  }
}

/** `?toolsets=leases,tasks`; undefined where it has an unknown name. */
function toolsetsIn(query: unknown): readonly Toolset[] | undefined {
  const { toolsets: said } = query as { readonly toolsets?: unknown };
  if (said === undefined || said === "") return toolsetsDefault;
  if (typeof said !== "string") return undefined;
  const sets = readToolsets(said);
  return "unknown" in sets ? undefined : sets;
}

const unknownToolset = errorAnswer("invalid_request", `toolsets has an unknown name; send some of ${toolsetNames}.`, {
  field: "toolsets",
});

const showKey = errorAnswer(
  "invalid_request",
  "The key's tenant is in another shard of this cluster; show the key in Authorization or X-API-Key, so that the request gets there.",
);
