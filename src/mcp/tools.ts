/** All tools, in the order in which they are listed: first what an agent needs, then what others do. */
import type { Operation } from "../protocol/operation.ts";
import type { Tool } from "./tool.ts";
import { agentTools } from "./tools/agents.ts";
import { coreTools } from "./tools/core.ts";
import { leaseTools } from "./tools/leases.ts";
import { restTools } from "./tools/rest.ts";
import { taskTools } from "./tools/tasks.ts";
import type { Toolset } from "./toolsets.ts";

export type Role = Exclude<Operation["roles"], "anyone">[number];

const written = [...agentTools, ...leaseTools, ...taskTools];

export const tools: readonly Tool[] = [...written, ...restTools(written)];

/** Some of the tools, in few words. */
const core = coreTools(tools);

export interface Choice {
  readonly sets: readonly Toolset[];
  /** null: everybody's. */
  readonly role: Role | null;
  /** Without a key everybody is the operator: what an operator does is not for a model to do then (M6). */
  readonly hasKey: boolean;
}

/** Only what the caller could do, and wants to see: each tool costs a model room. */
export function selectTools({ sets, role, hasKey }: Choice): readonly Tool[] {
  const whole = tools.filter(({ set }) => sets.includes(set));
  const names = new Set(whole.map(({ name }) => name));
  const brief = sets.includes("core") ? core.filter(({ name }) => !names.has(name)) : [];
  return [...brief, ...whole].filter(
    (tool) => (role === null || mayUse(tool, role)) && (hasKey || tool.set !== "operating"),
  );
}

/** A key that registers agents sees what their tokens may do: they are given as an argument. */
export function mayUse({ operations }: Tool, role: Role): boolean {
  return operations.every(({ roles }) => roles === "anyone" || roles.includes(role));
}
