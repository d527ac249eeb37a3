/** MCP over standard input and output: nothing else may be written there. It ends with its input. */
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { instructions } from "./instructions.ts";
import { createMcpServer, offer } from "./serve.ts";
import type { Session } from "./session.ts";
import type { Tool } from "./tool.ts";
import { selectTools } from "./tools.ts";
import type { Toolset } from "./toolsets.ts";

export interface StdioOptions {
  readonly session: Session;
  readonly sets: readonly Toolset[];
  readonly hasKey: boolean;
  readonly version: string;
  readonly note: (text: string) => void;
}

/** Resolves when the client has closed its end, or `stop` fires. */
export function serveOverStdio(
  { session, sets, hasKey, version, note }: StdioOptions,
  stop: AbortSignal,
): Promise<void> {
  const offered = offer(selectTools({ sets, role: null, hasKey }).map(withoutToken), instructions, version);
  return new Promise((resolve) => {
    const transport = new StdioServerTransport();
    const handle = serveStdio(() => createMcpServer(offered, session), {
      transport,
      onerror: (error) => note(error.message),
    });
    const close = (): void => void handle.close().finally(resolve);
    process.stdin.once("end", close);
    process.stdin.once("close", close);
    if (stop.aborted) close();
    else stop.addEventListener("abort", close, { once: true });
  });
}

/** The session knows the tokens of its agents, so a model need not carry them about. */
function withoutToken(tool: Tool): Tool {
  const { properties, ...rest } = tool.inputSchema as Tool["inputSchema"] & { readonly properties?: object };
  const { agent_token: _kept, ...fields } = (properties ?? {}) as Readonly<Record<string, unknown>>;
  return { ...tool, inputSchema: { ...rest, type: "object", properties: fields } };
}
