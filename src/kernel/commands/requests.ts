/** Asking for a request, and canceling it (W4, W8, W10). */

import { pauseIfBare } from "../agents/agent-life.ts";
import type { Actor, CancelRequest, CollectRequest } from "../contract/commands.ts";
import { leaseIdWith, suffixOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import { refuse } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import { mayActForHolder } from "../memory/actors.ts";
import type { LeaseEntry, Turn } from "../memory/state.ts";
import { describeRequest } from "../requests/describe.ts";
import { endBinding, endLeases, endWait, liveLeasesOf } from "../requests/request-life.ts";
import { endRequestIfSwept } from "../requests/sweep.ts";
import { liveLease } from "./holding.ts";

export function collectRequest(turn: Turn, command: CollectRequest): Reply {
  const { tenant } = turn;
  const request = tenant.requests.get(command.requestId);
  if (request !== undefined) {
    endRequestIfSwept(turn, request);
    const { holder } = request;
    const collects = command.collect ?? isOwn(command.actor);
    return mayActForHolder(command.actor, holder) ?? describeRequest(turn, request, collects);
  }
  const leases = leasesGrantedAtOnce(turn, command.requestId);
  const [first] = leases;
  if (first === undefined) return requestUnknown();
  const refusal = mayActForHolder(command.actor, first.holder);
  if (refusal !== null) return refusal;
  return {
    type: "granted",
    requestId: command.requestId,
    leases: leases.map((lease) => lease.record),
    warnings: [],
    observation: null,
    claimBy: null,
  };
}

/**
 * W8: the agent itself, or the caller without a credential, who on loopback is everybody. A supervisor or operator with a
 * key looks, and collects nothing.
 */
function isOwn({ role, keyId }: Actor): boolean {
  return role === "agent" || keyId === undefined;
}

function requestUnknown() {
  return refuse("request_unknown", "There is no such request, or it ended long ago; submit it again.", {
    field: "request_id",
  });
}

/** A request that was granted at once and without a key has no record of its own, but its leases carry its id. */
function leasesGrantedAtOnce(turn: Turn, requestId: string): LeaseEntry[] {
  const leases: LeaseEntry[] = [];
  for (let index = 0; index < 2 * limits.intentsMax; index++) {
    const lease = liveLease(turn, leaseIdWith(suffixOf(requestId), index));
    if (lease !== undefined) leases.push(lease);
  }
  return leases;
}

export function cancelRequest(turn: Turn, command: CancelRequest): Reply {
  const { tenant } = turn;
  const request = tenant.requests.get(command.requestId);
  if (request === undefined) {
    const [first] = leasesGrantedAtOnce(turn, command.requestId);
    if (first === undefined) return requestUnknown();
    return mayActForHolder(command.actor, first.holder) ?? { type: "done" };
  }
  const refusal = mayActForHolder(command.actor, request.holder);
  if (refusal !== null) return refusal;
  endRequestIfSwept(turn, request);
  switch (request.record.state) {
    case "WAITING":
    case "STANDBY":
      endWait(turn, request, "CANCELED", null);
      break;
    case "BINDING":
      endBinding(turn, request, "CANCELED", "canceled");
      break;
    case "GRANTED": {
      // Granted while the cancellation was under way: nobody will come for it.
      const uncollected = liveLeasesOf(tenant, request).filter((lease) => lease.record.claimBy !== null);
      endLeases(turn, uncollected, "RELEASED", "canceled");
      if (request.holder.kind === "agent") pauseIfBare(turn, request.holder);
      break;
    }
    case "DIED":
    case "TIMED_OUT":
    case "CANCELED":
    case "PAUSED":
    case "BIND_FAILED":
      break;
  }
  return { type: "done" };
}
