/** How hooks start the command line: by its name where that works for everybody, else by where it lies. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GuardedTool } from "../payload.ts";
import { quoted } from "../words.ts";

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

export function findProgram(root: string, given: string | null): Program {
  if (given !== null) return () => given;
  if (existsSync(join(root, local)) && works(join(root, local))) return (tool) => `${projectRoots[tool]}${local}`;
  if (works("leasehold")) return () => "leasehold";
  // From src/guard/install, and from dist/guard/install.
  const binary = fileURLToPath(new URL("../../../bin/leasehold.cjs", import.meta.url));
  return () => `${quoted(process.execPath)} ${quoted(binary)}`;
}

/** True for text that is good on this machine alone. */
export function isMachineOnly(program: string): boolean {
  return /^["']?\//.test(program);
}

function works(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore", timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}
