/** An MCP server for one caller. Over HTTP each request gets its own, so making one is cheap. */
import { type ListToolsResult, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import { takesTraceparent, withTraceparent } from "../protocol/tasks/traceparent.ts";
import type { ControlPlane } from "./control-plane.ts";
import { shortOutput } from "./schemas.ts";
import type { Tool } from "./tool.ts";
import { contentOf, serveWaits, takesTasks, tasksExtension, waitOf, waitTools, withoutHold } from "./waits.ts";

export interface Offering {
  readonly tools: ReadonlyMap<string, Tool>;
  /** As clients are shown them; written once for all requests that are offered the same. */
  readonly list: ListToolsResult["tools"];
  readonly instructions: string;
  readonly version: string;
}

export function offer(tools: readonly Tool[], instructions: string, version: string): Offering {
  const list = tools.map(({ name, description, inputSchema, outputSchema, annotations }) => ({
    name,
    title: annotations.title,
    description,
    inputSchema: inputSchema as Listed["inputSchema"],
    outputSchema: shortOutput(outputSchema) as NonNullable<Listed["outputSchema"]>,
    annotations,
  }));
  return { tools: new Map(tools.map((tool) => [tool.name, tool])), list, instructions, version };
}

type Listed = ListToolsResult["tools"][number];

/**
 * The low-level server of the SDK, because the high-level one validates by schemas of its own making, while ours are
 * checked by the protocol's validators, which answer with the codes and fields of the wire.
 */
export function createMcpServer({ tools, list, instructions, version }: Offering, plane: ControlPlane): Server {
  const server = new Server(
    { name: "leasehold", title: "Leasehold", version },
    { capabilities: { tools: {}, extensions: { [tasksExtension]: {} } }, instructions },
  );
  serveWaits(server, tools, plane);
  server.setRequestHandler("tools/list", (): ListToolsResult => ({ tools: list }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = tools.get(params.name);
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool ${params.name.slice(0, 128)}.`);
    }
    const isWaiting = takesTasks(mcpReq.envelope) && waitTools.has(params.name);
    const args = isWaiting ? withoutHold(params.arguments) : params.arguments;
    const result = await tool.run(args, tracedPlane(plane, params._meta?.["traceparent"]), mcpReq.signal);
    return (isWaiting ? waitOf(result, params.arguments) : null) ?? contentOf(result, plane);
  });
  return server;
}

/** MCP has the trace of a call in its `_meta`: tasks that the call creates take it over. */
function tracedPlane(plane: ControlPlane, traceparent: unknown): ControlPlane {
  if (traceparent === undefined) return plane;
  return {
    depot: plane.depot,
    tenant: plane.tenant,
    defaults: plane.defaults,
    agentId: (token) => plane.agentId(token),
    workerId: () => plane.workerId(),
    keyFor: (tool, input) => plane.keyFor(tool, input),
    notices: () => plane.notices(),
    ask: (operation, input, credential, signal) => {
      const asked = takesTraceparent(operation) ? withTraceparent(input, traceparent) : input;
      return plane.ask(operation, asked, credential, signal);
    },
  };
}
