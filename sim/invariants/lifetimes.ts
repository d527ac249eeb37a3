/** Nothing is live after its end (L3), ended is final (L12), and no agent holds what its state does not allow (A1). */
import type { Lease } from "../../src/kernel/contract/records.ts";
import { overlap } from "../model/names.ts";
import { type Step, violated } from "./step.ts";
import type { TenantView } from "./tenant-view.ts";

export function checkEnds(view: TenantView, { now }: Step): void {
  for (const lease of view.field.leases) {
    if (lease.state === "ACTIVE" && lease.expiresAt <= now) violated("L3", "a lease is ACTIVE past its end", lease);
    if (lease.state === "ACTIVE" && lease.claimBy !== null && lease.claimBy <= now) {
      violated("W8", "an uncollected grant is live past its claim time", lease);
    }
    if (lease.state === "ACTIVE" && lease.idleTimeout !== null && lease.activeAt + lease.idleTimeout <= now) {
      violated("L10", "an idle lease is live past its idle timeout", lease);
    }
    if (lease.state === "HELD" && (lease.heldUntil ?? 0) <= now) violated("L9", "a lease is HELD for too long", lease);
    // A BINDING lease without a deadline is bound and waits for the others of its manifest.
    const awaitsCell = (lease.state === "BINDING" && lease.cellBy !== null) || lease.state === "CLOSING";
    if (awaitsCell && (lease.cellBy ?? 0) <= now)
      violated("G7", "a cell's deadline has passed without a consequence", lease);
  }
}

/** PLANNING, COMPLETED and ABORTED hold no lease and no open request; CLOSING leases count as ended. */
export function checkIdleStates(view: TenantView): void {
  const isIdle = (agentId: string) => {
    const state = view.agents.get(agentId)?.state;
    return state === undefined || state === "PLANNING" || state === "COMPLETED" || state === "ABORTED";
  };
  for (const lease of view.field.leases) {
    if (view.tasks.has(lease.holder)) continue;
    if (!view.agents.has(lease.holder)) violated("A1", "a lease has no holder", lease);
    if (lease.state !== "CLOSING" && isIdle(lease.agentId)) {
      violated("A1", "an agent holds a lease in a state that holds nothing", lease, view.agents.get(lease.agentId));
    }
  }
  for (const { request } of view.waiters) {
    if (view.tasks.has(request.holder)) continue;
    if (isIdle(request.agentId)) violated("A1", "an agent waits in a state that waits for nothing", request);
  }
}

/** The states that a lease may reach in one step: the closure of L12's transitions, since a step may take several. */
const mayBecome: Readonly<Record<Lease["state"], readonly Lease["state"][]>> = {
  BINDING: ["BINDING", "ACTIVE", "CLOSING"],
  ACTIVE: ["ACTIVE", "HELD", "CLOSING"],
  HELD: ["HELD", "ACTIVE", "BINDING", "CLOSING"],
  CLOSING: ["CLOSING"],
  RELEASED: [],
  EXPIRED: [],
  REVOKED: [],
};

/** G12: nothing extends a lease that covers something withdrawn. */
function checkNotWithdrawn({ store, command }: Step, lease: Lease): void {
  if (command?.type !== "heartbeat" && command?.type !== "heartbeat_all" && command?.type !== "renew_lease") return;
  for (const { tenant, name, withdrawn } of store.resource.values()) {
    if (!withdrawn || tenant !== lease.tenant || !overlap(name, lease.resource)) continue;
    violated("G12", "a lease on a withdrawn resource was extended", lease);
  }
}

export function checkLeaseChanges(step: Step, wasHeld: Set<string>): void {
  for (const change of step.changes) {
    if (change.kind !== "lease") continue;
    const { before, after } = change;
    if (after === null) continue;
    const id = `${after.tenant} ${after.id}`;
    if (before !== null && !mayBecome[before.state].includes(after.state)) {
      violated("L12", `a lease went from ${before.state} to ${after.state}`, before, after);
    }
    if (after.state === "HELD" && before?.state !== "HELD") {
      if (wasHeld.has(id)) violated("L9", "a lease is HELD a second time", after);
      wasHeld.add(id);
    }
    if (after.state === "ACTIVE" && after.expiresAt > step.now + after.ttl) {
      violated("L4", "a lease lives longer than its ttl from now", after);
    }
    if (after.state === "ACTIVE" && after.cellBy !== null)
      violated("G6", "a lease is ACTIVE before its cell bound it", after);
    if (before === null) continue;
    if (before.state === "HELD" && after.state === "ACTIVE" && after.cell !== null) {
      violated("L9", "a bound lease was revived before its cell had set it up again", before, after);
    }
    if (after.expiresAt > before.expiresAt && after.state !== "BINDING") checkNotWithdrawn(step, after);
    if (before.state === "HELD" && after.state === "ACTIVE" && !before.verified) {
      violated("L9", "a held lease was revived without VERIFY_ALL", before, after);
    }
    // Its TTL begins when it becomes ACTIVE, not when its cell began to bind it.
    const sameBeginning = before.acquiredAt === after.acquiredAt || before.state === "BINDING";
    if (before.resource !== after.resource || !sameBeginning) violated("L1", "a lease became another", before, after);
  }
}

/** L4, L10: a heartbeat extends from now, capped by the quota on one lease's total time. */
export function checkHeartbeat({ command, reply, store, now }: Step): void {
  if (command?.type !== "heartbeat" || reply?.type !== "lease") return;
  const { lease } = reply;
  // The leases of a canceled task are not extended (T13).
  if (store.task.get(`${lease.tenant} ${lease.holder}`)?.live.some(({ canceled }) => canceled) === true) return;
  const most = store.tenant.get(lease.tenant)?.quotas.leaseTimeMsMax ?? Number.POSITIVE_INFINITY;
  const expected = Math.min(now + lease.ttl, lease.acquiredAt + most);
  if (lease.expiresAt !== expected) violated("L4", `a heartbeat should have reached to ${expected}`, lease);
}
