/**
 * Who may pass at one resource (G5): the token is checked, and held against the live lease, on every operation. It only
 * tells how a lease ended to those whose token is genuine.
 */
import { decodeToken, type Presented, type TokenKeys, type Verified, verifyDecoded } from "../token/index.ts";
import type { Binding, Cut, Pass } from "./binding.ts";
import type { CellClock } from "./clock.ts";
import { type AccessFailure, type EndCode, ended } from "./failure.ts";

export type Access = Pick<Presented, "operation" | "path" | "program">;

/** Ended leases are remembered for a while; older ones are answered as revoked. */
const endedRememberedMax = 10_000;

export interface AdmissionOptions {
  readonly cell: string;
  readonly resource: string;
  readonly hardware: readonly string[];
  readonly keys: TokenKeys;
  readonly clock: CellClock;
}

export class Admission {
  readonly bindings = new Map<string, Binding>();
  private readonly endedLeases = new Map<string, EndCode>();
  private readonly options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.options = options;
  }

  add(binding: Binding): void {
    this.bindings.set(binding.lease.id, binding);
  }

  remove(binding: Binding): void {
    this.bindings.delete(binding.lease.id);
    if (this.endedLeases.size >= endedRememberedMax) {
      const [oldest] = this.endedLeases.keys();
      if (oldest !== undefined) this.endedLeases.delete(oldest);
    }
    this.endedLeases.set(binding.lease.id, binding.endedAs ?? "lease_revoked");
  }

  endOf(leaseId: string): EndCode | null {
    return this.bindings.get(leaseId)?.endedAs ?? this.endedLeases.get(leaseId) ?? null;
  }

  /** A pass, which the driver closes when the operation is over; `cut` is called if it has to end before. */
  admit(token: string | null, asked: Access, cut: Cut): Pass | AccessFailure {
    if (token === null) {
      return { code: "token_invalid", detail: "Show the lease's token: `Authorization: Bearer lht1.…`." };
    }
    const decoded = decodeToken(token);
    if (decoded === null) return { code: "token_invalid", detail: "This is not a token, or only part of one." };
    const { claims } = decoded;
    const binding = this.bindings.get(claims.lease);
    const { cell, resource, hardware, keys, clock } = this.options;
    const live = binding?.isOpen() === true ? binding.lease : null;
    const result = verifyDecoded(decoded, keys, {
      now: clock.now(),
      tenant: binding?.lease.tenant ?? claims.tenant,
      cell,
      resource,
      hardware,
      bytes: 0,
      ...(live === null ? {} : { generation: live.generation, fence: live.fence, leaseExpiresAt: live.expiresAt }),
      ...asked,
    });
    const isGenuine = !("code" in result) || result.code !== "token_invalid";
    if (isGenuine && (live === null || binding === undefined)) return this.endedFailure(claims.lease, result);
    if ("code" in result) return result;
    if (binding === undefined) return ended("lease_revoked");
    return this.usedUp(binding, result) ?? binding.admit(result, cut);
  }

  private endedFailure(lease: string, result: Verified | AccessFailure): AccessFailure {
    const known = this.endOf(lease);
    if (known !== null) return ended(known);
    // A binding that is not remembered: its lease has run out, or this cell was restarted without it.
    return "code" in result && result.code === "lease_expired" ? ended("lease_expired") : ended("lease_revoked");
  }

  private usedUp(binding: Binding, { budgets }: Verified): AccessFailure | null {
    const isUsedUp = budgets.some(({ id, bytesMax }) => (binding.spent.get(id) ?? 0) >= bytesMax);
    return isUsedUp ? { code: "caveat_failed", detail: "The token's bytes are used up.", caveat: "bytes" } : null;
  }
}
