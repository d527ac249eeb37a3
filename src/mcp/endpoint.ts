/** The streamable HTTP endpoint: the SDK's handler for both revisions, with a server of our making for each request. */
import { createMcpHandler, type McpServerFactory } from "@modelcontextprotocol/server";
import type { ControlPlane } from "./control-plane.ts";
import { instructions, legivellumInstructions } from "./instructions.ts";
import { legivellumTools } from "./legivellum/tools.ts";
import { createMcpServer, type Offering } from "./serve.ts";
import { type Role, selectTools, tools } from "./tools.ts";
import type { Toolset } from "./toolsets.ts";

/** What one request is served with. */
export interface RequestContext {
  readonly plane: ControlPlane;
  readonly sets: readonly Toolset[] | null;
  readonly role: Role;
  readonly isLegivellum: boolean;
}

export interface EndpointOptions {
  readonly version: string;
  readonly bodyBytesMax: number;
}

export interface Endpoint {
  open(request: Request, context: RequestContext): Promise<Response>;
  close(): Promise<void>;
}

export function createMcpEndpoint({ version, bodyBytesMax }: EndpointOptions): Endpoint {
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
    close: () => handler.close(),
  };
}

const selections = new Map<string, Offering["tools"]>();

/** The same selection is the same list, so that it is written once. */
function offeredTo({ sets, role, isLegivellum }: RequestContext, version: string): Offering {
  const name = `${isLegivellum} ${role} ${sets === null ? "" : [...new Set(sets)].sort().join()}`;
  let selected = selections.get(name);
  if (selected === undefined) {
    selected = selectTools(isLegivellum ? legivellumTools : tools, sets, role);
    selections.set(name, selected);
  }
  return { tools: selected, version, instructions: isLegivellum ? legivellumInstructions : instructions };
}
