/**
 * Leases that are taken away are told of at once (G10), and not only with the next heartbeat. Where the stream of events
 * cannot be had, the heartbeats are still there.
 */
import type { Actor } from "../../sdk/actor.ts";
import { followEvents, type LeaseholdEvent } from "../../sdk/events.ts";
import type { LossReason } from "../../sdk/lease-lost.ts";
import type { EventType, Lease } from "../../sdk/wire.ts";

const reasons: ReadonlyMap<EventType, LossReason> = new Map([
  ["lease.revoked", "revoked"],
  ["lease.expired", "expired"],
  ["lease.released", "released"],
  ["lease.reissued", "taken_up"],
  ["lease.transferred", "revoked"],
]);

/** Ends with the signal. */
export async function listenForLosses(
  { client, agentId, token }: Actor,
  leases: readonly Lease[],
  signal: AbortSignal,
  onLost: (reason: LossReason, detail: string) => void,
): Promise<void> {
  const ids = new Set(leases.map(({ id }) => id));
  try {
    for await (const event of followEvents(client, { agentId, token, types: [...reasons.keys()], signal })) {
      const reason = reasons.get(event.type);
      if (reason === undefined || event.lease === undefined || !ids.has(event.lease.id)) continue;
      onLost(reason, detailOf(event, event.lease));
    }
  } catch {
    // Told to end, or this key may not look: either way there is nothing more to hear.
  }
}

function detailOf({ type, reason }: LeaseholdEvent, { predicate, resource }: Lease): string {
  const how = type.replace("lease.", "");
  return `The lease ${predicate} on ${resource} was ${how}${reason === undefined || reason === null ? "" : ` (${reason})`}.`;
}
