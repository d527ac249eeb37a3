/** The other records as the wire shows them. They are shown seldom, so objects will do. */
import {
  type Agent,
  type AgentState,
  agent as agentFields,
  cell as cellFields,
  type Millis,
  type Resource,
  request as requestFields,
  resource as resourceFields,
} from "../../kernel/contract/records.ts";
import { blocker } from "../../kernel/contract/replies.ts";
import type { OpenRequest, PolicyVerdict } from "../../kernel/views.ts";
import type { CellView } from "../answers/queries.ts";
import { show, type WireObject } from "../schema/convert.ts";
import { hosted } from "../schema/views.ts";
import type { ResourceState } from "../schema/vocabulary.ts";

/** `returns_to`: the state to which an agent in DIE_RESTART returns (A1). */
export function agentObject(agent: Agent, shown: OwnersShown = {}): WireObject {
  const returns = agent.restarting ? { returns_to: agent.state } : {};
  return { ...show(agentFields, agent), state: agentState(agent), ...returns, ...ownerOf(shown, agent.registeredBy) };
}

interface OwnersShown {
  readonly showsOwners?: boolean;
}

/** L13: the key that a name belongs to, for those above; null: nobody's below them. */
export function ownerOf({ showsOwners = false }: OwnersShown, keyId: string | null): WireObject {
  return showsOwners ? { registered_by: keyId } : {};
}

export function agentState({ state, restarting }: Agent): AgentState | "DIE_RESTART" {
  return restarting ? "DIE_RESTART" : state;
}

export function openRequestObject({ request, wait }: OpenRequest, now: Millis): WireObject {
  const { lease_ids: _leaseIds, ...shown } = show(requestFields, request);
  return {
    ...shown,
    times_out_in_ms: Math.max(0, request.timeoutAt - now),
    ...(wait.type === "waiting" && { position: wait.position }),
    blocked_by: wait.blockers.map((one) => show(blocker, one, { now })),
    blocked_by_total: wait.blockersTotal,
  };
}

/** What a cell reports of a resource is shown only where one hosts it. */
export function resourceObject(resource: Resource): WireObject {
  const { driver, hardware, fault, ...shown } = show(resourceFields, resource);
  return { ...shown, state: resourceState(resource), ...(resource.cell !== null && { driver, hardware, fault }) };
}

export function resourceState({ fenced, withdrawn }: Resource): ResourceState {
  return fenced ? "FENCED" : withdrawn ? "WITHDRAWN" : "READY";
}

/** Why something is not allowed is shown as its refusal would show it. */
export function policyVerdictObject({ isAllowed, policies, results }: PolicyVerdict): WireObject {
  return {
    allowed: isAllowed,
    policies,
    results: results.map(({ action, asked, isAllowed, denial, ttlMsMax }) => ({
      action,
      asked,
      allowed: isAllowed,
      ttl_ms_max: ttlMsMax,
      ...(denial !== null && {
        policy: denial.policy,
        rule: denial.rule ?? null,
        detail: denial.detail,
        allowed_instead: denial.allowed,
      }),
    })),
  };
}

export function cellViewObject({ cell, isConnected, resources }: CellView, shown: OwnersShown = {}): WireObject {
  return {
    ...show(cellFields, cell),
    ...ownerOf(shown, cell.keyId),
    connected: isConnected,
    resources: resources.map(({ resource, leases }) => {
      const ready = resource.fault === null && !resource.fenced && !resource.withdrawn;
      return show(hosted, { ...resource, ready, leases });
    }),
  };
}
