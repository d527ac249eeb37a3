/** W7, L14: very many younger holders in the way of a requester, found and wounded slice by slice. */
import type { LinkedClaim } from "../deciding/manifest.ts";
import { meets } from "../deciding/obstacles.ts";
import { type LeaseEnd, type Sweep, woundedReason } from "../memory/jobs.ts";
import { type Holder, type LeaseEntry, type Turn, withLinked } from "../memory/state.ts";
import { noRequestEnd, sweep } from "./sweep.ts";

const wounded: LeaseEnd = { as: "REVOKED", reason: woundedReason };

/**
 * Ends the leases of younger holders that conflict with the claims, and those that were chosen already. The requester waits in
 * line meanwhile, ahead of all that are younger, so that nobody slips in.
 */
export function woundMany(
  turn: Turn,
  holder: Holder,
  claims: readonly LinkedClaim[],
  priority: number,
  chosen: readonly LeaseEntry[],
): Sweep {
  const { tenant } = turn;
  const isChosen = new Set(chosen);
  const isInTheWay = (lease: LeaseEntry): boolean => {
    if (isChosen.has(lease)) return true;
    if (lease.holder === holder || lease.holder.priority <= priority) return false;
    return claims.some(({ claim }) => meets(claim, lease));
  };
  const leaseEnd = (lease: LeaseEntry): LeaseEnd | null =>
    withLinked(tenant, lease).some(isInTheWay) ? wounded : null;
  return sweep(turn, { find: () => null, leaseEnd, requestEnd: noRequestEnd });
}
