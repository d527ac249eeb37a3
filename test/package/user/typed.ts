// Compiled but not run: checks the package's declarations with a user's compiler.

import type { Lease } from "leasehold";
import { type Client, createClient, type LeaseEndCode, LeaseholdError, type LiveLease } from "leasehold/sdk";

const client: Client = createClient({ url: "http://127.0.0.1:7117" });

export async function firstLease(): Promise<Lease | undefined> {
  const { leases } = await client.call("list_leases", { limit: 1 });
  return leases[0];
}

export async function work(): Promise<number> {
  return client.withLease("FILE:/shop/a.ts", ({ leases }) => leases[0]?.fence ?? 0);
}

export function codeOf(error: unknown): string {
  return error instanceof LeaseholdError ? error.code : "";
}

export async function use(path: string): Promise<number> {
  const { lease, release } = await client.hold({ predicate: "MUTATES", resource: "GPU:/lab/*", pick: "any" });
  const { status } = await lease.fetch(path);
  await release();
  return status;
}

/** The list is closed: this compiles only while it names them all. */
export function wordsFor(end: LeaseEndCode): string {
  switch (end) {
    case "lease_expired":
    case "lease_revoked":
    case "lease_released":
      return "over";
    case "stale_token":
      return "another's";
    case "resource_fenced":
      return "out of order";
  }
}

export function told(lease: LiveLease): () => void {
  return lease.onEnd(({ end }) => wordsFor(end));
}

// @ts-expect-error: there is no such operation
void client.call("no_such_operation", {});
// @ts-expect-error: a limit is a number
void client.call("list_leases", { limit: "1" });
