/**
 * A coding agent's process, as far as a guard sees it: it runs hooks by a shell, and an MCP server as its child. It takes one
 * JSON request a line on standard input, and answers each with a line.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

type Request =
  | { readonly kind: "hook"; readonly command: string; readonly input: string }
  | { readonly kind: "mcp"; readonly program: readonly string[]; readonly tool: string; readonly args: object };

let server: ChildProcessByStdio<Writable, Readable, null> | null = null;
let lines: AsyncIterator<string> | null = null;
let count = 0;

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  const answer = request.kind === "hook" ? await hook(request.command, request.input) : await call(request);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

function hook(command: string, input: string): Promise<object> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "inherit"] });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    // A command need not read it.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.once("close", (code) => resolve({ code, stdout }));
  });
}

async function call({ program, tool, args }: Extract<Request, { kind: "mcp" }>): Promise<unknown> {
  if (server === null) {
    const [command = "", ...rest] = program;
    server = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
    lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "tool", version: "1" } };
    await ask("initialize", client);
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  }
  return await ask("tools/call", { name: tool, arguments: args });
}

async function ask(method: string, params: object): Promise<unknown> {
  const id = ++count;
  server?.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  for (;;) {
    const { value, done } = (await lines?.next()) ?? { done: true };
    if (done) throw new Error("the MCP server has ended");
    const message = JSON.parse(value) as { readonly id?: number; readonly result?: unknown; readonly error?: unknown };
    if (message.id === id) return message.result ?? message.error;
  }
}
