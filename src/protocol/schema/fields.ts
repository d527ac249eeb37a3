/** The fields that many operations share, each with its bounds, its words and the code of a value out of bounds. */
import { limits } from "./limits.ts";
import { choice, flag, integer, list, map, optional, record, text } from "./schema.ts";
import { predicates } from "./vocabulary.ts";

export const agentId = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "The agent's id.",
  "x-error": "invalid_agent_id",
});

export const leaseId = text({ minLength: 1, maxLength: limits.idLengthMax, description: "The lease's id." });

export const leaseIds = list(leaseId, {
  maxItems: limits.leaseIdsMax,
  description: "Ids of leases of this agent; left out: all of them.",
});

export const tenantId = text({
  minLength: 1,
  maxLength: limits.idLengthMax,
  description: "The tenant's id.",
  "x-error": "invalid_tenant_id",
});

export const resource = text({
  minLength: 1,
  maxLength: limits.resourceLengthMax,
  description:
    "`TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; " +
    "`/d/**` at the end leases `/d` and all below it.",
  "x-error": "invalid_resource",
});

export const predicate = choice(predicates, {
  description: "What the holder intends to do with the resource.",
  "x-error": "invalid_predicate",
});

export const purpose = text({
  maxLength: limits.purposeLengthMax,
  description: "Why, in the agent's words; shown to whoever is in each other's way.",
  "x-error": "invalid_purpose",
});

export const reason = text({
  minLength: 1,
  maxLength: limits.reasonLengthMax,
  description: "Why, for those whom it concerns.",
  "x-error": "invalid_reason",
});

export const version = text({
  maxLength: limits.versionLengthMax,
  description: "What the resource is now (a hash, or any text), for those who resume later.",
  "x-error": "invalid_version",
});

export const intent = record(
  {
    predicate,
    resource,
    units: optional(
      integer({
        minimum: 1,
        maximum: limits.unitsMax,
        description: "Units of a counted resource; 1 if left out.",
        "x-error": "invalid_units",
      }),
    ),
    to: optional(
      text({
        minLength: 1,
        maxLength: limits.resourceLengthMax,
        description: "Where a rename goes; with RENAMES only.",
        "x-error": "invalid_target",
      }),
    ),
    pick: optional(
      choice(["any"], {
        description: "`any`: one of the declared resources that the pattern matches, on a ready cell and with room.",
      }),
    ),
  },
  { title: "Intent", description: "One predicate on one resource." },
);

export const labels = map(
  text({ maxLength: limits.labelLengthMax, "x-error": "invalid_labels" }),
  { minLength: 1, maxLength: limits.labelLengthMax },
  limits.labelsMax,
  { description: "Names and values of the caller's choice.", "x-error": "invalid_labels" },
);

export const activity = flag({ description: "Whether the agent is at work, for idle detection (L10)." });

export const holdMs = integer({
  maximum: limits.holdMsMax,
  description: "How long the server may hold its answer until there is something new.",
});

/** What every list takes. */
export const paging = {
  limit: optional(
    integer({
      minimum: 1,
      maximum: limits.pageMax,
      description: `At most so many; ${limits.pageDefault} if left out.`,
    }),
  ),
  cursor: optional(text({ maxLength: limits.cursorLengthMax, description: "The `next_cursor` of the page before." })),
};

export function pageOf(input: { readonly limit?: number | null; readonly cursor?: string | null }) {
  return { limit: input.limit ?? limits.pageDefault, cursor: input.cursor ?? null };
}

export function duration(
  description: string,
  minimum: number,
  error: "invalid_ttl" | "invalid_wait_timeout" | "invalid_idle_timeout",
) {
  return integer({ minimum, description, "x-error": error });
}
