/**
 * A conflict on purpose: the commands that were installed are run as the coding agent would, for two sessions that want the
 * same file. So what is said to work has just worked, and its user sees what the second agent reads.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type GuardedTool, moments } from "../payload.ts";
import type { Environment } from "../settings.ts";
import { lastingPath } from "./program.ts";

export type CheckResult =
  /** The second session was refused with these words. */
  { readonly kind: "works"; readonly words: string } | { readonly kind: "fails"; readonly why: string };

const file = ".leasehold-check";
const writers: Readonly<Record<GuardedTool, string>> = {
  claude: "Edit",
  codex: "Write",
  cursor: "Write",
  gemini: "write_file",
};

/** `command` gives what the tool's configuration has for an event. */
export async function stageConflict(
  tool: GuardedTool,
  root: string,
  command: (event: string) => string,
  environment: Environment,
): Promise<CheckResult> {
  const events = Object.entries(moments[tool]);
  const before = events.find(([, moment]) => moment === "before")?.[0] ?? "";
  const end =
    events.find(([, moment]) => moment === "end")?.[0] ?? events.find(([, one]) => one === "turn-end")?.[0] ?? "";
  const sessions = [1, 2].map((number) => `check-${number}-${randomUUID().slice(0, 8)}`);
  const run = (event: string, session: string) => {
    const payload = {
      session_id: session,
      cwd: root,
      hook_event_name: event,
      tool_name: writers[tool],
      tool_input: { file_path: join(root, file), content: "" },
    };
    const { PATH = "" } = environment;
    const env = { ...environment, PATH: lastingPath(PATH), CLAUDE_PROJECT_DIR: root };
    return runCommand(command(event), root, JSON.stringify(payload), env);
  };
  const [one = "", two = ""] = sessions;
  try {
    const first = await run(before, one);
    const refused = denialIn(first);
    if (refused !== null) return { kind: "fails", why: refused };
    const words = denialIn(await run(before, two));
    return words === null ? { kind: "fails", why: "the second session was not refused" } : { kind: "works", words };
  } finally {
    for (const session of sessions) await run(end, session);
  }
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function denialIn({ code, stdout, stderr }: Ended): string | null {
  if (code === 2) return stderr.trim();
  try {
    const said = JSON.parse(stdout) as {
      readonly permission?: string;
      readonly agent_message?: string;
      readonly decision?: string;
      readonly reason?: string;
      readonly hookSpecificOutput?: {
        readonly permissionDecision?: string;
        readonly permissionDecisionReason?: string;
      };
    };
    const { hookSpecificOutput: specific } = said;
    if (specific?.permissionDecision === "deny") return specific.permissionDecisionReason ?? "";
    if (said.permission === "deny") return said.agent_message ?? "";
    return said.decision === "deny" ? (said.reason ?? "") : null;
  } catch {
    return code === 0 ? null : stderr.trim() || `it ended with ${code}`;
  }
}

function runCommand(command: string, cwd: string, input: string, env: Environment): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", command], { cwd, env: { ...env }, stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdin.on("error", () => undefined);
    child.on("error", (error) => resolve({ code: 1, stdout, stderr: error.message }));
    child.once("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}
