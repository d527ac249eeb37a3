/** One call of a hook: who calls, about what, and what it takes to answer. */
import { join } from "node:path";
import type { Asking } from "./leasing.ts";
import { type GuardedTool, type Payload, toolTitles } from "./payload.ts";
import { readPrivate } from "./private-files.ts";
import type { Environment } from "./settings.ts";

export interface HookCall extends Asking {
  readonly tool: GuardedTool;
  readonly payload: Payload;
  readonly environment: Environment;
  /** Of the hook's own process. */
  readonly pid: number;
}

/** What others read when they are in its way. */
export function purposeOf({ tool, payload, session, settings }: HookCall): string {
  const doing = `${payload.toolName || "work"} in ${toolTitles[tool]}`;
  if (settings.purpose === "tool") return doing;
  return readPrivate(join(session.folder, "purpose")) ?? doing;
}
