/**
 * A coding agent's session as its tool sees it: a process that runs hooks before and after each tool and one at the end of a
 * turn, and an MCP server as its child.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Place } from "./repository.ts";

const toolProgram = fileURLToPath(new URL("../../test/guard/coding-tool.ts", import.meta.url));

export type HookDecision =
  | { readonly isDenied: false }
  | { readonly isDenied: true; readonly why: "stale" | "unanswered" | "held" };

export interface Session {
  /** Reserves a file, as a command that the agent runs. */
  claim(file: string): Promise<HookDecision>;
  /** Leases it by the MCP server; `waits`: stands in line, or by, until it is free. */
  acquire(file: string, waits: boolean): Promise<HookDecision>;
  read(file: string): Promise<string>;
  /** Runs the hook before a write; if it is allowed, `wrote` runs the one after it. */
  mayWrite(file: string): Promise<HookDecision>;
  wrote(file: string, text: string): Promise<void>;
  endTurn(): Promise<void>;
  /** The process is killed, and nothing of it says goodbye. */
  crash(): void;
}

export async function openSession(place: Place, id: string): Promise<Session> {
  const path = (file: string) => join(place.root, file);
  const env = { ...place.env, CLAUDE_PROJECT_DIR: place.root };
  const child = spawn(process.execPath, [toolProgram], { cwd: place.root, env, stdio: ["pipe", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async <T>(request: object): Promise<T> => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`the process of ${id} has ended`);
    return JSON.parse(value) as T;
  };
  const mcp = (tool: string, args: object) =>
    ask<{ readonly structuredContent?: { readonly verdict?: string; readonly request_id?: string } }>({
      ...{ kind: "mcp", program: place.program("mcp"), tool, args },
    });
  const hook = async (event: string, more: object): Promise<HookDecision> => {
    const payload = { session_id: id, cwd: place.root, hook_event_name: event, permission_mode: "default", ...more };
    const request = { kind: "hook", command: place.command(event), input: JSON.stringify(payload) };
    const { code, stdout } = await ask<{ readonly code: number | null; readonly stdout: string }>(request);
    if (code !== 0) throw new Error(`a hook ended with ${code}: ${stdout}`);
    const { hookSpecificOutput: said } = JSON.parse(stdout || "{}") as {
      readonly hookSpecificOutput?: {
        readonly permissionDecision?: string;
        readonly permissionDecisionReason?: string;
      };
    };
    const reason = said?.permissionDecision === "deny" ? (said.permissionDecisionReason ?? "") : null;
    if (reason === null) return { isDenied: false };
    if (reason.includes("guard failed")) throw new Error(reason);
    return {
      isDenied: true,
      why: reason.includes("since you read it")
        ? "stale"
        : reason.includes("no server answers")
          ? "unanswered"
          : "held",
    };
  };
  const tool = (name: string, input: object) => ({ tool_name: name, tool_input: input, tool_use_id: `toolu_${name}` });
  await hook("SessionStart", { source: "startup" });
  return {
    claim: (file) => hook("PreToolUse", tool("Bash", { command: `leasehold guard claim ${file}` })),
    async acquire(file, waits) {
      const intents = [{ predicate: "MUTATES", resource: place.resource(file) }];
      const { structuredContent: said = {} } = await mcp("acquire_leases", {
        ...{ intents, purpose: `edit ${file}` },
        ...(!waits && { wait_timeout_ms: 0 }),
      });
      let { verdict } = said;
      while (verdict === "WAIT" || verdict === "STANDBY")
        ({ verdict } = (await mcp("await_request", { request_id: said.request_id })).structuredContent ?? {});
      return verdict === "GRANTED" ? { isDenied: false } : { isDenied: true, why: "held" };
    },
    async read(file) {
      await hook("PreToolUse", tool("Read", { file_path: path(file) }));
      return place.read(file);
    },
    mayWrite: (file) => hook("PreToolUse", tool("Write", { file_path: path(file), content: "" })),
    async wrote(file, text) {
      place.write(file, text);
      await hook("PostToolUse", tool("Write", { file_path: path(file), content: "" }));
    },
    async endTurn() {
      await hook("Stop", { stop_hook_active: false });
    },
    crash: () => void child.kill("SIGKILL"),
  };
}
