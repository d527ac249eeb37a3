/** The coding agents that are really there: a program on the path, or a folder of theirs in the repository or at home. */
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type GuardedTool, guardedTools } from "../payload.ts";
import type { Environment } from "../settings.ts";

export interface FoundTool {
  readonly tool: GuardedTool;
  /** What was seen of it. */
  readonly sign: string;
}

const programs: Readonly<Record<GuardedTool, readonly string[]>> = {
  claude: ["claude"],
  codex: ["codex"],
  cursor: ["cursor", "cursor-agent"],
  gemini: ["gemini"],
};
const folders: Readonly<Record<GuardedTool, readonly string[]>> = {
  claude: [".claude", "CLAUDE.md"],
  codex: [".codex"],
  cursor: [".cursor", ".cursorrules"],
  gemini: [".gemini", "GEMINI.md"],
};

export function findTools(root: string, environment: Environment): readonly FoundTool[] {
  const { PATH = "", HOME = "" } = environment;
  return guardedTools.flatMap((tool) => {
    const program = programs[tool].find((name) =>
      PATH.split(delimiter).some((folder) => isProgram(join(folder, name))),
    );
    const [first = ""] = folders[tool];
    const inside = folders[tool].find((name) => existsSync(join(root, name)));
    const atHome = HOME !== "" && HOME !== root && existsSync(join(HOME, first)) ? `~/${first}` : undefined;
    const sign = program ?? inside ?? atHome;
    return sign === undefined ? [] : [{ tool, sign }];
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
