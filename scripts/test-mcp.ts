/**
 * The official tools against a real server: the conformance suite for both revisions, and the Inspector, which lists
 * and calls every tool. They are downloaded when this runs, because together they are larger than the project; so this
 * needs a network and is not part of `npm test`.
 *
 * Usage: npm run test:mcp [-- conformance | inspector]
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tools } from "../src/mcp/tools.ts";
import { startServer } from "../src/server/start.ts";
import { byHarm, exampleFor, populate } from "../test/mcp/examples.ts";
import { connectHttp } from "../test/mcp/harness.ts";

const conformance = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const inspector = "@modelcontextprotocol/inspector@2.12.0";
const revisions = ["2025-11-25", "2026-07-28"] as const;
const root = dirname(dirname(fileURLToPath(import.meta.url)));

const [only] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "leasehold-mcp-"));
let failures = 0;
try {
  if (only !== "inspector") for (const revision of revisions) await conform(revision);
  if (only !== "conformance") await inspect();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

async function conform(revision: (typeof revisions)[number]): Promise<void> {
  const server = await startServer({ port: 0, store: "memory" });
  const known = join(root, "test/mcp", `conformance-${revision}.yml`);
  const flags = ["--url", `${server.address.url}/mcp`, "--requirements", revision, "--expected-failures", known];
  const { code, output } = await npx(conformance, "conformance", ["server", ...flags]);
  const [, summary = output] = output.split("=== SUMMARY ===");
  process.stdout.write(`\nConformance ${revision}: ${code === 0 ? "as expected" : "NOT as expected"}\n${summary}\n`);
  if (code !== 0) failures++;
  await server.close();
}

/** Each call is a process, so a few run in parallel. */
async function inspect(): Promise<void> {
  const server = await startServer({ port: 0, store: "memory" });
  const url = `${server.address.url}/mcp?toolsets=all`;
  const caller = await connectHttp(server.address.url);
  const world = await populate(caller.do);
  await caller.close();
  const target = ["--cli", url, "--transport", "http"];
  const listed = await npx(inspector, "mcp-inspector", [...target, "--method", "tools/list"]);
  const names = (JSON.parse(listed.output) as { readonly tools: readonly { readonly name: string }[] }).tools;
  // The Inspector has no key, and is offered no tool of an operator.
  const rest = byHarm(tools).filter(({ set }) => set !== "operating");
  assert.equal(names.length, rest.length);
  let called = 0;
  const worker = async (): Promise<void> => {
    for (let tool = rest[called++]; tool !== undefined; tool = rest[called++]) {
      const args = Object.entries(exampleFor(tool, world)).flatMap(([name, value]) => {
        return value === null
          ? []
          : ["--tool-arg", `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`];
      });
      const flags = [...target, "--method", "tools/call", "--tool-name", tool.name, ...args];
      const { output } = await npx(inspector, "mcp-inspector", flags);
      if (output.includes('"structuredContent"')) continue;
      failures++;
      process.stdout.write(`Inspector: ${tool.name} was not answered: ${output.slice(0, 500)}\n`);
    }
  };
  await Promise.all([worker(), worker()]);
  process.stdout.write(`Inspector: ${names.length} tools listed, ${rest.length} called, ${failures} problems so far\n`);
  await server.close();
}

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** On the project's own Node: both need a newer one than the machine may have. */
function npx(name: string, bin: string, args: readonly string[]): Promise<Ended> {
  const { PATH = "" } = process.env;
  const env = {
    ...process.env,
    PATH: `${join(root, "node_modules/.bin")}${delimiter}${PATH}`,
    npm_config_loglevel: "error",
  };
  return new Promise((resolve, reject) => {
    const child = spawn("npx", ["--yes", "--package", name, "--", bin, ...args], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}
