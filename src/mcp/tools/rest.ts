/** Every operation that has no tool of its own gets one under its own name: nothing can be asked only in other ways. */
import type { Operation, Tag } from "../../protocol/operation.ts";
import { operations } from "../../protocol/operations.ts";
import { listIn } from "../sentences.ts";
import { type Effect, type Tool, type Toolset, toolOf } from "../tool.ts";

const setOf: Readonly<Partial<Record<Tag, Toolset>>> = {
  Agents: "leases",
  Acquiring: "leases",
  Holding: "leases",
  Resources: "resources",
  Tasks: "tasks",
  Receipts: "tasks",
};

/** What takes something away from others, or cannot be undone. */
const final: ReadonlySet<string> = new Set([
  "fence_resource",
  "withdraw_resource",
  "suspend_tenant",
  "delete_key",
  "pause_agent",
]);
/** Done twice, these do more. */
const growing: ReadonlySet<string> = new Set([
  "create_tasks",
  "submit_receipts",
  "create_key",
  "renew_lease",
  "redrive_task",
  "rotate_token_keys",
]);

export function restTools(written: readonly Tool[]): readonly Tool[] {
  const covered = new Set(written.flatMap((tool) => tool.operations));
  return operations.filter((operation) => isForModels(operation) && !covered.has(operation)).map(restTool);
}

/** What a cell says to the control plane is between the two of them, and bytes have no place in a model's words. */
export function isForModels({ kind, roles, takesBytes }: Operation): boolean {
  return kind !== "edge" && !takesBytes && roles !== "anyone" && roles.includes("operator");
}

function restTool({ name, tag, summary, description, kind }: Operation): Tool {
  return toolOf({
    name,
    title: summary,
    set: setOf[tag] ?? "operating",
    effect: effectOf(name, kind),
    operation: name,
    description: `${summary}. ${description}`,
    sentence: (body) => {
      const lists = Object.keys(body).filter((field) => Array.isArray(body[field]));
      const [only] = lists;
      if (lists.length !== 1 || only === undefined) return "Done; the structured content shows how it is now.";
      return `${listIn(body, only).length} ${only.replaceAll("_", " ")}.`;
    },
  });
}

function effectOf(name: string, kind: Operation["kind"]): Effect {
  if (kind === "query") return "reads";
  if (final.has(name)) return "ends";
  return growing.has(name) ? "adds" : "sets";
}
