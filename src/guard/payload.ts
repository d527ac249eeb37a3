/** What the coding agents tell their hooks, decoded once: names of events, sessions and tools differ, their meaning does not. */
import { resolve } from "node:path";

export const guardedTools = ["claude", "codex", "cursor", "gemini"] as const;
export type GuardedTool = (typeof guardedTools)[number];

export type Moment = "start" | "prompt" | "before" | "after" | "turn-end" | "subagent-end" | "end";

const claudeMoments = {
  SessionStart: "start",
  UserPromptSubmit: "prompt",
  PreToolUse: "before",
  PostToolUse: "after",
  PostToolUseFailure: "after",
  Stop: "turn-end",
  SubagentStart: "start",
  SubagentStop: "subagent-end",
  SessionEnd: "end",
} as const;
/** Codex took its events from Claude Code, all but one. */
const { PostToolUseFailure: _, ...codexMoments } = claudeMoments;

/** By each tool's own names for them. */
export const moments: Readonly<Record<GuardedTool, Readonly<Record<string, Moment>>>> = {
  claude: claudeMoments,
  codex: codexMoments,
  cursor: {
    sessionStart: "start",
    beforeSubmitPrompt: "prompt",
    preToolUse: "before",
    postToolUse: "after",
    postToolUseFailure: "after",
    stop: "turn-end",
    subagentStop: "subagent-end",
    sessionEnd: "end",
  },
  gemini: {
    SessionStart: "start",
    BeforeAgent: "prompt",
    BeforeTool: "before",
    AfterTool: "after",
    AfterAgent: "turn-end",
    SessionEnd: "end",
  },
};

/** Claude Code's: a hook there does git's part itself. They are installed by name, and apart from the others. */
export const worktreeEvents = ["WorktreeCreate", "WorktreeRemove"] as const;
export type WorktreeEvent = (typeof worktreeEvents)[number];

export const toolTitles: Readonly<Record<GuardedTool, string>> = {
  claude: "Claude Code",
  codex: "Codex",
  cursor: "Cursor",
  gemini: "Gemini CLI",
};

export interface Payload {
  readonly sessionId: string;
  readonly subagent: string | null;
  /** Of the tool itself where it names one: relative paths start there. */
  readonly cwd: string;
  /** Of the session: its user chose it, and not the model that proposes a command. */
  readonly home: string;
  readonly toolName: string;
  readonly toolInput: Readonly<Record<string, unknown>>;
  /** Ties what is said after to what was said before. */
  readonly toolUseId: string | null;
  readonly prompt: string | null;
  /** Where the tool writes its session down. */
  readonly transcript: string | null;
  /** What the tool answered, after it ran. */
  readonly toolResponse: unknown;
}

/** What came in is not what the tool sends. */
export class PayloadProblem extends Error {
  override name = "PayloadProblem";
}

export function readPayload(text: string, moment: Moment, here: string): Payload {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw new PayloadProblem(text.trim() === "" ? "nothing came in" : "the input is not JSON");
  }
  if (!isRecord(read)) throw new PayloadProblem("the input is not a JSON object");
  const sessionId = textIn(read, "session_id") ?? textIn(read, "conversation_id");
  if (sessionId === null) throw new PayloadProblem("it names no session (session_id)");
  const toolName = textIn(read, "tool_name");
  if ((moment === "before" || moment === "after") && toolName === null) {
    throw new PayloadProblem("it names no tool (tool_name)");
  }
  const { workspace_roots: roots, tool_input: given, tool_response: response, tool_output: output } = read;
  const [root] = Array.isArray(roots) ? (roots as readonly unknown[]) : [];
  const input = parsedInput(given ?? {});
  const home = resolve(textIn(read, "cwd") ?? (typeof root === "string" ? root : here));
  return {
    sessionId,
    subagent: textIn(read, "agent_id") ?? textIn(read, "subagent_id"),
    cwd: resolve(home, folderIn(input) ?? "."),
    home,
    toolName: toolName ?? "",
    toolInput: input,
    toolUseId: textIn(read, "tool_use_id"),
    prompt: textIn(read, "prompt"),
    transcript: textIn(read, "transcript_path"),
    toolResponse: response ?? output ?? null,
  };
}

/** Where a shell is to run its command: each has its own word for it. */
function folderIn(input: Readonly<Record<string, unknown>>): string | null {
  const folders = ["working_directory", "workdir", "dir_path", "directory"].map((field) => textIn(input, field));
  return folders.find((folder) => folder !== null && !folder.includes("\0")) ?? null;
}

/** Some send the arguments as they came from the model: as text. A text that is not JSON is a patch or a command. */
function parsedInput(value: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  if (typeof value !== "string") throw new PayloadProblem("its tool_input is not an object");
  try {
    const read: unknown = JSON.parse(value);
    if (isRecord(read)) return read;
  } catch {
    // Taken as it is.
  }
  return { command: value };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textIn(record: Readonly<Record<string, unknown>>, field: string): string | null {
  const value = record[field];
  return typeof value === "string" && value !== "" ? value : null;
}
