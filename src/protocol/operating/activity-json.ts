/** Agents with what they do, and those that wait, as the wire shows them. */
import { type Millis, type Request, request as requestFields } from "../../kernel/contract/records.ts";
import type { AgentActivity } from "../../kernel/views.ts";
import { leaseObject } from "../leases/lease-json.ts";
import { show, type WireObject } from "../schema/convert.ts";
import { isoTime } from "../schema/text.ts";
import { agentState } from "./record-json.ts";

export function activityObject(one: AgentActivity, now: Millis): WireObject {
  const { agent, activity, since, leases, leasesTotal, requests } = one;
  const { id, labels, pausedFor, retryAt, attempts, pausedByOperator } = agent;
  return {
    agent_id: id,
    labels,
    state: agentState(agent),
    activity,
    since: isoTime(since),
    ...(pausedFor !== null && { paused_for: pausedFor }),
    paused_by_operator: pausedByOperator,
    attempts,
    ...(retryAt !== null && { retry_in_ms: Math.max(0, retryAt - now) }),
    leases: leases.map((held) => leaseObject(held, now)),
    leases_total: leasesTotal,
    requests: requests.map((request) => askObject(request, now)),
  };
}

function askObject(request: Request, now: Millis): WireObject {
  const { request_id, state, intents, purpose, submitted_at } = show(requestFields, request);
  return { request_id, state, intents, purpose, submitted_at, times_out_in_ms: Math.max(0, request.timeoutAt - now) };
}
