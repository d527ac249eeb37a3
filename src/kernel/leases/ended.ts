/**
 * The kernel knows the living. When it answers `lease_unknown`, whoever runs it looks the lease up in history and asks
 * here what the answer is, so that the rules about ended leases are the kernel's too (L4, L5, L13).
 */

import type { Actor, Command } from "../contract/commands.ts";
import type { EndedLeaseState, Lease } from "../contract/records.ts";
import type { Refusal } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { isAbove } from "../memory/actors.ts";
import { endedRefusal, notHolder } from "./holding.ts";

export function answerForEnded(command: Command, unknown: Refusal, ended: Lease | null): Reply {
  if (ended === null) return unknown;
  if (!maySee(command.actor, ended)) return notHolder(ended.id);
  if (command.type === "release_lease") return { type: "lease", lease: ended };
  if (command.type === "revoke") return { type: "revoked", count: 0 };
  return endedRefusal(ended.id, ended.state as EndedLeaseState, ended.endReason);
}

function maySee(actor: Actor, lease: Lease): boolean {
  return isAbove(actor) || actor.agentId === lease.agentId;
}
