/**
 * MCP inside the running server: streamable HTTP at `/mcp`, and under AsyncGate's and ReceiptGate's names at
 * `/mcp/legivellum`. Both revisions are served from one factory: that of 2026 without sessions, those of 2025 the same
 * way. Admission (gate, keys, rates) is that of all of HTTP.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { readToolsets, type Toolset, toolsets } from "../../mcp/toolsets.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { internalError } from "../answering/faults.ts";
import { sendAnswer } from "../http/edge.ts";
import type { Service } from "../service.ts";
import { controlPlaneFor } from "./control-plane.ts";
import { sendResponse, webRequest } from "./exchange.ts";
import { createLostAnswers } from "./lost-answers.ts";
import { createPresence, type PresenceOptions } from "./presence.ts";

export const mcpPaths = ["/mcp", "/mcp/legivellum"] as const;
/** GET and DELETE are for sessions, and there are none. */
export const mcpMethods = ["POST"] as const;
/** Beside those of all of HTTP, for pages of allowed origins. */
export const mcpHeaders = "mcp-protocol-version, mcp-method, mcp-name, mcp-session-id";

export interface McpOptions {
  readonly service: Service;
  readonly isLoopback: boolean;
  readonly version: string;
  /** For tests. */
  readonly presence?: PresenceOptions;
}

export interface Mcp {
  handle(request: FastifyRequest, reply: FastifyReply): void;
  /** Resolves when all is answered and every stream has ended. */
  close(): Promise<void>;
}

export function createMcp({ service, isLoopback, version, presence: presenceOptions }: McpOptions): Mcp {
  const presence = createPresence(service, presenceOptions);
  const lostAnswers = createLostAnswers();
  // The SDK takes half a second to load, and most servers never need it.
  let loading: Promise<Loaded> | null = null;
  let isClosed = false;
  const underWay = new Set<Promise<void>>();

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { caller } = request;
    if (caller === null) throw new TypeError("admission comes before the handler");
    const sets = toolsetsIn(request.query);
    if (sets === undefined) return sendAnswer(reply.raw, unknownToolset);
    const gone = new AbortController();
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) gone.abort();
    });
    loading ??= load(version);
    const { open } = await loading;
    const plane = controlPlaneFor({ service, caller, isLoopback, presence, lostAnswers, gone: gone.signal });
    const isLegivellum = request.routeOptions.url === mcpPaths[1];
    const web = webRequest(request, gone.signal);
    const response = await open(web, { plane, sets, role: caller.actor.role, isLegivellum });
    await sendResponse(response, reply.raw, gone.signal);
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

/** `?toolsets=leases,tasks`; null where nothing is said, undefined where it makes no sense. */
function toolsetsIn(query: unknown): readonly Toolset[] | null | undefined {
  const { toolsets: said } = query as { readonly toolsets?: unknown };
  if (said === undefined || said === "") return null;
  if (typeof said !== "string") return undefined;
  const sets = readToolsets(said);
  return "unknown" in sets ? undefined : sets;
}

const unknownToolset = errorAnswer(
  "invalid_request",
  `toolsets has an unknown name; send some of ${toolsets.join(", ")}.`,
  {
    field: "toolsets",
  },
);
