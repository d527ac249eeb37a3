/** Digests: an agent's checkpoint, and taking it up again (A2 to A5). */
import { commands, digestInput } from "../../kernel/contract/commands.ts";
import { without } from "../../kernel/contract/field.ts";
import { agentId } from "../../kernel/contract/inputs.ts";
import { judgement } from "../../kernel/contract/replies.ts";
import * as shapes from "../leases/shapes.ts";
import { above, acting, reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { inputs, parts } from "../schema/from-fields.ts";
import { choice, integer, list, record, text } from "../schema/schema.ts";

const { command, query } = operationsOf("Agents");

const example = { agent_id: "agt_01jcs8qk2m9x4n7r" };

export const saveDigest = command({
  name: "save_digest",
  method: "PUT",
  path: "/v1/agents/{agent_id}/digest",
  fields: {
    ...inputs({ agentId }, {}),
    ...inputs(digestInput, {
      checkpoint_id: "The caller's name for it.",
      resume_point: "Where to go on.",
      context: "Whatever the agent needs to go on; any JSON, up to 256 KiB.",
      intent_backlog: "What it still has to acquire.",
      resolution_strategy: "RETRY if left out.",
      assumptions: "What the work relies on; judged at resume, unless that names its own (A5).",
    }),
  },
  roles: acting,
  summary: "Saves an agent's checkpoint",
  description: "Replaces the one before. It carries the agent's priority timestamp (A2).",
  example: {
    ...example,
    checkpoint_id: "step-3",
    resume_point: "tests written, login() not yet renamed",
    context: { branch: "rename-login", done: ["src/auth.ts"] },
    intent_backlog: [{ predicate: "MUTATES", resource: "FILE:/shop/src/auth.ts" }],
    resolution_strategy: "RETRY",
  },
  replies: [ok(shapes.digest, "As stored.")],
  errors: ["agent_unknown", "stale_epoch"],
  refine: ({ context }) => findJsonFault(context, "context"),
});

/** Not for readers: a context may hold anything. */
export const getDigest = query({
  name: "get_digest",
  path: "/v1/agents/{agent_id}/digest",
  fields: inputs({ agentId }, {}),
  roles: [...above, "agent"],
  summary: "Shows an agent's checkpoint",
  description: "As it was saved last.",
  example,
  replies: [ok(shapes.digest, "The digest.")],
  errors: ["agent_unknown", "digest_unknown"],
});

export const getObservation = query({
  name: "get_observation",
  path: "/v1/agents/{agent_id}/observation",
  fields: inputs({ agentId }, {}),
  roles: reading,
  summary: "Shows what others did meanwhile",
  description:
    "The update that the agent would get if it went on now (A4), for those who watch it; the agent still gets it. Empty for " +
    "one that is not blind to anything.",
  example,
  replies: [ok(shapes.observationUpdate, "The update.")],
  errors: ["agent_unknown"],
});

const resumed = {
  epoch: integer(),
  agent_token: text({ description: shapes.tokenWords.agent_token }),
  agent_token_expires_in_ms: integer({ description: shapes.tokenWords.agent_token_expires_in_ms }),
  observation_update: shapes.observationUpdate,
  assumptions: list(record(parts(judgement), { title: "JudgedAssumption" }), {
    description:
      "`holds`: the newest reported version is this one. `failed`: it is another, or somebody wrote without a report " +
      "since the agent's own last lease. `unverified`: nothing is known; read it.",
  }),
};

export const resumeAgent = command({
  name: "resume_agent",
  path: "/v1/agents/{agent_id}/resume",
  fields: inputs(commands.resume_agent, { assumptions: "What the agent relies on." }),
  roles: acting,
  summary: "Takes an agent up from its checkpoint",
  description:
    "Epoch + 1 and live leases re-issued, as when registering again. The update tells what others did to the resources " +
    "that the agent holds, waited for, lost, assumes or has in its backlog. Assumptions are judged against the newest " +
    "version ever reported. If one fails, the digest is dropped and the agent is in PLANNING (A3 to A5).",
  example: { ...example, assumptions: [{ resource: "FILE:/shop/src/auth.ts", version: "sha256:9f2c" }] },
  replies: [
    ok(record({ digest: shapes.digest, ...resumed }, { title: "Resumed" }), "Taken up."),
    ok(
      record(
        {
          error: choice(["assumption_failed"]),
          detail: text(),
          failed: list(record(parts(without(judgement, "outcome")))),
          ...resumed,
        },
        { title: "AssumptionFailed" },
      ),
      "Taken up, but an assumption failed.",
      409,
    ),
  ],
  errors: ["agent_unknown", "digest_unknown", "stale_epoch", "assumption_failed"],
});
