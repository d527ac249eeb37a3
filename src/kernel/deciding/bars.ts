/** Why nothing can be leased until somebody acts (W9): a suspended tenant, a paused agent, a fence, a cell that is not ready. */

import type { Resource } from "../contract/records.ts";
import type { PauseReason, Verdict } from "../contract/replies.ts";
import { search } from "../index/resource-search.ts";
import { type AgentEntry, findRoot, type ResourceEntry, type TenantEntry } from "../memory/state.ts";
import type { ResourceName } from "../names/resource-name.ts";
import type { Manifest } from "./manifest.ts";

export type Bar = Extract<Verdict, { readonly type: "paused" }>;

/** W9: somebody must act first, whatever is asked for. */
export function findStandingBar(tenant: TenantEntry, agent: AgentEntry): Bar | null {
  if (tenant.record.suspended) return bar("tenant_suspended", "The tenant is suspended; its operator can resume it.");
  if (!agent.record.pausedByOperator) return null;
  return bar("agent_paused", "The agent was paused; a supervisor can unpause it.");
}

export function findBar(tenant: TenantEntry, { claims }: Manifest): Bar | null {
  if (tenant.resources.size === 0) return null;
  for (const { claim } of claims) {
    const bar = barOn(tenant, claim.name);
    if (bar !== null) return bar;
  }
  return null;
}

/** Why nothing can be leased on a name: a fence, a withdrawal, or a cell that is not there to set it up. */
export function barOn(tenant: TenantEntry, name: ResourceName): Bar | null {
  const fencedOne = findResource(tenant, name, ({ record }) => record.fenced);
  const closed = fencedOne ?? findResource(tenant, name, ({ record }) => record.withdrawn);
  if (closed !== undefined) {
    const { name: text } = closed.record;
    return fencedOne === undefined
      ? bar("resource_withdrawn", `${text} was withdrawn; declare it again.`, text)
      : bar("resource_fenced", `${text} is fenced; an operator must reset it.`, text);
  }
  const resource = tenant.cells.size === 0 ? undefined : tenant.resources.get(name.text);
  const notReady = resource === undefined ? null : whyNotReady(tenant, resource.record);
  return notReady === null ? null : bar("cell_not_ready", notReady, name.text);
}

export function bar(reason: PauseReason, detail: string, resource: string | null = null): Bar {
  return { type: "paused", reason, detail, resource };
}

/**
 * Why nothing can be set up on it now, in words; null: it can. A cell that was named by hand and never enrolled is
 * somebody's own program, for which a supervisor reports: whether it is there only its answer in time can tell.
 */
export function whyNotReady({ cells }: TenantEntry, { name, cell: id, fault }: Resource): string | null {
  const cell = id === null ? undefined : cells.get(id)?.record;
  if (cell === undefined) return null;
  if (cell.withdrawn) return `The cell ${cell.id} of ${name} was withdrawn; a supervisor can readmit it.`;
  if (cell.state === "GONE") return `The cell ${cell.id} of ${name} is gone: ${cell.goneReason ?? "no reason given"}.`;
  return fault === null ? null : `The cell ${cell.id} cannot serve ${name}: ${fault}.`;
}

/** Of the declared resources that overlap with the name and match, the first by name. */
export function findResource(
  tenant: TenantEntry,
  name: ResourceName,
  matches: (resource: ResourceEntry) => boolean,
): ResourceEntry | undefined {
  if (tenant.resources.size === 0) return undefined;
  const root = findRoot(tenant, name.type);
  if (root === undefined) return undefined;
  let found: ResourceEntry | undefined;
  search(root, name, {
    visit(node) {
      const resource = node.mark as ResourceEntry | null;
      if (resource === null || !matches(resource)) return false;
      if (found === undefined || resource.record.name < found.record.name) found = resource;
      return false;
    },
    below: (_node, branch) => (branch.marks > 0 ? "enter" : "skip"),
  });
  return found;
}
