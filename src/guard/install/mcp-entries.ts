/** The entries that tell coding agents where Leasehold's MCP server is. */
import { type GuardedTool, isRecord } from "../payload.ts";
import { type Json, withField } from "./json-text.ts";

export const mcpFiles: Readonly<Record<GuardedTool, string>> = {
  claude: ".mcp.json",
  codex: ".codex/config.toml",
  cursor: ".cursor/mcp.json",
  gemini: ".gemini/settings.json",
};

/** Over HTTP from the server itself, or as a program that the tool starts. */
export type McpEndpoint = { readonly url: string } | { readonly command: string; readonly args: readonly string[] };

const entryName = "leasehold";

/** An entry of the user's under our name stays as it is. */
export function addMcp(tool: GuardedTool, config: Json, endpoint: McpEndpoint): Json {
  const { mcpServers } = config;
  const servers = isRecord(mcpServers) ? mcpServers : {};
  if (servers[entryName] !== undefined && !isOwn(servers[entryName])) return config;
  return withField(config, "mcpServers", withField(servers, entryName, entryFor(tool, endpoint)));
}

export function removeMcp(config: Json): Json {
  const { mcpServers: servers } = config;
  if (!isRecord(servers) || !isOwn(servers[entryName])) return config;
  const rest = withField(servers, entryName, undefined);
  return withField(config, "mcpServers", Object.keys(rest).length === 0 ? undefined : rest);
}

function entryFor(tool: GuardedTool, endpoint: McpEndpoint): Json {
  if ("command" in endpoint)
    return { ...(tool === "claude" && { type: "stdio" }), command: endpoint.command, args: endpoint.args };
  if (tool === "gemini") return { httpUrl: `${endpoint.url}/mcp` };
  return { ...(tool === "claude" && { type: "http" }), url: `${endpoint.url}/mcp` };
}

function isOwn(entry: unknown): boolean {
  if (!isRecord(entry)) return false;
  const { url, httpUrl, args } = entry;
  const ends = [url, httpUrl].some((text) => typeof text === "string" && text.endsWith("/mcp"));
  return ends || (Array.isArray(args) && args.at(-1) === "mcp");
}

const begin = "# leasehold: begin (leasehold init --undo takes this out)";
const end = "# leasehold: end";
const block = /(?:^|\n)# leasehold: begin[^\n]*\n[\s\S]*?# leasehold: end(?:\n|$)/;

/** TOML is not read and written again, which would lose its comments: a table can always be added at the end. */
export function addTomlMcp(text: string | null, endpoint: McpEndpoint): string {
  const rest = removeTomlMcp(text ?? "");
  if (/^\s*\[\s*mcp_servers\s*\.\s*"?leasehold"?\s*\]/m.test(rest)) return text ?? "";
  const lines =
    "url" in endpoint
      ? [`url = ${JSON.stringify(`${endpoint.url}/mcp`)}`]
      : [`command = ${JSON.stringify(endpoint.command)}`, `args = ${JSON.stringify(endpoint.args)}`];
  const separator = rest === "" ? "" : rest.endsWith("\n") ? "\n" : "\n\n";
  return `${rest}${separator}${[begin, "[mcp_servers.leasehold]", ...lines, end].join("\n")}\n`;
}

export function removeTomlMcp(text: string): string {
  const rest = text.replace(block, (found) => (found.startsWith("\n") ? "\n" : ""));
  return rest === text ? text : rest.replace(/\n\n$/, "\n").replace(/^\n$/, "");
}
