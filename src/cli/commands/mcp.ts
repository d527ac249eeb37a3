/** MCP over standard input and output, for the tools that start their servers themselves. */
import { hostname } from "node:os";
import { basename } from "node:path";
import { readToolsets, toolsetNames, toolsetsDefault } from "../../mcp/toolsets.ts";
import { version } from "../../server/config/version.ts";
import { agentFlag, agentNamed } from "../acting.ts";
import type { Command } from "../command.ts";
import { EmbeddedServer } from "../embedded-server.ts";
import { plain } from "../plain-text.ts";
import { UsageProblem } from "../problem.ts";
import { sharedAgent } from "../session-agent.ts";
import { untilStopped } from "../stop-signals.ts";

const mcpCommand: Command = {
  name: "mcp",
  summary: "speaks MCP over standard input and output, for coding agents",
  usage: "[--agent ID] [--toolsets NAMES] [--data DIR]",
  about: `It talks to a running server, or starts one in its own process if none answers at an address of this machine; other
processes then use that one, and take its place when it ends. It acts for one agent, which it registers when that is
first needed: it keeps alive what the agent holds as long as it lives, and lets go of everything at its end. Ended by a
signal as an agent with a name (--agent), it announces a restart instead, so that the next process can take the leases up.
docs/mcp.md has the tools, and how the usual clients are configured.`,
  flags: {
    agent: agentFlag,
    toolsets: { sign: "NAMES", words: `offer these tools: some of ${toolsetNames}, with commas between [core]` },
    data: { sign: "DIR", words: "of a server that is started here [LEASEHOLD_DATA, or ~/.leasehold/data]" },
  },
  examples: [
    ["leasehold mcp", "as the command of a client's MCP entry"],
    [
      "leasehold mcp --agent refactorer-7 --toolsets leases",
      "as an agent that can be found again, with all tools about leases",
    ],
  ],
  run: async (call) => {
    const chosen = call.text("toolsets");
    const sets = chosen === null ? toolsetsDefault : readToolsets(chosen);
    if ("unknown" in sets)
      throw new UsageProblem(`unknown toolset "${sets.unknown.slice(0, 80)}"; give some of ${toolsetNames}`);
    // A server that is started here keeps the secret that agents' tokens are made with: it is for this user alone.
    process.umask(0o077);
    const note = (text: string): void => call.out.note(plain(text));
    const { Session } = await import("../../mcp/session.ts");
    const { serveOverStdio } = await import("../../mcp/stdio.ts");
    const { environment } = call;
    const embedded = new EmbeddedServer({ urls: call.address.urls, data: call.text("data"), environment, note });
    const session = new Session({
      client: await call.connect(),
      agentId: agentNamed(call),
      labels: {
        tool: "mcp",
        host: plain(hostname()).slice(0, 200),
        pid: String(process.pid),
        folder: folderOf(call.cwd),
      },
      ensureServer: () => embedded.ensure(),
      findAgent: (refused) => sharedAgent(call, refused),
    });
    await embedded.ensure();
    let how: "over" | "stopped" = "over";
    await untilStopped(async (stop) => {
      await serveOverStdio({ session, sets, hasKey: call.key !== null, version, note }, stop);
      if (stop.aborted) how = "stopped";
    });
    await session.end(how);
    await embedded.close();
  },
};

function folderOf(cwd: string): string {
  return plain(basename(cwd)).slice(0, 200);
}

export const commands: readonly Command[] = [mcpCommand];
