/** Resources: declaring, fencing and withdrawing them (C6, G7, G12). What hosts them is in cells.ts. */

import { commands } from "../../kernel/contract/commands.ts";
import { choice, flag, optional, text } from "../../kernel/contract/field.ts";
import { cellName, resourceName } from "../../kernel/contract/inputs.ts";
import { limits } from "../../kernel/contract/limits.ts";
import * as shapes from "../leases/shapes.ts";
import { above, reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { either } from "../schema/schema.ts";
import { resourceStates } from "../schema/vocabulary.ts";

const { command, query } = operationsOf("Resources");

const example = { resource: "GPU:/rack-1/a100" };

export const declareResource = command({
  name: "declare_resource",
  method: "PUT",
  path: "/v1/resources",
  fields: inputs(commands.declare_resource, {
    capacity: "In units; left out: not counted.",
    refill_ms: "How long after a grant its units come back (G15); left out: when the lease ends.",
    cell: "The cell that hosts it.",
  }),
  roles: above,
  summary: "Declares a resource",
  description:
    "Gives it a capacity in units (C6), which may come back with time instead of with the end of a lease (`refill_ms`, G15), " +
    "or a cell that binds its leases (G6). Most resources need no declaration. " +
    "Declaring it again changes it, and undoes a withdrawal.",
  example: { ...example, capacity: 4 },
  replies: [ok(shapes.resource, "Declared.", 201), ok(shapes.resource, "Changed.")],
  errors: ["reserved_resource", "resource_in_use", "lease_denied"],
});

export const listResources = query({
  name: "list_resources",
  path: "/v1/resources",
  fields: {
    ...inputs(
      { prefix: optional(text({ max: limits.resourceLengthMax })), state: optional(choice(resourceStates)) },
      { prefix: "Only names that begin so.", state: "Only resources in this state." },
    ),
    ...paging,
  },
  roles: reading,
  summary: "Lists declared resources",
  description: "And those that were fenced or withdrawn, declared or not.",
  example: { prefix: "GPU:/rack-1", state: "READY" },
  replies: [ok(shapes.page("resources", shapes.resource), "One page.")],
});

export const fenceResource = command({
  name: "fence_resource",
  path: "/v1/resources/fence",
  roles: above,
  summary: "Fences a resource",
  description:
    "Live leases on it are revoked, its waiters get PAUSED, and nothing is leased on it until it was reset (G7).",
  example: { ...example, reason: "ECC errors" },
  replies: [ok(shapes.resource, "Fenced.")],
  errors: ["reserved_resource"],
});

export const resetResource = command({
  name: "reset_resource",
  path: "/v1/resources/reset",
  roles: above,
  summary: "Frees a fenced resource",
  description:
    "The cell resets it and probes it; answered once the probe has seen that it is clean. For an unbound resource the " +
    "caller's word is the probe (G7).",
  example,
  replies: [ok(shapes.resource, "Free again."), ok(shapes.paused, "PAUSED: its cell is not connected.", 423)],
  errors: [
    "reserved_resource",
    "resource_unknown",
    "resource_in_use",
    "resource_fenced",
    "probe_required",
    "reset_failed",
  ],
});

export const withdrawResource = command({
  name: "withdraw_resource",
  path: "/v1/resources/withdraw",
  fields: inputs(
    { resource: optional(resourceName), cell: optional(cellName), revoke: optional(flag(), false) },
    { revoke: "Revoke the live leases; left out: they run out." },
  ),
  exactlyOne: ["resource", "cell"],
  roles: above,
  summary: "Withdraws a resource, or all of a cell",
  description:
    "No new leases on it; the live ones run out, or are revoked (G12). Declare a resource again, or readmit the cell, to " +
    "undo this.",
  example: { ...example, revoke: false },
  replies: [ok(either([shapes.resource, shapes.cell]), "Withdrawn; for a cell, all that it hosts.")],
  errors: ["reserved_resource", "resource_unknown", "cell_unknown"],
  decode: (input, { tenant, actor, entropy }) => {
    const revoke = input.revoke ?? false;
    if (typeof input.cell === "string")
      return { type: "withdraw_cell", tenant, actor, entropy, cellId: input.cell, revoke };
    return { type: "withdraw_resource", tenant, actor, entropy, resource: input.resource ?? "", revoke };
  },
});
