import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const read = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;
const manifest = read<{ name: string; mcpName: string; version: string }>("package.json");

interface Named {
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
}

test("the marketplace of Claude Code names the plugin's folder, and the plugin has the package's version", () => {
  const market = read<Named & { plugins: readonly (Named & { source: string })[] }>(".claude-plugin/marketplace.json");
  const [listed] = market.plugins;
  assert.ok(listed !== undefined);
  const plugin = read<Named>(join(listed.source, ".claude-plugin/plugin.json"));
  assert.deepEqual([listed.name, listed.version], [plugin.name, plugin.version]);
  assert.equal(plugin.version, manifest.version);
  for (const file of ["hooks/hooks.json", ".mcp.json", "skills/leasehold/SKILL.md"])
    assert.ok(existsSync(join(listed.source, file)), file);
});

test("the plugin's hooks are those that init writes, and each runs the command by its name", () => {
  const { hooks } = read<{ hooks: Readonly<Record<string, readonly object[]>> }>("plugin/hooks/hooks.json");
  assert.ok("PreToolUse" in hooks && "SessionStart" in hooks);
  const text = JSON.stringify(hooks);
  const commands = [...text.matchAll(/"command":"((?:[^"\\]|\\.)*)"/g)].map(([, command = ""]) => command);
  assert.ok(commands.length >= 4);
  for (const command of commands) assert.match(command, /leasehold-hook guard hook claude \w+/);
});

test("the skill's front matter is that of agentskills.io: the folder's name, and bounded texts", () => {
  const path = "plugin/skills/leasehold/SKILL.md";
  const [, front = "", body = ""] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(readFileSync(path, "utf8")) ?? [];
  const fields = Object.fromEntries(
    front.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const known = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
  assert.deepEqual(
    Object.keys(fields).filter((name) => !known.includes(name)),
    [],
  );
  const { name = "", description = "", compatibility = "" } = fields;
  assert.equal(name, dirname(path).split("/").at(-1));
  assert.match(name, /^[a-z0-9-]{1,64}$/);
  assert.ok(description.length >= 1 && description.length <= 1_024, String(description.length));
  assert.ok(compatibility.length <= 500);
  assert.ok(body.split("\n").length < 500);
});

test("server.json is for the MCP registry: the package's mcpName and version, and a short description", () => {
  interface ServerFile extends Named {
    readonly packages: readonly { readonly identifier: string; readonly version: string }[];
  }
  const server = read<ServerFile>("server.json");
  assert.deepEqual([server.name, server.version], [manifest.mcpName, manifest.version]);
  assert.ok((server.description ?? "").length <= 100);
  assert.deepEqual(
    server.packages.map(({ identifier, version }) => [identifier, version]),
    [[manifest.name, manifest.version]],
  );
});

test("the extension of Gemini CLI has the package's version, and its context file exists", () => {
  const extension = read<Named & { contextFileName: string }>("gemini-extension.json");
  assert.equal(extension.version, manifest.version);
  assert.ok(existsSync(extension.contextFileName));
});

test("the hook for pre-commit runs the guard of git", () => {
  const text = readFileSync(".pre-commit-hooks.yaml", "utf8");
  assert.match(text, /^- id: leasehold$/m);
  assert.match(text, /^ {2}entry: leasehold guard hook git pre-commit$/m);
});
