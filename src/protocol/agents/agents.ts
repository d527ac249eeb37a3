/** Agents: registering, moving between states, pausing (A1, A3, L8, L9, W9). */

import { commands } from "../../kernel/contract/commands.ts";
import { choice, optional } from "../../kernel/contract/field.ts";
import { agentId } from "../../kernel/contract/inputs.ts";
import { wireAgentStates } from "../../kernel/contract/records.ts";
import { registeredAnswer, verifiedAnswer } from "../answers/reply-json.ts";
import * as shapes from "../leases/shapes.ts";
import { above, acting, reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { list, record, time } from "../schema/schema.ts";

const { command, query } = operationsOf("Agents");

const agentErrors = ["agent_unknown", "stale_epoch"] as const;
const example = { agent_id: "agt_01jcs8qk2m9x4n7r" };

export const registerAgent = command({
  name: "register_agent",
  path: "/v1/agents",
  roles: acting,
  summary: "Registers an agent, or takes one up",
  description:
    "Without an id the agent is given one. With an id that is known, this is another instance of the same agent: same " +
    "priority timestamp, epoch + 1, a new token; the older instance is refused from then on, and the agent's live " +
    "leases are re-issued with new fences (A3). An agent belongs to the key that registered it: only that key, the agent's " +
    "present token, a supervisor or an operator may take it up (L13).",
  example: { agent_id: "refactorer-7", labels: { model: "opus", host: "build-3" } },
  replies: [ok(shapes.registered, "Registered.", 201), ok(shapes.registered, "Taken up by this instance.")],
  errors: ["lease_denied", "stale_epoch"],
  encode: registeredAnswer,
});

export const listAgents = query({
  name: "list_agents",
  path: "/v1/agents",
  fields: {
    ...inputs({ state: optional(choice(wireAgentStates)) }, { state: "Only agents in this state." }),
    ...paging,
  },
  roles: reading,
  summary: "Lists agents",
  description: "The tenant's agents, a page at a time.",
  example: { state: "EXECUTING", limit: 50 },
  replies: [ok(shapes.page("agents", shapes.agent), "One page.")],
});

export const getAgent = query({
  name: "get_agent",
  path: "/v1/agents/{agent_id}",
  fields: inputs({ agentId }, {}),
  roles: reading,
  summary: "Shows an agent",
  description: "Its state, priority timestamp, epoch and labels.",
  example,
  replies: [ok(shapes.agent, "The agent.")],
  errors: ["agent_unknown"],
});

export const transitionAgent = command({
  name: "transition_agent",
  path: "/v1/agents/{agent_id}/transition",
  fields: inputs(commands.transition_agent, { to: "The state to go to." }),
  roles: acting,
  summary: "Moves an agent to another state",
  description:
    "Going to PLANNING, COMPLETED or ABORTED ends the agent's leases and requests. Going to EXECUTING needs a live lease " +
    "(A1), and is answered with the observation update (A4).",
  example: { ...example, to: "VERIFYING" },
  replies: [ok(shapes.movedAgent, "The agent, in its new state.")],
  errors: [...agentErrors, "invalid_transition"],
});

export const restartAgent = command({
  name: "restart_agent",
  path: "/v1/agents/{agent_id}/restart",
  roles: acting,
  summary: "Announces that an agent restarts",
  description:
    "The agent is in DIE_RESTART until it calls verify-all. A lease that expires meanwhile is held for 15 s, once, " +
    "but not honoured (L9).",
  example,
  replies: [ok(shapes.agent, "The agent, in DIE_RESTART.")],
  errors: agentErrors,
});

export const pauseAgent = command({
  name: "pause_agent",
  path: "/v1/agents/{agent_id}/pause",
  roles: above,
  summary: "Pauses an agent",
  description: "Until it is unpaused, what it acquires is answered PAUSED (W9). What it holds stays.",
  example,
  replies: [ok(shapes.agent, "The agent.")],
  errors: ["agent_unknown"],
});

export const unpauseAgent = command({
  name: "unpause_agent",
  path: "/v1/agents/{agent_id}/unpause",
  roles: above,
  summary: "Lets a paused agent go on",
  description: "Undoes a pause; it changes nothing for an agent that is not paused.",
  example,
  replies: [ok(shapes.agent, "The agent.")],
  errors: ["agent_unknown"],
});

export const verifyAll = command({
  name: "verify_all",
  path: "/v1/agents/{agent_id}/verify-all",
  roles: acting,
  summary: "Asks for the truth about an agent's leases",
  description:
    "The state of all, or of the named, leases, ended ones included; an id that never was has state UNKNOWN. " +
    "It ends DIE_RESTART, after which a heartbeat revives what is still held (L8, L9).",
  example: { ...example, lease_ids: ["lse_01jcs8qm5t6w8y0a"] },
  replies: [ok(record({ now: time(), leases: list(shapes.verified), ...shapes.leasesTotal }), "What is true now.")],
  errors: agentErrors,
  encode: verifiedAnswer,
});

export const renewAgentToken = command({
  name: "renew_agent_token",
  path: "/v1/agents/{agent_id}/token",
  roles: acting,
  summary: "Gives an agent's instance a new token",
  description:
    "For the present instance, before its token runs out: neither epoch nor leases change. It is drawn with the key of the " +
    "token that is shown, or with the key that is shown.",
  example,
  replies: [ok(shapes.registered, "The new token; the one before stays good until its own end.")],
  errors: agentErrors,
  encode: registeredAnswer,
});
