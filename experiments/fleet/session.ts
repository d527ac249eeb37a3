/**
 * A coding agent's session as its tool sees it: a process that runs hooks before and after each tool and one at the end of a
 * turn, and an MCP server as its child.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Place } from "./repository.ts";

/** In line for one file; then the agent tries the next one of its list. */
const waitMs = 2_000;
const toolProgram = fileURLToPath(new URL("../../test/guard/coding-tool.ts", import.meta.url));

export type HookDecision =
  | { readonly isDenied: false }
  | { readonly isDenied: true; readonly why: "stale" | "unanswered" | "held" };

/** What an agent's time went into, in ms. */
export interface Spent {
  thinking: number;
  hooks: number;
  mcp: number;
  /** In line for a file, by MCP. */
  waiting: number;
  /** Until a file that was denied is asked for again, or a crashed session is started again. */
  pausing: number;
  hookCount: number;
}

export const nothingSpent = (): Spent => ({ thinking: 0, hooks: 0, mcp: 0, waiting: 0, pausing: 0, hookCount: 0 });

interface McpResult {
  readonly structuredContent?: { readonly verdict?: string; readonly request_id?: string };
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
}

export interface Session {
  /** Reserves a file, as a command that the agent runs. */
  claim(file: string): Promise<HookDecision>;
  /** Leases it by the MCP server; `waits`: stands in line, or by, until it is free. */
  acquire(file: string, waits: boolean): Promise<HookDecision>;
  read(file: string): Promise<string>;
  /** Runs the hook before a write; if it is allowed, `wrote` runs the one after it. */
  mayWrite(file: string): Promise<HookDecision>;
  wrote(file: string, text: string): Promise<void>;
  /** A command in a folder, between its two hooks; what it printed if it failed, and null if it was denied. */
  shell(command: string, cwd: string): Promise<string | null>;
  /** The same without hooks. */
  bare(command: string, cwd: string): Promise<string>;
  endTurn(): Promise<void>;
  /** The process is killed, and nothing of it says goodbye. */
  crash(): void;
}

export async function openSession(place: Place, id: string, spent: Spent = nothingSpent()): Promise<Session> {
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
  const timed = async <T>(kind: "hooks" | "mcp" | "waiting", work: Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await work;
    spent[kind] += performance.now() - began;
    if (kind === "hooks") spent.hookCount++;
    return result;
  };
  /** Between the hooks that guards have for Leasehold's own tools. */
  const mcp = async (name: string, args: object, isWaiting: boolean) => {
    const call = tool(`mcp__leasehold__${name}`, args);
    await hook("PreToolUse", call);
    const result = await timed(
      isWaiting ? "waiting" : "mcp",
      ask<McpResult>({ kind: "mcp", program: place.program("mcp"), tool: name, args }),
    );
    await hook("PostToolUse", { ...call, tool_response: result });
    return result;
  };
  const hook = async (event: string, more: object): Promise<HookDecision> => {
    const payload = { session_id: id, cwd: place.root, hook_event_name: event, permission_mode: "default", ...more };
    const request = { kind: "hook", command: place.command(event), input: JSON.stringify(payload) };
    const { code, stdout } = await timed("hooks", ask<Ended>(request));
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
  const bare = async (command: string, cwd: string): Promise<string> => {
    const program = `{ cd ${cwd} && ${command}; } 2>&1`;
    const { code, stdout } = await ask<Ended>({ kind: "hook", command: program, input: "" });
    return code === 0 ? "" : stdout || `it ended with ${code}`;
  };
  await hook("SessionStart", { source: "startup" });
  return {
    claim: (file) => hook("PreToolUse", tool("Bash", { command: `leasehold guard claim ${file}` })),
    async acquire(file, waits) {
      const intents = [{ predicate: "MUTATES", resource: place.resource(file) }];
      const wait = { wait_timeout_ms: waits ? waitMs : 0 };
      const args = { intents, purpose: `edit ${file}`, ...wait };
      const { structuredContent: said = {} } = await mcp("acquire_leases", args, waits);
      let { verdict } = said;
      while (verdict === "WAIT" || verdict === "STANDBY") {
        const next = await mcp("await_request", { request_id: said.request_id }, true);
        ({ verdict } = next.structuredContent ?? {});
      }
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
    async shell(command, cwd) {
      const call = { ...tool("Bash", { command }), tool_use_id: `toolu_${id} ${command}`, cwd };
      if ((await hook("PreToolUse", call)).isDenied) return null;
      const failure = await bare(command, cwd);
      await hook("PostToolUse", call);
      return failure;
    },
    bare,
    async endTurn() {
      await hook("Stop", { stop_hook_active: false });
    },
    crash: () => void child.kill("SIGKILL"),
  };
}
