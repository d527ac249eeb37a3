/** Verified tokens, and the keys behind them, as the wire shows them. Never a token, never a key. */
import type { Millis } from "../../kernel/contract/records.ts";
import type { TokenCaveat, TokenKeyInfo, TokenTold } from "../answers/queries.ts";
import { leaseObject } from "../leases/lease-json.ts";
import { isoTime } from "../schema/iso-time.ts";

export function verifiedTokenObject(
  { tenant, lease, caveats }: Extract<TokenTold, { type: "token_verified" }>,
  now: Millis,
) {
  return { valid: true, tenant, lease: leaseObject(lease, now), caveats: caveats.map(caveatObject) };
}

function caveatObject({ type, expiresAt, bytesMax, ...rest }: TokenCaveat) {
  return {
    type,
    ...(expiresAt !== undefined && { expires_at: isoTime(expiresAt) }),
    ...(bytesMax !== undefined && { bytes_max: bytesMax }),
    ...rest,
  };
}

export function tokenKeyObject({ id, createdAt, retiresAt }: TokenKeyInfo) {
  return { key_id: id, created_at: isoTime(createdAt), retires_at: retiresAt === null ? null : isoTime(retiresAt) };
}
