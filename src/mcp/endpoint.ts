/** The streamable HTTP endpoint: the SDK's handler for both revisions, with a server of our making for each request. */
import { createMcpHandler, type McpServerFactory } from "@modelcontextprotocol/server";
import type { ControlPlane } from "./control-plane.ts";
import { instructions, legivellumInstructions } from "./instructions.ts";
import { answerPlain } from "./legivellum/plain.ts";
import { legivellumTools } from "./legivellum/tools.ts";
import { createMcpServer, type Offering, offer } from "./serve.ts";
import type { Tool } from "./tool.ts";
import { mayUse, type Role, selectTools } from "./tools.ts";
import type { Toolset } from "./toolsets.ts";

/** What one request is served with. */
export interface RequestContext {
  readonly plane: ControlPlane;
  readonly sets: readonly Toolset[];
  readonly role: Role;
  readonly hasKey: boolean;
  readonly isLegivellum: boolean;
}

export interface Endpoint {
  open(request: Request, context: RequestContext): Promise<Response>;
  /** The answer to a program that does not speak MCP; null where the message is MCP's. */
  plain(message: unknown, context: RequestContext, signal: AbortSignal): Promise<object | null>;
  close(): Promise<void>;
}

export function createMcpEndpoint({ version, bodyBytesMax }: { version: string; bodyBytesMax: number }): Endpoint {
  // The SDK carries what authenticated a request through to the factory; here that is the context.
  const factory: McpServerFactory = ({ authInfo }) => {
    const { context } = (authInfo?.extra ?? {}) as { readonly context?: RequestContext };
    if (context === undefined) throw new TypeError("a request comes with its context");
    return createMcpServer(offeredTo(context, version), context.plane);
  };
  const handler = createMcpHandler(factory, { maxRequestBodySize: bodyBytesMax });
  return {
    open: (request, context) =>
      handler.fetch(request, { authInfo: { token: "", clientId: "", scopes: [], extra: { context } } }),
    plain: (message, context, signal) => answerPlain(message, offeredTo(context, version), context.plane, signal),
    close: () => handler.close(),
  };
}

const offerings = new Map<string, Offering>();

function offeredTo({ sets, role, hasKey, isLegivellum }: RequestContext, version: string): Offering {
  const name = `${isLegivellum} ${hasKey} ${role} ${sets.join()}`;
  const offering = offerings.get(name) ?? (isLegivellum ? legivellum() : offer(selected(), instructions, version));
  offerings.set(name, offering);
  return offering;

  function selected(): readonly Tool[] {
    return selectTools({ sets, role, hasKey });
  }

  function legivellum(): Offering {
    const offered = legivellumTools.filter((tool) => mayUse(tool, role));
    return offer(offered, legivellumInstructions, version);
  }
}
