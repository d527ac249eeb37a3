/**
 * Keeps leases alive while work runs under them, and stops the work before they can have ended (A7).
 *
 * A heartbeat leaves at a third of the TTL. Time is counted from before the request was sent whose answer said how long
 * the leases last, minus a margin; when it is up, the signal fires at once, whether or not anything was heard. A short
 * tick looks at the clocks, so that a machine that slept, or a program that stood still, is noticed on waking up.
 */
import { type Actor, askAs } from "./actor.ts";
import type { Mark } from "./clock.ts";
import { LeaseholdError } from "./errors.ts";
import { LeaseLost, type LossReason } from "./lease-lost.ts";
import { backOffMs } from "./timing.ts";
import type { Lease, LeaseEnd } from "./wire.ts";

export interface HoldingOptions {
  /** How long before its end a lease is not used any more. */
  readonly marginMs?: number | undefined;
}

/** A tenth of the TTL, within these. */
const marginMsMin = 25;
const marginMsMax = 2_000;
const tickMsMin = 10;
const tickMsMax = 500;

/** A lease as an answer showed it; its remaining time counts from before that was asked for. */
interface Held {
  readonly lease: Lease;
  readonly since: Mark;
}

export class Holding {
  private readonly actor: Actor;
  private readonly controller = new AbortController();
  private readonly ttlMs: number;
  private readonly marginMs: number;
  private held: readonly Held[];
  private lastTick: Mark;
  private jumps: number;
  private lastLoss: LeaseLost | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private beat: AbortController | null = null;
  private lastBeat: Mark;
  private beatAfterMs: number;
  private failures = 0;
  private isActive = false;
  private isStopped = false;

  constructor(actor: Actor, leases: readonly Lease[], sentAt: Mark, { marginMs }: HoldingOptions = {}) {
    this.actor = actor;
    this.held = leases.map((lease) => ({ lease, since: sentAt }));
    this.ttlMs = Math.min(...leases.map(({ ttl }) => ttl));
    this.marginMs = marginMs ?? Math.min(Math.max(this.ttlMs / 10, marginMsMin), marginMsMax);
    this.lastBeat = sentAt;
    this.beatAfterMs = this.ttlMs / 3;
    this.lastTick = actor.client.time.mark();
    this.jumps = actor.client.time.jumps;
  }

  get leases(): readonly Lease[] {
    return this.held.map(({ lease }) => lease);
  }

  /** Fires before the leases can have ended; its reason is the LeaseLost. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get lost(): LeaseLost | null {
    return this.lastLoss;
  }

  /** How long the leases can be counted on without another word from the server. */
  remainingMs(): number {
    return this.lastLoss !== null ? 0 : Math.max(this.leftMs(), 0);
  }

  /** For the moment before something that cannot be undone: looks at the clocks now, not at the last tick. */
  assertHeld(): void {
    if (this.lastLoss === null && !this.isStopped) this.lookAtClocks();
    if (this.lastLoss !== null) throw this.lastLoss;
  }

  /** The work goes on: the next heartbeat says so, for idle detection (L10). */
  touch(): void {
    this.isActive = true;
  }

  /** An answer that was held for long says little about how much is left, so that one asks first. */
  async begin(): Promise<void> {
    if (this.sinceBeatMs() > this.ttlMs / 4) await this.sendBeat();
    this.tick();
  }

  /** The work is over; whether it was in time is looked at once more. */
  finish(): void {
    if (!this.isStopped) this.lookAtClocks();
    this.stop();
  }

  private stop(): void {
    this.isStopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.beat?.abort();
  }

  /** Tells the work to stop; until it has, the leases are kept. */
  cancel(reason: unknown): void {
    this.controller.abort(reason);
  }

  lose(reason: LossReason, detail: string, cause?: unknown): void {
    if (this.lastLoss !== null || this.isStopped) return;
    this.lastLoss = new LeaseLost({ reason, detail, leases: this.leases, cause });
    this.stop();
    this.controller.abort(this.lastLoss);
  }

  private readonly tick = (): void => {
    if (this.isStopped || this.lastLoss !== null) return;
    this.lookAtClocks();
    if (this.lastLoss !== null) return;
    if (this.beat === null && this.sinceBeatMs() >= this.beatAfterMs) void this.sendBeat();
    const tickMs = Math.min(Math.max(this.ttlMs / 20, tickMsMin), tickMsMax, Math.max(this.remainingMs(), 1));
    this.timer = setTimeout(this.tick, tickMs);
  };

  private lookAtClocks(): void {
    const { time } = this.actor.client;
    const sinceTick = time.elapsedMs(this.lastTick);
    this.lastTick = time.mark();
    if (this.leftMs() <= 0) {
      if (sinceTick > this.ttlMs / 3)
        return this.lose("overslept", `The program stood still for ${Math.round(sinceTick)} ms, past its leases' end.`);
      const detail = "The server could not be reached in time, so the work was stopped before its leases could end.";
      return this.lose("no_contact", detail);
    }
    if (time.jumps === this.jumps) return;
    // A step of the clock, or a sleep that no other clock shows: the server knows.
    this.jumps = time.jumps;
    if (this.beat === null) void this.sendBeat();
  }

  private async sendBeat(): Promise<void> {
    const controller = new AbortController();
    this.beat = controller;
    const asked = { agent_id: this.actor.agentId, lease_ids: this.held.map(({ lease }) => lease.id) };
    const activity = this.isActive;
    this.isActive = false;
    try {
      const { answer, sentAt } = await askAs(this.actor, "heartbeat_all", activity ? { ...asked, activity } : asked, {
        signal: controller.signal,
        timeoutMs: Math.max(this.ttlMs / 4, tickMsMin),
        retries: 0,
      });
      this.failures = 0;
      await this.heard(answer.leases, answer.lost, sentAt);
    } catch (error) {
      this.unheard(error);
    } finally {
      this.beat = null;
    }
  }

  private async heard(leases: readonly Lease[], lost: readonly LeaseEnd[], sentAt: Mark): Promise<void> {
    if (this.isStopped) return;
    const [first] = lost;
    if (first !== undefined) {
      if (first.error === "verify_required") return this.verify();
      return this.loseEnded(first);
    }
    for (const lease of leases) this.note(lease, sentAt);
    this.lastBeat = sentAt;
    this.beatAfterMs = this.ttlMs / 3;
    for (const lease of leases) if (lease.expires_in_ms < lease.ttl / 2) await this.renew(lease);
  }

  /** G8: what is bound is not extended but issued anew. A heartbeat of its own tells whether that is why. */
  private async renew(lease: Lease): Promise<void> {
    try {
      await askAs(this.actor, "heartbeat", { lease_id: lease.id }, { retries: 0, timeoutMs: this.ttlMs / 4 });
    } catch (error) {
      if (!(error instanceof LeaseholdError) || error.code !== "renew_required") return;
      const { generation, id } = lease;
      const renewal = askAs(this.actor, "renew_lease", { lease_id: id, generation }, { timeoutMs: this.ttlMs / 4 });
      const { answer, sentAt } = await renewal;
      this.note(answer, sentAt);
    }
  }

  /** A restart was announced for this agent (L9): after the truth is known, a heartbeat brings the leases back. */
  private async verify(): Promise<void> {
    const { agentId } = this.actor;
    await askAs(this.actor, "verify_all", { agent_id: agentId }, { retries: 0, timeoutMs: this.ttlMs / 4 });
    this.beatAfterMs = 0;
  }

  private loseEnded({ id, state }: LeaseEnd): void {
    const reasons: Readonly<Partial<Record<LeaseEnd["state"], LossReason>>> = {
      EXPIRED: "expired",
      REVOKED: "revoked",
      RELEASED: "released",
    };
    const lease = this.leases.find((one) => one.id === id);
    const what = lease === undefined ? id : `${lease.predicate} on ${lease.resource}`;
    const reason = reasons[state] ?? "revoked";
    this.lose(reason, `The lease ${what} has ended (${state.toLowerCase()}).`);
  }

  private unheard(error: unknown): void {
    if (this.isStopped) return;
    const code = error instanceof LeaseholdError ? error.code : null;
    if (code === "stale_epoch")
      return this.lose("taken_up", "Another instance has taken this agent up; its leases are that one's now.", error);
    if (code === "agent_unknown" || code === "tenant_unknown")
      return this.lose("revoked", "The server knows this agent no longer.", error);
    // Everything else may pass: ask again soon, until the time is up.
    this.failures++;
    this.beatAfterMs = this.sinceBeatMs() + backOffMs(this.failures, this.ttlMs / 64, this.ttlMs / 8);
  }

  private note(lease: Lease, since: Mark): void {
    this.held = this.held.map((one) => (one.lease.id === lease.id ? { lease, since } : one));
  }

  private leftMs(): number {
    const { time } = this.actor.client;
    let least = Number.POSITIVE_INFINITY;
    for (const { lease, since } of this.held) least = Math.min(least, lease.expires_in_ms - time.elapsedMs(since));
    return least - this.marginMs;
  }

  private sinceBeatMs(): number {
    return this.actor.client.time.elapsedMs(this.lastBeat);
  }
}
