/** Every operation that has no tool of its own gets one under its own name, so that MCP can do all that HTTP can. */
import type { Operation, Tag } from "../../protocol/operation.ts";
import { operations } from "../../protocol/operations.ts";
import type { Body } from "../control-plane.ts";
import { counted } from "../sentences.ts";
import { type Tool, toolsIn } from "../tool.ts";
import type { Toolset } from "../toolsets.ts";

const setOf: Readonly<Partial<Record<Tag, Toolset>>> = {
  Agents: "leases",
  Acquiring: "leases",
  Holding: "leases",
  Resources: "resources",
  Tasks: "tasks",
  Receipts: "tasks",
};

/** These take something away from others, or cannot be undone. */
const final: ReadonlySet<string> = new Set([
  "fence_resource",
  "withdraw_resource",
  "suspend_tenant",
  "delete_key",
  "rotate_key",
  "assign_name",
  "set_policy",
  "delete_policy",
  "pause_agent",
  "cancel_tasks",
]);
/** Repeating these adds more. */
const growing: ReadonlySet<string> = new Set([
  "create_tasks",
  "submit_receipts",
  "create_key",
  "renew_lease",
  "redrive_task",
  "redrive_tasks",
  "rotate_token_keys",
]);

export function restTools(written: readonly Tool[]): readonly Tool[] {
  const covered = new Set(written.flatMap((tool) => tool.operations));
  return operations.filter((operation) => isForModels(operation) && !covered.has(operation)).flatMap(restTool);
}

/** Not what only cells send, nor what carries bytes, nor heartbeats of many tasks: a model works on one. */
export function isForModels({ name, kind, roles, takesBytes }: Operation): boolean {
  if (name === "heartbeat_tasks") return false;
  return kind !== "edge" && !takesBytes && roles !== "anyone" && roles.includes("operator");
}

function restTool({ name, tag, summary, description }: Operation): readonly Tool[] {
  const effect = final.has(name) ? ("ends" as const) : growing.has(name) ? ("adds" as const) : null;
  const spec = {
    name,
    title: summary,
    ...(effect !== null && { effect }),
    description: `${summary}. ${description}`,
    sentence: (body: Body) => {
      const lists = Object.keys(body).filter((field) => Array.isArray(body[field]));
      const [only] = lists;
      if (lists.length !== 1 || only === undefined) return "Done; the structured content shows the new state.";
      return counted(body, only, singular(only.replaceAll("_", " ")), `No ${only.replaceAll("_", " ")}.`);
    },
  };
  return toolsIn(setOf[tag] ?? "operating", [spec]);
}

/** Of the names of lists in answers: agents, task types, keys. */
function singular(nouns: string): string {
  return nouns.replace(/s$/, "");
}
