/** The lease as users' own drivers get it. Never its token: that is the holder's. */
import type { Binding } from "../binding.ts";
import type { DriverPlace } from "../driver.ts";

export function leaseJson(
  event: string,
  { cell, resource }: DriverPlace,
  binding: Binding | null,
): Readonly<Record<string, string | number>> {
  if (binding === null) return { event, cell, resource };
  const { tenant, id, generation, fence, units, expiresAt } = binding.lease;
  const reason = binding.endedAs === null ? {} : { reason: binding.endedAs };
  return { event, cell, resource, tenant, lease: id, generation, fence, units, expires_at: expiresAt, ...reason };
}
