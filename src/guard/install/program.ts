/** How hooks start the command line: by its name where that works for everybody, else by where it lies. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GuardedTool } from "../payload.ts";
import { quoted } from "../words.ts";
import type { McpEndpoint } from "./mcp-entries.ts";

const isWindows = process.platform === "win32";

export type Program = (tool: GuardedTool | "git") => string;

/** Where each tool says its project is; hooks may be run in any folder of it. */
const projectRoots: Readonly<Record<GuardedTool | "git", string>> = {
  claude: '"$CLAUDE_PROJECT_DIR"/',
  gemini: '"$GEMINI_PROJECT_DIR"/',
  codex: '"$(git rev-parse --show-toplevel)"/',
  git: '"$(git rev-parse --show-toplevel)"/',
  cursor: "",
};
const local = "node_modules/.bin/leasehold";
/** From src/guard/install, and from dist/guard/install. */
const binary = fileURLToPath(new URL("../../../bin/leasehold.cjs", import.meta.url));
/** The same command as a shell script that hands a hook's call to the helper without Node; other commands it leaves to Node. */
const script = fileURLToPath(new URL("../../../bin/leasehold-hook", import.meta.url));
const nodeVariable = "LEASEHOLD_NODE";

/** git's hooks run once for a commit: they go by Node, as text that everybody knows. */
export function findProgram(root: string, given: string | null): Program {
  if (given !== null && given !== "leasehold") return () => given;
  const named = (tool: GuardedTool | "git", name: string) => (tool === "git" || isWindows ? name : `${name}-hook`);
  if (given !== null) return (tool) => named(tool, given);
  if (existsSync(join(root, local)) && works(join(root, local)))
    return (tool) => `${projectRoots[tool]}${named(tool, local)}`;
  if (works("leasehold")) {
    const isWhole = !isWindows && works("leasehold-hook");
    return (tool) => (isWhole ? named(tool, "leasehold") : "leasehold");
  }
  const here = `${quoted(process.execPath)} ${quoted(binary)}`;
  return (tool) =>
    tool === "git" || isWindows ? here : `${nodeVariable}=${quoted(process.execPath)} ${quoted(script)}`;
}

/** How a coding agent starts the MCP server: it runs a program with arguments, in the project's folder, without a shell. */
export function mcpProgram(root: string, given: string | null): McpEndpoint {
  if (given !== null) {
    const [command = given, ...args] = given.split(" ");
    return { command, args: [...args, "mcp"] };
  }
  if (existsSync(join(root, local)) && works(join(root, local))) return { command: local, args: ["mcp"] };
  if (works("leasehold")) return { command: "leasehold", args: ["mcp"] };
  return { command: process.execPath, args: [binary, "mcp"] };
}

/** True for text that is good on this machine alone. */
export function isMachineOnly(program: string): boolean {
  return /^["']?\//.test(withoutNode(program));
}

/** A shell's condition for the program to be there. */
export function isThereWords(program: string): string {
  const [, script] = /^(?:'[^']*'|\S+) ('[^']*\.cjs'|\S+\.cjs)$/.exec(program) ?? [];
  if (script !== undefined) return `[ -e ${script} ]`;
  const [first = program] = /^(?:"[^"]*"|'[^']*'|[^\s"'])+/.exec(withoutNode(program)) ?? [];
  return `command -v ${first} >/dev/null 2>&1`;
}

function withoutNode(program: string): string {
  return program.replace(new RegExp(`^${nodeVariable}=(?:'[^']*'|\\S+) `), "");
}

/**
 * The search path that a coding agent will have later. npm and npx put folders of their own in front while a command runs: a
 * `leasehold` that is found there alone is gone when `npx leasehold init` has ended, and hooks that name it would let
 * everything pass.
 */
export function lastingPath(path: string): string {
  const isPassing = (folder: string) => /[/\\](?:node_modules[/\\]\.bin|node-gyp-bin)[/\\]?$/.test(folder);
  return path
    .split(delimiter)
    .filter((folder) => !isPassing(folder))
    .join(delimiter);
}

function works(program: string): boolean {
  const { PATH = "" } = process.env;
  try {
    const env = { ...process.env, PATH: lastingPath(PATH) };
    execFileSync(program, ["--version"], { stdio: "ignore", timeout: 10_000, env });
    return true;
  } catch {
    return false;
  }
}
