/** Resources: declaring, fencing and withdrawing them (C6, G7, G12). What hosts them is in cells.ts. */

import * as shapes from "../leases/shapes.ts";
import { above, reading } from "../operating/roles.ts";
import { command, ok, query } from "../operation.ts";
import { pageOf, paging, reason, resource } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, either, flag, integer, optional, text } from "../schema/schema.ts";
import { resourceStates } from "../schema/vocabulary.ts";

const example = { resource: "GPU:/rack-1/a100" };

const cell = text({ minLength: 1, maxLength: limits.idLengthMax, description: "The cell that hosts it." });

export const declareResource = command({
  name: "declare_resource",
  tag: "Resources",
  method: "PUT",
  path: "/v1/resources",
  fields: {
    resource,
    capacity: optional(
      integer({
        minimum: 1,
        maximum: limits.unitsMax,
        description: "In units; left out: not counted.",
        "x-error": "invalid_capacity",
      }),
    ),
    cell: optional(cell),
  },
  roles: above,
  summary: "Declares a resource",
  description:
    "Gives it a capacity in units (C6), or a cell that binds its leases (G6). Most resources need no declaration. " +
    "Declaring it again changes it, and undoes a withdrawal.",
  example: { ...example, capacity: 4 },
  replies: [ok(shapes.resource, "Declared.", 201), ok(shapes.resource, "Changed.")],
  errors: ["invalid_resource", "reserved_resource", "invalid_capacity", "resource_in_use", "lease_denied"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "declare_resource",
    tenant,
    actor,
    entropy,
    resource: input.resource,
    capacity: input.capacity ?? null,
    cell: input.cell ?? null,
  }),
});

export const listResources = query({
  name: "list_resources",
  tag: "Resources",
  method: "GET",
  path: "/v1/resources",
  fields: {
    prefix: optional(text({ maxLength: limits.resourceLengthMax, description: "Only names that begin so." })),
    state: optional(choice(resourceStates, { description: "Only resources in this state." })),
    ...paging,
  },
  roles: reading,
  summary: "Lists declared resources",
  description: "And those that were fenced or withdrawn, declared or not.",
  example: { prefix: "GPU:/rack-1", state: "READY" },
  replies: [ok(shapes.page("resources", shapes.resource), "One page.")],
  decode: (input, { tenant, actor }) => ({
    type: "list_resources",
    tenant,
    actor,
    prefix: input.prefix ?? null,
    state: input.state ?? null,
    ...pageOf(input),
  }),
});

export const fenceResource = command({
  name: "fence_resource",
  tag: "Resources",
  method: "POST",
  path: "/v1/resources/fence",
  fields: { resource, reason },
  roles: above,
  summary: "Fences a resource",
  description:
    "What is live on it is revoked, who waits is told PAUSED, and nothing is leased on it until it was reset (G7).",
  example: { ...example, reason: "ECC errors" },
  replies: [ok(shapes.resource, "Fenced.")],
  errors: ["invalid_resource", "reserved_resource", "invalid_reason"],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "fence_resource",
    tenant,
    actor,
    entropy,
    resource: input.resource,
    reason: input.reason,
  }),
});

export const resetResource = command({
  name: "reset_resource",
  tag: "Resources",
  method: "POST",
  path: "/v1/resources/reset",
  fields: { resource },
  roles: above,
  summary: "Frees a fenced resource",
  description:
    "The cell resets it and probes it; answered once the probe has seen that it is clean. For an unbound resource the " +
    "caller's word is the probe (G7).",
  example,
  replies: [ok(shapes.resource, "Free again."), ok(shapes.paused, "PAUSED: its cell is not connected.", 423)],
  errors: [
    "invalid_resource",
    "reserved_resource",
    "resource_unknown",
    "resource_in_use",
    "resource_fenced",
    "probe_required",
    "reset_failed",
  ],
  decode: (input, { tenant, actor, entropy }) => ({
    type: "reset_resource",
    tenant,
    actor,
    entropy,
    resource: input.resource,
    // Nobody can say so from outside; the server does, once the cell has.
    probed: false,
  }),
});

export const withdrawResource = command({
  name: "withdraw_resource",
  tag: "Resources",
  method: "POST",
  path: "/v1/resources/withdraw",
  fields: {
    resource: optional(resource),
    cell: optional(cell),
    revoke: optional(flag({ description: "Take away what is live; left out: it runs out." })),
  },
  exactlyOne: ["resource", "cell"],
  roles: above,
  summary: "Withdraws a resource, or all of a cell",
  description:
    "No new leases on it; the live ones run out, or are revoked (G12). Declare a resource again, or readmit the cell, to " +
    "undo this.",
  example: { ...example, revoke: false },
  replies: [ok(either([shapes.resource, shapes.cell]), "Withdrawn; for a cell, all that it hosts.")],
  errors: ["invalid_resource", "reserved_resource", "resource_unknown", "cell_unknown"],
  decode: (input, { tenant, actor, entropy }) => {
    const revoke = input.revoke ?? false;
    if (typeof input.cell === "string")
      return { type: "withdraw_cell", tenant, actor, entropy, cellId: input.cell, revoke };
    return { type: "withdraw_resource", tenant, actor, entropy, resource: input.resource ?? "", revoke };
  },
});
