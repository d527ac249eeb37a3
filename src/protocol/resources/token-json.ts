/** Verified tokens, and the keys behind them, as the wire shows them. Never a token, never a key. */
import type { Millis } from "../../kernel/contract/records.ts";
import type { TokenAnswer } from "../answers/queries.ts";
import { leaseObject } from "../leases/lease-json.ts";
import { show } from "../schema/convert.ts";
import { tokenCaveat } from "../schema/views.ts";

export function verifiedTokenObject(
  { tenant, lease, caveats }: Extract<TokenAnswer, { type: "token_verified" }>,
  now: Millis,
) {
  return {
    valid: true,
    tenant,
    lease: leaseObject(lease, now),
    caveats: caveats.map((caveat) => show(tokenCaveat, caveat)),
  };
}
