/**
 * Keeps leases alive while work runs under them, and stops the work before they can have ended (A7).
 *
 * A heartbeat leaves at a third of the TTL; bound leases are renewed instead (renewal.ts). Time is counted from before
 * the request was sent whose answer said how long the leases last, minus a margin; when it is up, the signal fires at
 * once, whether or not anything was heard. The clocks are read often, so that a machine that slept, or a program that
 * stood still, is noticed on waking up. Where the event stream is open, ends are heard of as they happen (G10).
 */

import type { Mark } from "../keeper/clock.ts";
import { beatShare, Deadline, Heartbeat, marginMsOf, tickMs } from "../keeper/lease-keeper.ts";
import { type Actor, askAs } from "./actor.ts";
import type { Client, Timed } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import type { LeaseholdEvent } from "./events.ts";
import type { LeaseUse } from "./gateway.ts";
import { HeldLease } from "./held-lease.ts";
import { LeaseLost, type Loss, lossIn, reasonOfEnd, revokedBy } from "./lease-lost.ts";
import type { Watcher } from "./lease-watch.ts";
import { Renewal, type RenewalHost } from "./renewal.ts";
import type { Granted, Lease, LeaseEnd } from "./wire.ts";

export interface HoldingOptions {
  /** How long before its end a lease is not used any more. */
  readonly marginMs?: number | undefined;
  /** Whether work that lasts opens a stream of events, to learn of ends as they happen; true if left out. */
  readonly watch?: boolean | undefined;
  /** How much the keeper may spend on these leases; then they end, and the work is stopped before. No limit if left out. */
  readonly budget?: Budget | undefined;
}

export interface Budget {
  /** Of all, from the grant on: when it is over the signal fires. */
  readonly timeMs?: number | undefined;
  /** Heartbeats and renewals of one lease that its keeper sends; after these it runs out. */
  readonly renewals?: number | undefined;
}

const tickMsMax = 500;
const attemptMsMin = 10;
/** Work that is over before this costs no stream of events. */
const watchAfterMsDefault = 1_000;

export class Holding implements RenewalHost, Watcher, LeaseUse {
  readonly actor: Actor;
  readonly held: readonly HeldLease[];
  private readonly controller = new AbortController();
  private readonly renewals = new Map<string, Renewal>();
  private readonly heartbeat: Heartbeat;
  private readonly deadline: Deadline;
  private readonly ttlMs: number;
  private readonly marginMs: number;
  private readonly beganAt: Mark;
  private readonly budget: Budget;
  private beats = 0;
  /** W8: the grant ends unless the first heartbeat arrives by then; null once that is known, or if none was needed. */
  private claim: { readonly withinMs: number; readonly since: Mark } | null;
  /** null once a stream of events was asked for, or if none is wanted. */
  private watchAfterMs: number | null;
  private jumps: number;
  private lastLoss: LeaseLost | null = null;
  private isActive = false;
  private isStopped = false;

  constructor(
    actor: Actor,
    { answer: { leases, claim_within_ms: claimWithinMs }, sentAt }: Timed<Granted>,
    { marginMs, watch = true, budget = {} }: HoldingOptions = {},
    watchAfterMs = watchAfterMsDefault,
  ) {
    const { time } = actor.client;
    this.actor = actor;
    this.held = leases.map((lease) => new HeldLease(lease, sentAt, time));
    this.ttlMs = Math.min(...leases.map(({ ttl }) => ttl));
    this.marginMs = marginMs ?? marginMsOf(this.ttlMs);
    this.claim = claimWithinMs === undefined ? null : { withinMs: claimWithinMs, since: sentAt };
    this.beganAt = time.mark();
    this.budget = budget;
    this.jumps = time.jumps;
    for (const one of this.held) if (one.isBound) this.renewals.set(one.id, new Renewal(one, this));
    this.watchAfterMs = !watch ? null : this.renewals.size > 0 ? 0 : watchAfterMs;
    this.heartbeat = new Heartbeat({ send: (signal) => this.sendBeat(signal), lastsMs: () => this.lastsMs() });
    this.deadline = new Deadline({
      time,
      leftMs: () => this.leftMs(),
      everyMs: tickMs(this.ttlMs, tickMsMax),
      onEnd: (sinceMs) => this.runOut(sinceMs),
      onTick: () => this.tick(),
    });
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

  get client(): Client {
    return this.actor.client;
  }

  get isOver(): boolean {
    return this.isStopped;
  }

  /** How long the leases can be used without another answer of the server. */
  remainingMs(): number {
    return this.lastLoss !== null ? 0 : Math.max(this.leftMs(), 0);
  }

  /** For the moment before something that cannot be undone: reads the clocks now. */
  assertHeld(): void {
    this.deadline.check();
    if (this.lastLoss !== null) throw this.lastLoss;
  }

  /** The work goes on: the next heartbeat says so, for idle detection (L10). */
  touch(): void {
    this.isActive = true;
  }

  /**
   * An answer that was held for long says little about how much is left, so the server is asked first. A grant that is not
   * collected is collected at once, beside the work, unless there is little time for it.
   */
  async begin(): Promise<void> {
    this.actor.client.watch.add(this);
    const collecting = this.claim === null ? null : this.heartbeat.now();
    if (this.claim !== null && this.claimUsableMs() < this.claim.withinMs / 2) await collecting;
    const isOld = (one: HeldLease): boolean => one.ageMs > Math.min(this.ttlMs, one.lifeMs) / 4;
    const asked = this.held.filter((one) => one.isBound && isOld(one)).map((one) => this.renewals.get(one.id)?.renew());
    const unbound = this.held.filter(({ isBound }) => !isBound);
    if (unbound.some(isOld)) asked.push(this.heartbeat.now());
    else if (unbound[0] !== undefined) this.heartbeat.within(this.beatEveryMs() - unbound[0].ageMs);
    if (asked.length > 0) await Promise.all(asked);
    if (!this.isStopped) this.deadline.start();
  }

  /** The work is over; the clocks are read once more, whether it was in time. */
  finish(): void {
    this.deadline.check();
    this.stop();
  }

  private stop(): void {
    this.isStopped = true;
    this.deadline.stop();
    this.heartbeat.stop();
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

  /** How long one of them may still be used. */
  usableMs(one: HeldLease): number {
    return Math.min(one.leftMs - this.marginMs, this.claimUsableMs());
  }

  private claimUsableMs(): number {
    if (this.claim === null) return Number.POSITIVE_INFINITY;
    return this.claim.withinMs - this.actor.client.time.elapsedMs(this.claim.since) - this.marginMs;
  }

  /** Without another heartbeat. */
  private lastsMs(): number {
    return Math.min(this.ttlMs, this.claim?.withinMs ?? Number.POSITIVE_INFINITY);
  }

  /** A resource refused the token as stale: the present one is asked for, unless it is already on its way. */
  async refresh(one: HeldLease): Promise<void> {
    const renewal = this.renewals.get(one.id);
    const { token } = one.lease;
    if (renewal === undefined) return this.heartbeat.now();
    const wasUnderWay = renewal.isUnderWay;
    await renewal.check();
    if (wasUnderWay && one.lease.token === token) await renewal.check();
  }

  /** An event about one of the leases, which may be old or new. */
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
        // Events of our own renewals come too, often before their answers.
        if (lease.generation > one.lease.generation) void this.check(one);
        return;
      default:
    }
  }

  /** A stream of events has just been opened: what happened before is not on it. */
  opened(): void {
    for (const one of this.held) void this.check(one);
  }

  private check(one: HeldLease): Promise<void> {
    return this.renewals.get(one.id)?.check() ?? this.heartbeat.now();
  }

  private tick(): void {
    const { client } = this.actor;
    const { time } = client;
    if (time.jumps !== this.jumps) {
      // A step of the clock, or a sleep that no other clock shows: the server knows.
      this.jumps = time.jumps;
      this.opened();
    }
    if (this.watchAfterMs === null || time.elapsedMs(this.beganAt) < this.watchAfterMs) return;
    this.watchAfterMs = null;
    client.watch.listen(this);
  }

  /** Whether a lease that was extended `before` times may be extended once more (the budget). */
  mayExtend(before: number): boolean {
    return before < (this.budget.renewals ?? Number.POSITIVE_INFINITY);
  }

  private runOut(sinceMs: number): void {
    const spent = this.budgetSpent();
    if (spent !== null) return this.lose({ reason: "budget", detail: `The leases were kept for ${spent}, as asked.` });
    if (sinceMs > this.ttlMs / 3) {
      const detail = `The program stood still for ${Math.round(sinceMs)} ms, past its leases' end.`;
      return this.lose({ reason: "overslept", detail });
    }
    const ended = this.held.find((one) => this.usableMs(one) <= 0);
    const detail = "The server could not be reached in time, so the work was stopped before its leases could end.";
    this.lose(this.renewals.get(ended?.id ?? "")?.lossAtEnd ?? { reason: "no_contact", detail });
  }

  /** What there was to spend, in words; null while some of it is left. */
  private budgetSpent(): string | null {
    const { timeMs = Number.POSITIVE_INFINITY, renewals = Number.POSITIVE_INFINITY } = this.budget;
    if (this.budgetLeftMs() <= 0) return `${timeMs} ms`;
    const sent = Math.max(this.beats, ...[...this.renewals.values()].map((renewal) => renewal.sent));
    return sent >= renewals ? `${renewals} renewals` : null;
  }

  private budgetLeftMs(): number {
    const { timeMs } = this.budget;
    return timeMs === undefined ? Number.POSITIVE_INFINITY : timeMs - this.actor.client.time.elapsedMs(this.beganAt);
  }

  private async sendBeat(signal: AbortSignal): Promise<number | null> {
    const collects = this.claim !== null;
    const unbound = this.held.filter(({ isBound }) => !isBound);
    const isDue = (): boolean => unbound.length > 0 && this.mayExtend(this.beats);
    if (!collects && !isDue()) return null;
    const activity = this.isActive;
    this.isActive = false;
    const input = {
      agent_id: this.actor.agentId,
      // One of a bound lease is refused, and collects all the same (W8).
      lease_ids: (collects ? this.held : unbound).map(({ id }) => id),
      ...(activity && { activity }),
    };
    const timeoutMs = Math.max(this.lastsMs() / 4, attemptMsMin);
    // Work that is over sooner lets the one that collects run out: to abort it costs a connection.
    const limits = collects ? { timeoutMs } : { signal, timeoutMs, retries: 0 };
    try {
      const { answer, sentAt } = await askAs(this.actor, "heartbeat_all", input, limits);
      if (!collects) this.beats++;
      await this.heard(answer.leases, answer.lost, sentAt);
      return isDue() || this.claim !== null ? this.beatEveryMs() - this.actor.client.time.elapsedMs(sentAt) : null;
    } catch (error) {
      const loss = lossIn(error);
      if (loss === null) throw error; // It may pass: it is sent again soon, until the time is up.
      this.lose(loss);
      return null;
    }
  }

  private async heard(leases: readonly Lease[], lost: readonly LeaseEnd[], sentAt: Mark): Promise<void> {
    if (this.isStopped) return;
    const [first] = lost;
    if (first !== undefined) {
      if (first.error === "verify_required") return this.verify();
      return this.loseEnded(first);
    }
    this.claim = null;
    for (const lease of leases) this.held.find(({ id }) => id === lease.id)?.note(lease, sentAt);
    for (const lease of leases) {
      if (lease.expires_in_ms < lease.ttl / 2 && !this.renewals.has(lease.id)) await this.lookIfBound(lease);
    }
  }

  /** G8: a bound lease is not extended, and may have become bound since. A heartbeat for it alone says so. */
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

  /** A restart was announced for this agent (L9): after VERIFY_ALL a heartbeat revives the leases. */
  private async verify(): Promise<void> {
    const { agentId } = this.actor;
    await askAs(this.actor, "verify_all", { agent_id: agentId }, { retries: 0, timeoutMs: this.ttlMs / 4 });
    this.heartbeat.within(tickMs(this.ttlMs, tickMsMax));
  }

  private loseEnded({ id, state }: LeaseEnd): void {
    const lease = this.leases.find((one) => one.id === id);
    const what = lease === undefined ? id : `${lease.predicate} on ${lease.resource}`;
    this.lose({ reason: reasonOfEnd(state), detail: `The lease ${what} has ended (${state.toLowerCase()}).` });
  }

  private leftMs(): number {
    return Math.min(this.budgetLeftMs(), ...this.held.map((one) => this.usableMs(one)));
  }

  /** A third of the TTL, or of what a token may live (G3). */
  private beatEveryMs(): number {
    const lives = this.held.filter(({ isBound }) => !isBound).map(({ lifeMs }) => lifeMs);
    return Math.min(this.ttlMs, ...lives) * beatShare;
  }
}
