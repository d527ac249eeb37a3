/** The lease as users' own drivers get it. Never its token: that is the holder's. */
import type { Binding } from "../binding.ts";

export type ToldLease = Readonly<Record<string, string | number>>;

export function leaseJson(event: string, cell: string, resource: string, binding: Binding | null): ToldLease {
  const place = { event, cell, resource };
  if (binding === null) return place;
  const { tenant, id, generation, fence, units, expiresAt } = binding.lease;
  const reason = binding.endedAs === null ? {} : { reason: binding.endedAs };
  return { ...place, tenant, lease: id, generation, fence, units, expires_at: expiresAt, ...reason };
}
