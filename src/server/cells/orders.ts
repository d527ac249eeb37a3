/** From durable events to orders for a cell, and from its answers to commands for the kernel (G6, G7). */
import { type ReportBinding, unstamped } from "../../kernel/contract/commands.ts";
import type { KernelEvent } from "../../kernel/contract/events.ts";
import type { Lease } from "../../kernel/contract/records.ts";
import { type CellDone, type CellEndCode, type CellLinkLease, linkReason } from "../../protocol/resources/cell-link.ts";
import type { CellLink, CellOrder } from "./link.ts";

/** What follows from an event for the cell of its lease; null: nothing. */
export function orderFor(event: KernelEvent): { readonly lease: Lease; readonly order: CellOrder } | null {
  switch (event.type) {
    case "lease.binding": {
      const { lease } = event;
      // One of a manifest that is on no cell waits for the others, and there is nobody to tell.
      return lease.cell === null || lease.cellBy === null ? null : { lease, order: bindOrder(lease) };
    }
    case "lease.granted":
    case "lease.renewed":
    case "lease.reissued":
    case "lease.revived":
    case "lease.transferred":
    case "lease.downgraded":
      return event.lease.cell === null ? null : { lease: event.lease, order: updateOrder(event.lease) };
    case "lease.closing":
      return { lease: event.lease, order: teardownOrder(event.lease.id, endCodeOf(event.lease)) };
    default:
      return null;
  }
}

/** Until it is granted it may last as long as the cell may take; the end that counts comes with the grant. */
export function bindOrder(lease: Lease): CellOrder {
  const bound = linkLease(lease, Math.max(lease.expiresAt, lease.cellBy ?? 0));
  return { op: "bind", lease: { ...bound, ttl_ms: lease.ttl } };
}

export function updateOrder(lease: Lease): CellOrder {
  return { op: "update", lease: linkLease(lease, lease.expiresAt) };
}

export function teardownOrder(leaseId: string, code: CellEndCode): CellOrder {
  return { op: "teardown", lease_id: leaseId, code };
}

/** The code with which the holder learns that the lease ended, or is about to. */
export function endCodeOf({ closingAs, state, endReason }: Lease): CellEndCode {
  switch (closingAs ?? state) {
    case "RELEASED":
      return "lease_released";
    case "EXPIRED":
      return "lease_expired";
    default:
      return endReason === "resource_fenced" ? "resource_fenced" : "lease_revoked";
  }
}

/** null: what the cell answered is of no concern to the kernel. */
export function reportFor(
  link: CellLink,
  lease: ReportedLease,
  order: CellOrder,
  done: CellDone,
): ReportBinding | null {
  if (order.op !== "bind" && order.op !== "teardown") return null;
  const { tenant, actor } = link.caller;
  const asked = { tenant, actor, entropy: unstamped, cellId: link.hello.cell };
  const about = { leaseId: lease.id, generation: lease.generation };
  const reason = done.ok ? null : linkReason(done.detail === "" ? done.code : done.detail);
  const coordinate = order.op === "bind" && done.ok ? (done.coordinate ?? null) : null;
  return { type: `${order.op}_${done.ok ? "confirmed" : "failed"}`, ...asked, ...about, coordinate, reason };
}

export type ReportedLease = Pick<Lease, "id" | "generation">;

function linkLease(lease: Lease, expiresAt: number): CellLinkLease {
  const { tenant, id, resource, predicate, holder, generation, fence, units } = lease;
  return { tenant, id, resource, predicate, holder, generation, fence, units, expires_at: expiresAt };
}
