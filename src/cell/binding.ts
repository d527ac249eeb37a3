/**
 * What a cell has set up for one lease, from bind to confirmed teardown:
 *
 *   open → ended (by the control plane, or by the cell's own clock: G11) → idle (nothing of it is under way)
 *
 * Every operation goes through a pass. Ended is final, and is decided on every chunk of bytes and not by a timer alone:
 * a cell that was stopped wakes up with data to be read before its timers have run.
 */
import type { CellLinkLease } from "../protocol/resources/cell-link.ts";
import { readsOnly } from "../protocol/resources/reading.ts";
import type { Budget, Verified } from "../token/index.ts";
import type { CellClock } from "./clock.ts";
import { type AccessFailure, type EndCode, ended } from "./failure.ts";

const timerMsMax = 2 ** 31 - 1;
/** Budgets of bytes that one lease's tokens may be narrowed to; to forget one would be to fill it again. */
const budgetsMax = 1_000;
const transferred: AccessFailure = { code: "stale_token", detail: "The lease was transferred to another holder." };
const usedUp: AccessFailure = { code: "caveat_failed", detail: "The token's bytes are used up.", caveat: "bytes" };
const tooManyBudgets: AccessFailure = {
  code: "caveat_failed",
  detail: `The lease's tokens have ${budgetsMax} budgets of bytes already; use one of them.`,
  caveat: "bytes",
};
const weakened: AccessFailure = { code: "caveat_failed", detail: "The lease only reads now.", caveat: "predicate" };

/** A lease as the control plane sends it to the cell that has to bind it; it ends by the control plane's clock (L7). */
export type CellLease = Omit<CellLinkLease, "expires_at" | "ttl_ms"> & { readonly expiresAt: number };
export type Way = "in" | "out";
export type Cut = (failure: AccessFailure) => void;

export class Binding {
  readonly cell: string;
  /** As of the latest renewal. */
  lease: CellLease;
  endedAs: EndCode | null = null;
  readonly bytes: Record<Way, number> = { in: 0, out: 0 };
  /** What was moved under each budget, for as long as the binding lives. */
  private readonly spent = new Map<string, number>();
  readonly clock: CellClock;
  private readonly passes = new Set<Pass>();
  private readonly onEnd: (binding: Binding) => void;
  private readonly waiting: (() => void)[] = [];

  constructor(cell: string, lease: CellLease, clock: CellClock, onEnd: (binding: Binding) => void = () => {}) {
    this.cell = cell;
    this.lease = lease;
    this.clock = clock;
    this.onEnd = onEnd;
  }

  /** L3: at its end it is gone, though no timer has fired. */
  isOpen(): boolean {
    if (this.endedAs === null && this.clock.now() >= this.lease.expiresAt) this.end("lease_expired");
    return this.endedAs === null;
  }

  /** G8: connections that are open stay open; but not those of another holder, nor those that wrote where it now reads. */
  renew(lease: CellLease): void {
    const before = this.lease;
    this.lease = lease;
    const isReader = readsOnly(lease.predicate);
    for (const pass of [...this.passes]) {
      if (lease.holder !== before.holder) pass.cut(transferred);
      else if (isReader && !pass.reads) pass.cut(weakened);
    }
  }

  /** Everything under way is cut before this returns (G6). */
  end(code: EndCode): void {
    if (this.endedAs !== null) return;
    this.endedAs = code;
    const failure = ended(code);
    for (const pass of [...this.passes]) pass.cut(failure);
    this.onEnd(this);
  }

  /** `reads`: the operation changes nothing. */
  admit(verified: Verified, reads: boolean, cut: Cut): Pass | AccessFailure {
    for (const budget of verified.budgets) {
      const used = this.spent.get(budget.id);
      if (used !== undefined && used >= budget.bytesMax) return usedUp;
      if (used === undefined && this.spent.size >= budgetsMax) return tooManyBudgets;
      this.spent.set(budget.id, used ?? 0);
    }
    const pass = new Pass(this, verified, reads, cut);
    this.passes.add(pass);
    return pass;
  }

  /** Whether this many bytes fit into every budget; they are counted if so. */
  spend(budgets: readonly Budget[], count: number, way: Way): boolean {
    if (budgets.some(({ id, bytesMax }) => (this.spent.get(id) ?? 0) + count > bytesMax)) return false;
    for (const { id } of budgets) this.spent.set(id, (this.spent.get(id) ?? 0) + count);
    this.bytes[way] += count;
    return true;
  }

  get inFlight(): number {
    return this.passes.size;
  }

  /** Resolves when the last operation has come to its end, the cut ones included. */
  whenIdle(): Promise<void> {
    if (this.passes.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** By a pass that is closed. */
  leave(pass: Pass): void {
    this.passes.delete(pass);
    if (this.passes.size === 0) for (const resolve of this.waiting.splice(0)) resolve();
  }
}

/** One operation, or one connection, that was let in. */
export class Pass {
  readonly binding: Binding;
  readonly verified: Verified;
  readonly reads: boolean;
  private readonly whenCut: Cut;
  private timer: NodeJS.Timeout | null = null;
  private failure: AccessFailure | null = null;
  private closed = false;

  constructor(binding: Binding, verified: Verified, reads: boolean, whenCut: Cut) {
    this.binding = binding;
    this.verified = verified;
    this.reads = reads;
    this.whenCut = whenCut;
    this.arm();
  }

  /** Why it has ended; null while it goes on. */
  get cutBy(): AccessFailure | null {
    return this.failure;
  }

  /** Whether the operation may go on. If not, it is cut. */
  check(): boolean {
    if (this.failure !== null || !this.binding.isOpen()) return false;
    if (this.binding.clock.now() < this.verified.caveatExpiresAt) return true;
    this.cut({ code: "caveat_failed", detail: "The token's own, earlier end has come.", caveat: "expiry" });
    return false;
  }

  /** Whether this many bytes may pass. They are counted if so; else the operation is cut. */
  take(count: number, way: Way): boolean {
    if (!this.check()) return false;
    if (this.binding.spend(this.verified.budgets, count, way)) return true;
    this.cut(usedUp);
    return false;
  }

  cut(failure: AccessFailure): void {
    if (this.failure !== null || this.closed) return;
    this.failure = failure;
    this.whenCut(failure);
  }

  /** By the driver, once nothing of the operation is left. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.binding.leave(this);
  }

  /** A narrowed end does not move with the lease's: it is the token's own. */
  private arm(): void {
    const leftMs = this.verified.caveatExpiresAt - this.binding.clock.now();
    if (!Number.isFinite(leftMs)) return;
    const look = (): void => {
      if (this.check() && !this.closed) this.arm();
    };
    this.timer = setTimeout(look, Math.max(1, Math.min(leftMs, timerMsMax)));
    this.timer.unref();
  }
}
