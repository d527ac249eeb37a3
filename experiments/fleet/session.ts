/** A coding agent's session as its tool sees it: hooks before and after each tool, and one at the end of a turn. */
import { join } from "node:path";
import type { Place } from "./repository.ts";

export type HookDecision =
  | { readonly isDenied: false }
  | { readonly isDenied: true; readonly why: "stale" | "unanswered" | "held" };

export interface Session {
  /** Reserves a file, as a command that the agent runs. */
  claim(file: string): Promise<HookDecision>;
  read(file: string): Promise<string>;
  /** Runs the hook before a write; if it is allowed, `wrote` runs the one after it. */
  mayWrite(file: string): Promise<HookDecision>;
  wrote(file: string, text: string): Promise<void>;
  endTurn(): Promise<void>;
}

export function openSession(place: Place, id: string): Session {
  const path = (file: string) => join(place.root, file);
  const hook = async (event: string, more: object): Promise<HookDecision> => {
    const payload = { session_id: id, cwd: place.root, hook_event_name: event, permission_mode: "default", ...more };
    const { code, stdout } = await place.shell(place.command(event), JSON.stringify(payload));
    if (code !== 0) throw new Error(`a hook ended with ${code}: ${stdout}`);
    const { hookSpecificOutput: said } = JSON.parse(stdout) as {
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
  return {
    claim: (file) => hook("PreToolUse", tool("Bash", { command: `leasehold guard claim ${file}` })),
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
  };
}
