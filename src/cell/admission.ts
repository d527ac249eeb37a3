/**
 * Who may pass at one resource (G5): the token is checked, and held against the live lease, on every operation. It only
 * tells how a lease ended to those whose token is genuine.
 */
import type { Socket } from "node:net";
import { readOnlyFailure } from "../protocol/resources/reading.ts";
import {
  type Budget,
  checkSum,
  type Decoded,
  decodeToken,
  type HmacKey,
  type Presented,
  type TokenKeys,
  type Verified,
  verifyDecoded,
} from "../token/index.ts";
import type { Binding, CellLease, Cut, Pass } from "./binding.ts";
import type { CellClock } from "./clock.ts";
import { type AccessFailure, type EndCode, ended } from "./failure.ts";
import { peerProgram } from "./peer-program.ts";

export type Admitted = Pass | AccessFailure;

export type Access = Pick<Presented, "path" | "program"> & { readonly operation: string };

/** A token whose sum was good. It comes with every request, and need not be summed again for the same key. */
interface Proven {
  readonly decoded: Decoded;
  readonly key: HmacKey;
  readonly budgets: readonly Budget[];
}

const provenMax = 256;
const provenLengthMax = 2_048;
/** Ended leases are remembered for a while; older ones are answered as revoked. */
const endedRememberedMax = 10_000;

export interface AdmissionOptions {
  readonly cell: string;
  readonly resource: string;
  readonly hardware: readonly string[];
  /** The operations that change nothing, as the driver and the configuration say: all that a lease that reads may do. */
  readonly reads: ReadonlySet<string>;
  readonly keys: TokenKeys;
  readonly clock: CellClock;
}

/** At once where it is known at once, which is nearly always. */
export function whenAdmitted(admitted: Admitted | Promise<Admitted>, act: (admitted: Admitted) => void): void {
  if (admitted instanceof Promise) void admitted.then(act);
  else act(admitted);
}

export class Admission {
  readonly bindings = new Map<string, Binding>();
  private readonly endedLeases = new Map<string, { readonly code: EndCode; readonly generation: number }>();
  /** Only what was good is remembered, so that junk cannot fill it. */
  private readonly proven = new Map<string, Proven>();
  private readonly options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.options = options;
  }

  add(binding: Binding): void {
    this.bindings.set(binding.lease.id, binding);
    this.endedLeases.delete(binding.lease.id);
  }

  remove(binding: Binding): void {
    this.bindings.delete(binding.lease.id);
    if (this.endedLeases.size >= endedRememberedMax) {
      const [oldest] = this.endedLeases.keys();
      if (oldest !== undefined) this.endedLeases.delete(oldest);
    }
    const { id, generation } = binding.lease;
    this.endedLeases.set(id, { code: binding.endedAs ?? "lease_revoked", generation });
  }

  endOf(leaseId: string): EndCode | null {
    return this.bindings.get(leaseId)?.endedAs ?? this.endedLeases.get(leaseId)?.code ?? null;
  }

  /** How it ended, if it did; null also for a later generation of what ran out: it was held, and is bound again (L9). */
  endOfGeneration({ id, generation }: CellLease): EndCode | null {
    const end = this.endedLeases.get(id);
    if (end === undefined) return null;
    return end.code === "lease_expired" && generation > end.generation ? null : end.code;
  }

  /** As `admit`, for an operation that comes by a connection: its program is searched for only if the token names one. */
  admitFrom(socket: Socket, token: string | null, asked: Access, cut: Cut): Admitted | Promise<Admitted> {
    const first = this.admit(token, asked, cut);
    // The sum was good: nobody without a token of ours can make us search.
    if (!("code" in first) || first.caveat !== "program") return first;
    return peerProgram(socket).then((program) => this.admit(token, { ...asked, program: () => program }, cut));
  }

  /** A pass, which the driver closes when the operation is over; `cut` is called if it has to end before. */
  admit(token: string | null, asked: Access, cut: Cut): Admitted {
    if (token === null) {
      return { code: "token_invalid", detail: "Show the lease's token: `Authorization: Bearer lht1.…`." };
    }
    const decoded = this.proven.get(token)?.decoded ?? decodeToken(token);
    if (decoded === null) return { code: "token_invalid", detail: "This is not a token, or only part of one." };
    const { claims } = decoded;
    const binding = this.bindings.get(claims.lease);
    const { cell, resource, hardware, keys, clock } = this.options;
    const live = binding?.isOpen() === true ? binding.lease : null;
    const presented = {
      now: clock.now(),
      tenant: binding?.lease.tenant ?? claims.tenant,
      cell,
      resource,
      hardware,
      bytes: 0,
      ...(live === null ? {} : { generation: live.generation, fence: live.fence, leaseExpiresAt: live.expiresAt }),
      ...asked,
    };
    const result = verifyDecoded(decoded, keys, presented, (_decoded, key) => this.sum(token, decoded, key));
    const isGenuine = !("code" in result) || result.code !== "token_invalid";
    if (isGenuine && (live === null || binding === undefined)) return this.endedFailure(claims.lease, result);
    if ("code" in result) return result;
    if (binding === undefined) return ended("lease_revoked");
    const reads = this.options.reads.has(asked.operation);
    return readOnlyFailure(claims.predicate, binding.lease.predicate, reads) ?? binding.admit(result, reads, cut);
  }

  private sum(token: string, decoded: Decoded, key: HmacKey): readonly Budget[] | null {
    const known = this.proven.get(token);
    if (known?.key === key) return known.budgets;
    const budgets = checkSum(decoded, key);
    if (budgets === null || token.length > provenLengthMax) return budgets;
    const [oldest] = this.proven.keys();
    if (this.proven.size >= provenMax && oldest !== undefined) this.proven.delete(oldest);
    this.proven.set(token, { decoded, key, budgets });
    return budgets;
  }

  private endedFailure(lease: string, result: Verified | AccessFailure): AccessFailure {
    const known = this.endOf(lease);
    if (known !== null) return ended(known);
    // A binding that is not remembered: its lease has run out, or this cell was restarted without it.
    return "code" in result && result.code === "lease_expired" ? ended("lease_expired") : ended("lease_revoked");
  }
}
