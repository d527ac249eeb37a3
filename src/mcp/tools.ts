/** All tools, in the order in which they are listed: first what an agent needs, then what others do. */
import type { Operation } from "../protocol/operation.ts";
import type { Tool } from "./tool.ts";
import { agentTools } from "./tools/agents.ts";
import { leaseTools } from "./tools/leases.ts";
import { restTools } from "./tools/rest.ts";
import { taskTools } from "./tools/tasks.ts";
import type { Toolset } from "./toolsets.ts";

export type Role = Exclude<Operation["roles"], "anyone">[number];

const written = [...agentTools, ...leaseTools, ...taskTools];

export const tools: readonly Tool[] = [...written, ...restTools(written)];

export interface Choice {
  /** null: all. */
  readonly sets: readonly Toolset[] | null;
  /** null: everybody's. */
  readonly role: Role | null;
  /** Without a key everybody is the operator: what would lock others out is not for a model to do (M6). */
  readonly hasKey: boolean;
}

/** Only what the caller could do, and wants to see: each tool costs a model room. */
export function selectTools(all: readonly Tool[], { sets, role, hasKey }: Choice): readonly Tool[] {
  return all.filter(
    (tool) =>
      (sets === null || sets.includes(tool.set)) &&
      (role === null || mayUse(tool, role)) &&
      (hasKey || !tool.operations.some(({ locksOut }) => locksOut)),
  );
}

/** A key that registers agents sees what their tokens may do: they are given as an argument. */
function mayUse({ operations }: Tool, role: Role): boolean {
  return operations.every(({ roles }) => roles === "anyone" || roles.includes(role));
}
