/** What other programs install Leasehold from: each file carries the version of package.json, and none is edited by hand. */
import { readFileSync } from "node:fs";
import { addHooks } from "../../src/guard/install/hook-entries.ts";

interface Manifest {
  readonly name: string;
  readonly mcpName: string;
  readonly version: string;
  readonly license: string;
  readonly keywords: readonly string[];
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const { name, version, license, keywords } = manifest;
const author = { name: "The Leasehold authors" };
/** The registry of MCP servers takes at most 100 characters. */
const brief = "Time-bounded leases for AI agents: on files, tasks and services, without deadlocks.";

const claudeMcp = { command: name, args: ["mcp"] };
const npxMcp = { command: "npx", args: ["-y", name, "mcp"] };

export const distribution: Readonly<Record<string, () => string>> = {
  ".claude-plugin/marketplace.json": () =>
    json({
      $schema: "https://www.schemastore.org/claude-code-marketplace.json",
      name,
      description: brief,
      owner: author,
      plugins: [{ name, source: "./plugin", description: brief, version }],
    }),
  "plugin/.claude-plugin/plugin.json": () => json({ name, version, description: brief, author, license, keywords }),
  "plugin/hooks/hooks.json": () => json(addHooks("claude", {}, `${name}-hook`)),
  "plugin/.mcp.json": () => json({ mcpServers: { [name]: claudeMcp } }),
  "gemini-extension.json": () =>
    json({
      name,
      version,
      description: brief,
      contextFileName: "plugin/skills/leasehold/SKILL.md",
      mcpServers: { [name]: npxMcp },
    }),
  "server.json": () =>
    json({
      $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
      name: manifest.mcpName,
      title: "Leasehold",
      description: brief,
      version,
      packages: [
        {
          registryType: "npm",
          identifier: name,
          version,
          runtimeHint: "npx",
          packageArguments: [{ type: "positional", value: "mcp" }],
          transport: { type: "stdio" },
          environmentVariables: [
            { name: "LEASEHOLD_URL", description: "The server; left out, one on this machine.", isRequired: false },
            { name: "LEASEHOLD_KEY_FILE", description: "A file with a key, mode 0600.", isRequired: false },
            { name: "LEASEHOLD_KEY", description: "A key.", isRequired: false, isSecret: true },
          ],
        },
      ],
    }),
};

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
