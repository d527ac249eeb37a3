/** The fields that are not part of a command but of many operations, and the shape of an intent. */
import { agentId as agentIdField, intentInput, resourceName } from "../../kernel/contract/inputs.ts";
import { inputs, shape } from "./from-fields.ts";
import { limits } from "./limits.ts";
import { integer, optional, text } from "./schema.ts";

export const intent = shape(
  intentInput,
  {
    units: "Units of a counted resource; 1 if left out.",
    to: "The target of a rename; with RENAMES only.",
    pick: "`any`: one of the declared resources that the pattern matches, on a ready cell and with room.",
  },
  { title: "Intent", description: "One predicate on one resource." },
);

/** For operations and tools that describe their input themselves. */
export const { agent_id: agentId, resource } = inputs({ agentId: agentIdField, resource: resourceName }, {});

/** For operations whose answer can wait for something new. */
export const holding = {
  hold_ms: optional(
    integer({
      maximum: limits.holdMsMax,
      description: "How long the server may hold its answer until there is something new.",
    }),
  ),
};

/** For every list. */
export const paging = {
  limit: optional(
    integer({
      minimum: 1,
      maximum: limits.pageMax,
      description: `At most this many; ${limits.pageDefault} if left out.`,
    }),
  ),
  cursor: optional(text({ maxLength: limits.cursorLengthMax, description: "The `next_cursor` of the page before." })),
};
