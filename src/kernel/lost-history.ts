/**
 * L11, S6: what follows where history may have been lost: a backup was restored, or a database goes on from an earlier
 * point than it had reached. Others may know fences and event numbers that these records do not, so both jump ahead, and
 * every live lease is re-issued: holders by the lost history are behind from then on.
 *
 *   known ─────┐ backup                      ┌──► numbers from now on
 *              └──► lost, up to here at most ┘ jump
 */
import { limits } from "./contract/limits.ts";
import type { Millis } from "./contract/records.ts";
import { reissue } from "./leases/lease-life.ts";
import { spendAll } from "./memory/refill.ts";
import { leasesOf, type State, type Turn, updateCounters } from "./memory/state.ts";
import { noteReissued } from "./tasks/task-life.ts";

export interface LostHistory {
  /** The wall clock: it tells apart two losses that cannot know of each other, such as restores into fresh folders. */
  readonly wall: Millis;
  /** How many losses are known since these records were written, this one included. */
  readonly losses: number;
}

/**
 * A number that no lost history can have reached: one that grows with the wall clock faster than numbers are given. A
 * wall clock that is behind them proves nothing; then each known loss jumps by a fixed number that is far more.
 */
export function numberBeyond(known: number, { wall, losses }: LostHistory): number {
  const byWall = Math.floor(wall - limits.lossEpoch) * limits.lossNumbersPerMs;
  if (byWall > known && byWall <= limits.lossNumberMax) return byWall;
  return known + losses * limits.lossJump;
}

/** The fences of every tenant jump, and every live lease gets a new one. A lease that its cell tears down is over (A3). */
export function reissueAll(state: State, lost: LostHistory, now: Millis): void {
  for (const tenant of state.tenants.values()) {
    const turn: Turn = { state, tenant, now };
    updateCounters(turn, { fence: numberBeyond(tenant.counters.record.fence, lost) });
    for (const agent of tenant.agents.values()) reissueLeases(turn, agent);
    for (const resource of tenant.resources.values()) spendAll(turn, resource);
    for (const task of tenant.tasks.values()) if (reissueLeases(turn, task) > 0) noteReissued(turn, task);
  }
}

function reissueLeases(turn: Turn, holder: Parameters<typeof leasesOf>[0]): number {
  if (holder.leaseCount === 0) return 0;
  const leases = leasesOf(holder).filter(({ record }) => record.state !== "CLOSING");
  for (const lease of leases) reissue(turn, lease, lease.record);
  return leases.length;
}
