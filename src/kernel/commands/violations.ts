/**
 * A write that went past a lease, as a guard found it when it was done. Nothing can be undone here, and nobody is punished:
 * it is an event about the lease, so that its holder and all watchers learn of it at once.
 */

import type { ReportViolation } from "../contract/commands.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { emitLease } from "../leases/lease-life.ts";
import { type AgentEntry, nameOf, type Turn } from "../memory/state.ts";
import { namesOverlap } from "../names/pattern.ts";
import { parseResourceName } from "../names/resource-name.ts";

export function reportViolation(turn: Turn, agent: AgentEntry, command: ReportViolation): Reply {
  const { tenant } = turn;
  const { leaseId } = command;
  const lease = tenant.leases.get(leaseId);
  if (lease === undefined) return refuse("lease_unknown", "There is no such lease.", { leaseId });
  const name = parseResourceName(command.resource);
  if ("problem" in name) return refuse("invalid_resource", name.problem, { field: "resource" });
  if (lease.holder === agent || !namesOverlap(nameOf(lease), name)) {
    return refuse("invalid_resource", "That lease does not stand against this write; name the one that does.", {
      field: "resource",
    });
  }
  emitLease(turn, lease, "lease.violated", `${agent.record.id} wrote ${name.text}`);
  return { type: "lease", lease: lease.record };
}
