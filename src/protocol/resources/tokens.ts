/** Tokens: whether one is good, and the keys that they are made with (G3 to G5). */

import * as shapes from "../leases/shapes.ts";
import { guarding, operating } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { resource } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { integer, optional, text } from "../schema/schema.ts";

const { query } = operationsOf("Holding");
const forOperators = operationsOf("Operating");

export const verifyToken = query({
  name: "verify_token",
  method: "POST",
  path: "/v1/tokens/verify",
  fields: {
    token: text({
      minLength: 1,
      maxLength: limits.tokenLengthMax,
      description: "The token that was shown, whole.",
      "x-error": "token_invalid",
    }),
    resource: optional(resource),
    operation: optional(
      text({
        minLength: 1,
        maxLength: limits.labelLengthMax,
        description:
          "The operation. `read` reads; any other one writes, and a lease that only reads (CONSUMES, DEPENDS_ON) may not " +
          "do it (G4). Tokens that are narrowed to operations must name it.",
      }),
    ),
  },
  roles: guarding,
  summary: "Says whether a token is good",
  description:
    "For data planes without a cell of their own: checked against the live lease, so that a renewed, released or revoked " +
    "one is refused at once (G5). A caveat on what is not named here fails.",
  example: { token: "lht1.AAAA", resource: "FILE:/shop/src/auth.ts", operation: "write" },
  replies: [ok(shapes.verifiedToken, "It is good, now.")],
  errors: ["stale_token", "caveat_failed", "lease_expired", "lease_released", "lease_revoked", "resource_fenced"],
});

export const listTokenKeys = forOperators.query({
  name: "list_token_keys",
  path: "/v1/token-keys",
  roles: operating,
  summary: "Lists the keys that tokens are made with",
  description: "Their ids and ends; the keys themselves stay in the data folder.",
  replies: [ok(shapes.tokenKeys, "The present one, and those whose tokens are still good.")],
});

export const rotateTokenKeys = forOperators.command({
  name: "rotate_token_keys",
  path: "/v1/token-keys/rotate",
  fields: {
    overlap_ms: optional(
      integer({
        minimum: 0,
        maximum: limits.tokenOverlapMsMax,
        description: "How long tokens of the key before stay good; six minutes if left out, 0 ends them at once.",
      }),
    ),
  },
  locksOut: true,
  roles: operating,
  summary: "Makes a new key for tokens",
  description:
    "Tokens are made with it from now on; older ones stay good for six minutes, longer than any of them lives, or for " +
    "`overlap_ms`. With 0, after a theft, all older tokens end at once, and holders get new ones with their next heartbeat. " +
    "Cells are notified at once.",
  example: { overlap_ms: 0 },
  replies: [ok(shapes.tokenKeys, "The keys, with the new one.")],
  decode: ({ overlap_ms: overlapMs }, { tenant, actor }) => ({
    type: "rotate_token_keys",
    tenant,
    actor,
    overlapMs: overlapMs ?? null,
  }),
});
