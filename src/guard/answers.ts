/** What a hook has to say, in the words that each tool understands. */
import type { GuardedTool, Moment } from "./payload.ts";

export interface HookAnswer {
  /** The tool must not run. */
  readonly deny: string | null;
  /** The tool has done what it must not: the agent gets it as an error, which it cannot overlook. */
  readonly violation: string | null;
  /** For the agent to know. */
  readonly context: string | null;
  /** For the person who sits there. */
  readonly notice: string | null;
}

export const pass: HookAnswer = { deny: null, violation: null, context: null, notice: null };

export function answerText(tool: GuardedTool, event: string, moment: Moment, answer: HookAnswer): string {
  return `${JSON.stringify(tool === "cursor" ? cursorAnswer(moment, answer) : hookAnswer(tool, event, moment, answer))}\n`;
}

function hookAnswer(tool: GuardedTool, event: string, moment: Moment, answer: HookAnswer): object {
  const { deny, violation, context, notice } = answer;
  const message = notice === null ? {} : { systemMessage: notice };
  if (deny !== null && tool === "gemini") return { decision: "deny", reason: deny, ...message };
  if (deny !== null) {
    const specific = { hookEventName: event, permissionDecision: "deny", permissionDecisionReason: deny };
    return { hookSpecificOutput: specific, ...message };
  }
  // Gemini would hide what the tool answered behind a reason; there, it is added to it.
  if (violation !== null && tool !== "gemini") return { decision: "block", reason: violation, ...message };
  const added = [violation, context].filter((text) => text !== null).join("\n");
  if (added === "" || (moment !== "after" && moment !== "start")) return message;
  return { hookSpecificOutput: { hookEventName: event, additionalContext: added }, ...message };
}

function cursorAnswer(moment: Moment, { deny, violation, context, notice }: HookAnswer): object {
  if (deny !== null) return { permission: "deny", user_message: deny, agent_message: deny };
  const added = [violation, context].filter((text) => text !== null).join("\n");
  return {
    ...(added !== "" && (moment === "after" || moment === "start") && { additional_context: added }),
    ...(notice !== null && { user_message: notice }),
  };
}
