/** Digests: an agent's checkpoint, and taking it up again (A2 to A5). */
import { type Command, digestInput } from "../../kernel/contract/commands.ts";
import { agentId, resourceName, version } from "../../kernel/contract/inputs.ts";
import * as shapes from "../leases/shapes.ts";
import { above, acting } from "../operating/roles.ts";
import { type Input, ok, operationsOf } from "../operation.ts";
import { findJsonFault } from "../schema/free-json.ts";
import { inputs, shape } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, integer, list, nullable, optional, record, type Static, text } from "../schema/schema.ts";

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
    }),
  },
  roles: acting,
  summary: "Saves an agent's checkpoint",
  description: "Replaces the one before. It carries the agent's priority timestamp (A2).",
  example: {
    ...example,
    checkpoint_id: "step-3",
    resume_point: "tests written, login() not yet renamed",
    context: { branch: "rename-login", done: ["src/auth.test.ts"] },
    intent_backlog: [{ predicate: "MUTATES", resource: "FILE:/src/auth.ts" }],
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

const assumption = shape(
  { resource: resourceName, version },
  {},
  { title: "Assumption", description: "The resource is still at this version." },
);

const resumed = {
  epoch: integer(),
  agent_token: text({ description: "The credential of this instance; an older instance's is void." }),
  observation_update: shapes.observationUpdate,
};

export const resumeAgent = command({
  name: "resume_agent",
  path: "/v1/agents/{agent_id}/resume",
  fields: {
    ...inputs({ agentId }, {}),
    assumptions: optional(list(assumption, { maxItems: limits.assumptionsMax })),
  },
  roles: acting,
  summary: "Takes an agent up from its checkpoint",
  description:
    "Epoch + 1 and live leases re-issued, as when registering again. The update tells all that happened since the " +
    "checkpoint to the resources it names or assumes. If an assumption fails, the digest is dropped and the agent is " +
    "in PLANNING (A3 to A5).",
  example: { ...example, assumptions: [{ resource: "FILE:/src/auth.ts", version: "sha256:9f2c" }] },
  replies: [
    ok(record({ digest: shapes.digest, ...resumed }, { title: "Resumed" }), "Taken up."),
    ok(
      record(
        {
          error: choice(["assumption_failed"]),
          detail: text(),
          failed: list(record({ resource: text(), expected: text(), actual: nullable(text()) })),
          ...resumed,
        },
        { title: "AssumptionFailed" },
      ),
      "Taken up, but an assumption failed.",
      409,
    ),
  ],
  errors: ["agent_unknown", "digest_unknown", "stale_epoch", "assumption_failed"],
  decode: (input, { tenant, actor, entropy }): Command => ({
    type: "resume_agent",
    tenant,
    actor,
    entropy,
    agentId: input.agent_id,
    assumed: (input.assumptions ?? []).map((one) => one.resource),
  }),
});

/** The assumptions in the input of a resume, to be compared with what happened. */
export function assumptionsOf(input: Input): readonly Static<typeof assumption>[] {
  const { assumptions } = input;
  return (assumptions ?? []) as readonly Static<typeof assumption>[];
}
