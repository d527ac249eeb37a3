/** The streamable HTTP endpoint: the SDK's handler for both revisions, with a server of our making for each request. */
import { createMcpHandler, type McpServerFactory } from "@modelcontextprotocol/server";
import type { Door } from "./door.ts";
import { instructions, legivellumInstructions } from "./instructions.ts";
import { legivellumTools } from "./legivellum/tools.ts";
import { createMcpServer, type Offered } from "./serve.ts";
import type { Toolset } from "./tool.ts";
import { type Role, selectTools, tools } from "./tools.ts";

/** What one request is served with. */
export interface Visit {
  readonly door: Door;
  readonly sets: readonly Toolset[] | null;
  readonly role: Role;
  readonly isLegivellum: boolean;
}

export interface EndpointOptions {
  readonly version: string;
  readonly bodyBytesMax: number;
}

export interface Endpoint {
  open(request: Request, visit: Visit): Promise<Response>;
  close(): Promise<void>;
}

export function createMcpEndpoint({ version, bodyBytesMax }: EndpointOptions): Endpoint {
  // The SDK carries what authenticated a request through to the factory; here that is the visit.
  const factory: McpServerFactory = ({ authInfo }) => {
    const { visit } = (authInfo?.extra ?? {}) as { readonly visit?: Visit };
    if (visit === undefined) throw new TypeError("a request comes with its visit");
    return createMcpServer(offeredTo(visit, version), visit.door);
  };
  const handler = createMcpHandler(factory, { maxRequestBodySize: bodyBytesMax });
  return {
    open: (request, visit) =>
      handler.fetch(request, { authInfo: { token: "", clientId: "", scopes: [], extra: { visit } } }),
    close: () => handler.close(),
  };
}

const selections = new Map<string, Offered["tools"]>();

/** The same selection is the same list, so that it is written once. */
function offeredTo({ sets, role, isLegivellum }: Visit, version: string): Offered {
  const name = `${isLegivellum} ${role} ${sets === null ? "" : [...new Set(sets)].sort().join()}`;
  let selected = selections.get(name);
  if (selected === undefined) {
    selected = selectTools(isLegivellum ? legivellumTools : tools, sets, role);
    selections.set(name, selected);
  }
  return { tools: selected, version, instructions: isLegivellum ? legivellumInstructions : instructions };
}
