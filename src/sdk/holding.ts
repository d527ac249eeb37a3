/**
 * Keeps leases alive while work runs under them, and stops the work before they can have ended (A7).
 *
 * A heartbeat leaves at a third of the TTL; what is bound is renewed instead (renewal.ts). Time is counted from before
 * the request was sent whose answer said how long the leases last, minus a margin; when it is up, the signal fires at
 * once, whether or not anything was heard. A short tick looks at the clocks, so that a machine that slept, or a program
 * that stood still, is noticed on waking up. Where the event stream is open, ends are heard of as they happen (G10).
 */
import { type Actor, askAs } from "./actor.ts";
import type { Mark } from "./clock.ts";
import { LeaseholdError } from "./errors.ts";
import type { LeaseholdEvent } from "./events.ts";
import { HeldLease } from "./held-lease.ts";
import { LeaseLost, type Loss, type LossReason, lossIn, revokedBy } from "./lease-lost.ts";
import type { Watcher } from "./lease-watch.ts";
import { Renewal, type RenewalHost } from "./renewal.ts";
import { backOffMs } from "./timing.ts";
import type { Lease, LeaseEnd } from "./wire.ts";

export interface HoldingOptions {
  /** How long before its end a lease is not used any more. */
  readonly marginMs?: number | undefined;
  /** Whether work that lasts opens a stream of events, to learn of ends as they happen; true if left out. */
  readonly watch?: boolean | undefined;
}

/** A tenth of the TTL, within these. */
const marginMsMin = 25;
const marginMsMax = 2_000;
const tickMsMin = 10;
const tickMsMax = 500;
/** Work that is over before this costs no stream of events. */
const watchAfterMs = 1_000;

export class Holding implements RenewalHost, Watcher {
  readonly actor: Actor;
  readonly held: readonly HeldLease[];
  private readonly controller = new AbortController();
  private readonly renewals = new Map<string, Renewal>();
  private readonly ttlMs: number;
  private readonly marginMs: number;
  private readonly beganAt: Mark;
  private mayWatch: boolean;
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

  constructor(actor: Actor, leases: readonly Lease[], sentAt: Mark, { marginMs, watch = true }: HoldingOptions = {}) {
    const { time } = actor.client;
    this.actor = actor;
    this.held = leases.map((lease) => new HeldLease(lease, sentAt, time));
    this.ttlMs = Math.min(...leases.map(({ ttl }) => ttl));
    this.marginMs = marginMs ?? Math.min(Math.max(this.ttlMs / 10, marginMsMin), marginMsMax);
    this.mayWatch = watch;
    this.lastBeat = sentAt;
    this.beatAfterMs = this.beatEveryMs();
    this.lastTick = time.mark();
    this.beganAt = this.lastTick;
    this.jumps = time.jumps;
    for (const one of this.held) if (one.isBound) this.renewals.set(one.id, new Renewal(one, this));
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

  get isOver(): boolean {
    return this.isStopped;
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
    this.actor.client.watch.add(this);
    const isOld = (one: HeldLease): boolean => one.ageMs > Math.min(this.ttlMs, one.lifeMs) / 4;
    const asked = this.held.filter((one) => one.isBound && isOld(one)).map((one) => this.renewals.get(one.id)?.renew());
    if (this.held.some((one) => !one.isBound && isOld(one))) asked.push(this.sendBeat());
    await Promise.all(asked);
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
    for (const renewal of this.renewals.values()) renewal.stop();
    this.actor.client.watch.remove(this);
  }

  /** Tells the work to stop; until it has, the leases are kept. */
  cancel(reason: unknown): void {
    this.controller.abort(reason);
  }

  lose(loss: Omit<Loss, "leases">): void {
    if (this.lastLoss !== null || this.isStopped) return;
    this.lastLoss = new LeaseLost({ ...loss, leases: this.leases });
    this.stop();
    this.controller.abort(this.lastLoss);
  }

  /** Until one of them may not be used any more. */
  usableMs(one: HeldLease): number {
    return one.leftMs - this.marginMs;
  }

  /** Somebody who was shown the token says that it is not the present one: it is asked for, or was under way. */
  async refresh(one: HeldLease): Promise<void> {
    const renewal = this.renewals.get(one.id);
    const { token } = one.lease;
    if (renewal === undefined) return this.beat === null ? this.sendBeat() : undefined;
    const wasUnderWay = renewal.isUnderWay;
    await renewal.check();
    if (wasUnderWay && one.lease.token === token) await renewal.check();
  }

  /** What the event stream tells about one of the leases, which may be long past, or news. */
  noticed({ type, reason, lease }: LeaseholdEvent): void {
    const one = this.held.find(({ id }) => id === lease?.id);
    if (one === undefined || lease === undefined || this.isStopped) return;
    const how = type === "lease.closing" ? "ended" : type.replace("lease.", "");
    const detail = `The lease ${lease.predicate} on ${lease.resource} was ${how}${reason === undefined ? "" : ` (${reason})`}.`;
    const said = reason ?? null;
    switch (type) {
      case "lease.revoked":
        return this.lose({ reason: revokedBy(reason), detail, said });
      case "lease.expired":
        return this.lose({ reason: "expired", detail, said });
      case "lease.released":
        return this.lose({ reason: "released", detail, said });
      case "lease.closing":
        if (reason === "resource_fenced") return this.lose({ reason: "fenced", detail, said });
        return void this.check(one);
      case "lease.transferred":
        if (lease.agent_id === this.actor.agentId) return;
        return this.lose({ reason: "stale", detail: `The lease is ${lease.agent_id}'s now.` });
      case "lease.renewed":
      case "lease.reissued":
        // One's own renewals are told of as well, often before they are answered.
        if (lease.generation > one.lease.generation) void this.check(one);
        return;
      default:
    }
  }

  /** A stream of events has just been opened: what happened before is not on it. */
  opened(): void {
    for (const one of this.held) void this.check(one);
  }

  private async check(one: HeldLease): Promise<void> {
    const renewal = this.renewals.get(one.id);
    if (renewal !== undefined) await renewal.check();
    else if (this.beat === null && !this.isStopped) await this.sendBeat();
  }

  private readonly tick = (): void => {
    if (this.isStopped || this.lastLoss !== null) return;
    this.lookAtClocks();
    if (this.lastLoss !== null) return;
    for (const renewal of this.renewals.values()) renewal.tick();
    if (this.beat === null && this.sinceBeatMs() >= this.beatAfterMs) void this.sendBeat();
    this.watchIfLong();
    const isHurried = [...this.renewals.values()].some(({ isOverdue }) => isOverdue);
    const slowMs = isHurried ? tickMsMin : Math.min(Math.max(this.ttlMs / 20, tickMsMin), tickMsMax);
    const tickMs = Math.min(slowMs, Math.max(this.remainingMs(), 1));
    this.timer = setTimeout(this.tick, tickMs);
  };

  private watchIfLong(): void {
    const { client } = this.actor;
    if (!this.mayWatch || client.time.elapsedMs(this.beganAt) < (this.renewals.size > 0 ? 0 : watchAfterMs)) return;
    this.mayWatch = false;
    client.watch.listen(this);
  }

  private lookAtClocks(): void {
    const { time } = this.actor.client;
    const sinceTick = time.elapsedMs(this.lastTick);
    this.lastTick = time.mark();
    const ended = this.held.find((one) => this.usableMs(one) <= 0);
    if (ended !== undefined) {
      if (sinceTick > this.ttlMs / 3) {
        const detail = `The program stood still for ${Math.round(sinceTick)} ms, past its leases' end.`;
        return this.lose({ reason: "overslept", detail });
      }
      const detail = "The server could not be reached in time, so the work was stopped before its leases could end.";
      return this.lose(this.renewals.get(ended.id)?.lossAtEnd ?? { reason: "no_contact", detail });
    }
    if (time.jumps === this.jumps) return;
    // A step of the clock, or a sleep that no other clock shows: the server knows.
    this.jumps = time.jumps;
    this.opened();
  }

  private async sendBeat(): Promise<void> {
    const unbound = this.held.filter(({ isBound }) => !isBound);
    if (unbound.length === 0) return;
    const controller = new AbortController();
    this.beat = controller;
    const asked = { agent_id: this.actor.agentId, lease_ids: unbound.map(({ id }) => id) };
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
    for (const lease of leases) this.held.find(({ id }) => id === lease.id)?.note(lease, sentAt);
    this.lastBeat = sentAt;
    this.beatAfterMs = this.beatEveryMs();
    for (const lease of leases) if (lease.expires_in_ms < lease.ttl / 2) await this.lookIfBound(lease);
  }

  /** G8: what is bound is not extended, which is not always seen at once. A heartbeat of its own tells. */
  private async lookIfBound({ id }: Lease): Promise<void> {
    try {
      await askAs(this.actor, "heartbeat", { lease_id: id }, { retries: 0, timeoutMs: this.ttlMs / 4 });
    } catch (error) {
      const one = this.held.find((held) => held.id === id);
      if (!(error instanceof LeaseholdError) || error.code !== "renew_required" || one === undefined) return;
      one.isBound = true;
      const renewal = new Renewal(one, this);
      this.renewals.set(id, renewal);
      await renewal.renew();
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
    this.lose({ reason, detail: `The lease ${what} has ended (${state.toLowerCase()}).` });
  }

  private unheard(error: unknown): void {
    if (this.isStopped) return;
    const loss = lossIn(error);
    if (loss !== null) return this.lose(loss);
    // Everything else may pass: ask again soon, until the time is up.
    this.failures++;
    this.beatAfterMs = this.sinceBeatMs() + backOffMs(this.failures, this.ttlMs / 64, this.ttlMs / 8);
  }

  private leftMs(): number {
    return Math.min(...this.held.map((one) => this.usableMs(one)));
  }

  /** A third of the TTL, or of what a token may live (G3). */
  private beatEveryMs(): number {
    return Math.min(this.ttlMs, ...this.held.filter(({ isBound }) => !isBound).map(({ lifeMs }) => lifeMs)) / 3;
  }

  private sinceBeatMs(): number {
    return this.actor.client.time.elapsedMs(this.lastBeat);
  }
}
