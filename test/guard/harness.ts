/** A real repository with the guards installed, a real server, and scripted tools that run the installed hooks. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { hookFiles } from "../../src/guard/install/hook-entries.ts";
import type { GuardedTool } from "../../src/guard/payload.ts";
import { type RunningServer, startServer } from "../../src/server/start.ts";
import { type Client, clientOf } from "../server/harness.ts";

export const binary = fileURLToPath(new URL("../../bin/leasehold.cjs", import.meta.url));

/** What installed hooks start. */
export const hookScript = fileURLToPath(new URL("../../bin/leasehold-hook", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Answer extends Ended {
  /** Why it was denied; null if it was not. */
  readonly denied: string | null;
  /** What the agent is shown besides. */
  readonly shown: string;
}

export interface Project {
  readonly root: string;
  readonly name: string;
  readonly url: string;
  readonly state: string;
  readonly env: Readonly<Record<string, string>>;
  git(...args: readonly string[]): string;
  write(path: string, text: string): void;
  read(path: string): string;
  cli(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** The command that the tool's configuration has for this event. */
  command(tool: GuardedTool, event: string): string;
  /** Runs it as the tool would. */
  hook(
    tool: GuardedTool,
    event: string,
    payload: object | string,
    env?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
  remove(): void;
}

export interface Fixture extends Client {
  readonly server: RunningServer;
  close(): Promise<void>;
}

export async function serveGuards(): Promise<Fixture> {
  const server = await startServer({ port: 0, store: "memory", shutdownTimeoutMs: 1_000, logLevel: "silent" });
  return { ...clientOf(server.address.url), server, close: () => server.close() };
}

export async function makeProject(url: string, install: readonly string[] | null = []): Promise<Project> {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-guard-")));
  const name = "shop";
  const root = join(place, name);
  const state = join(place, "state");
  mkdirSync(root);
  const { PATH = "" } = process.env;
  const env = { PATH, HOME: place, LEASEHOLD_URL: url, LEASEHOLD_STATE: state, GIT_CONFIG_NOSYSTEM: "1" };
  const project: Project = {
    root,
    name,
    url,
    state,
    env,
    git: (...args) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
        cwd: root,
        env,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      }),
    write(path, text) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    },
    read: (path) => readFileSync(join(root, path), "utf8"),
    cli: (args, more = {}) => run(process.execPath, [binary, ...args], root, { ...env, ...more }, ""),
    command: (tool, event) => commandOf(JSON.parse(project.read(hookFiles[tool])), tool, event),
    async hook(tool, event, payload, more = {}) {
      const input = typeof payload === "string" ? payload : JSON.stringify(payload);
      const ended = await run(
        "/bin/sh",
        ["-c", project.command(tool, event)],
        root,
        { ...env, CLAUDE_PROJECT_DIR: root, ...more },
        input,
      );
      return { ...ended, ...meaning(tool, ended) };
    },
    remove: () => rmSync(place, { recursive: true, force: true }),
  };
  project.git("init", "-q", "-b", "main");
  for (const path of ["src/a.ts", "src/b.ts", "src/c.ts"]) project.write(path, `${path}\n`);
  project.git("add", ".");
  project.git("commit", "-qm", "first");
  if (install !== null) {
    const { code, stderr } = await project.cli(["guard", "install", ...install]);
    assert.equal(code, 0, stderr);
  }
  return project;
}

export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  input: string | null,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()));
    child.stdin.on("error", () => undefined);
    if (input !== null) child.stdin.end(input);
    child.once("close", (code) => resolve({ code, ...output }));
  });
}

function commandOf(config: unknown, tool: GuardedTool, event: string): string {
  const { hooks } = config as {
    readonly hooks: Readonly<Record<string, readonly { command?: string; hooks?: readonly { command: string }[] }[]>>;
  };
  const commands = (hooks[event] ?? []).flatMap((entry) => [
    entry.command ?? "",
    ...(entry.hooks ?? []).map((one) => one.command),
  ]);
  const found = commands.find((command) => command.includes("guard hook"));
  assert.ok(found !== undefined, `${tool} has no hook for ${event}`);
  return found;
}

/** The hook's output as each tool reads it. */
function meaning(tool: GuardedTool, { code, stdout, stderr }: Ended): Pick<Answer, "denied" | "shown"> {
  if (code === 2) return { denied: stderr, shown: stderr };
  const said = (stdout.trim() === "" ? {} : JSON.parse(stdout)) as {
    readonly permission?: string;
    readonly agent_message?: string;
    readonly additional_context?: string;
    readonly user_message?: string;
    readonly decision?: string;
    readonly reason?: string;
    readonly systemMessage?: string;
    readonly hookSpecificOutput?: {
      readonly permissionDecision?: string;
      readonly permissionDecisionReason?: string;
      readonly additionalContext?: string;
    };
  };
  const { hookSpecificOutput: specific = {} } = said;
  const shown = [
    specific.additionalContext,
    said.additional_context,
    said.reason,
    said.systemMessage,
    said.user_message,
  ]
    .filter(Boolean)
    .join("\n");
  if (tool === "cursor") return { denied: said.permission === "deny" ? (said.agent_message ?? "") : null, shown };
  if (tool === "gemini") return { denied: said.decision === "deny" ? (said.reason ?? "") : null, shown };
  return { denied: specific.permissionDecision === "deny" ? (specific.permissionDecisionReason ?? "") : null, shown };
}

/** The payload of each tool, with its fields. */
export function payloadOf(
  tool: GuardedTool,
  event: string,
  session: string,
  root: string,
  toolName: string,
  toolInput: object,
): object {
  const call = { tool_name: toolName, tool_input: toolInput };
  switch (tool) {
    case "claude":
      return {
        session_id: session,
        transcript_path: "/t.jsonl",
        cwd: root,
        permission_mode: "default",
        hook_event_name: event,
        tool_use_id: `toolu_${session}`,
        ...call,
      };
    case "codex":
      return {
        session_id: session,
        turn_id: "1",
        transcript_path: null,
        cwd: root,
        hook_event_name: event,
        model: "m",
        permission_mode: "default",
        tool_use_id: `call_${session}`,
        ...call,
      };
    case "cursor":
      return {
        conversation_id: session,
        generation_id: "g",
        model: "m",
        hook_event_name: event,
        cursor_version: "2.0",
        workspace_roots: [root],
        tool_use_id: `c_${session}`,
        cwd: root,
        ...call,
      };
    case "gemini":
      return {
        session_id: session,
        transcript_path: "/t.json",
        cwd: root,
        hook_event_name: event,
        timestamp: new Date(0).toISOString(),
        ...call,
      };
  }
}
