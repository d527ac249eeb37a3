/**
 * Keeps one bound lease: it is never extended but issued again, at three quarters of its life (G8). With the answer the
 * old token is void and the new one valid; answers that are lost, late or repeated are dealt with here.
 */

import type { Mark } from "../keeper/clock.ts";
import { backOffMs, Heartbeat } from "../keeper/lease-keeper.ts";
import { type Actor, askAs } from "./actor.ts";
import { generationIn, LeaseholdError } from "./errors.ts";
import type { HeldLease } from "./held-lease.ts";
import { type Loss, lossIn, reasonOfEnd } from "./lease-lost.ts";
import type { LeaseState } from "./wire.ts";

export interface RenewalHost {
  readonly actor: Actor;
  lose(loss: Omit<Loss, "leases">): void;
  readonly isOver: boolean;
  /** How long it may still be used. */
  usableMs(held: HeldLease): number;
  /** Whether a lease that was renewed `before` times may be renewed once more (the budget). */
  mayExtend(before: number): boolean;
}

/** When it is renewed, as a part of its life; jittered, so that a crowd spreads out. */
const renewAt = 0.75;
const jitter = 0.05;
/** One attempt takes a third of the time that is left, within these: the server itself waits 5 s for a cell. */
const attemptMsMin = 500;
const attemptMsMax = 6_000;
const backOffMsBase = 100;
const backOffMsCap = 2_000;
/** However little time is left, a few more attempts are made in it. */
const attemptsInTheRest = 8;
const backOffMsMin = 20;
const pauseMsMin = 10;

export class Renewal {
  private readonly held: HeldLease;
  private readonly host: RenewalHost;
  private readonly heartbeat: Heartbeat;
  /** The generation that the next renewal names; it may be ahead of the token that is known here. */
  private generation: number;
  private share = shareOfLife();
  private failures = 0;
  private triedAt: Mark;
  private pauseMs = 0;
  private refusal: LeaseholdError | null = null;
  private cellWasSilent = false;
  /** Renewals that were granted. */
  sent = 0;

  constructor(held: HeldLease, host: RenewalHost) {
    this.held = held;
    this.host = host;
    this.generation = held.lease.generation;
    this.triedAt = host.actor.client.time.mark();
    const renew = this.step(async (signal) => {
      if ((await this.attempt(signal)) === "look") await this.look(signal);
    });
    this.heartbeat = new Heartbeat({ send: renew, lastsMs: () => held.lifeMs });
    if (host.mayExtend(0)) this.heartbeat.within(this.dueInMs());
  }

  /** How the lease is lost if the time runs out now; null where contact was lost. */
  get lossAtEnd(): Omit<Loss, "leases"> | null {
    const { refusal } = this;
    if (refusal === null) return null;
    if (!this.cellWasSilent && refusal.code !== "lease_denied") return null;
    const detail = `The lease could not be renewed before its end: ${refusal.detail}`;
    return {
      reason: this.cellWasSilent ? "cell_not_ready" : "expired",
      detail,
      said: refusal.reasonSaid,
      cause: refusal,
    };
  }

  get isUnderWay(): boolean {
    return this.heartbeat.isUnderWay;
  }

  /** Renews at once, or waits for what is under way. Never rejects: the outcome shows in the lease. */
  renew(): Promise<void> {
    return this.heartbeat.now();
  }

  /** Asks for the lease's state after a sign that it has changed: somebody renewed it, or it has ended. */
  check(): Promise<void> {
    return this.heartbeat.now(this.step((signal) => this.look(signal)));
  }

  stop(): void {
    this.heartbeat.stop();
  }

  private step(work: (signal: AbortSignal) => Promise<void>) {
    return async (signal: AbortSignal): Promise<number | null> => {
      await work(signal).catch((error: unknown) => this.loseBy(error));
      return this.host.isOver || !this.host.mayExtend(this.sent) ? null : this.dueInMs();
    };
  }

  private dueInMs(): number {
    const { held, failures, share, pauseMs, host, triedAt } = this;
    const dueMs =
      failures === 0 ? held.lifeMs * share - held.ageMs : pauseMs - host.actor.client.time.elapsedMs(triedAt);
    return Math.max(dueMs, pauseMsMin);
  }

  /** "look": it has been issued again already, and the answer that said so was lost. */
  private async attempt(signal: AbortSignal): Promise<"look" | "done"> {
    const { held, host } = this;
    this.triedAt = host.actor.client.time.mark();
    this.generation = Math.max(this.generation, held.lease.generation);
    try {
      const input = { lease_id: held.id, generation: this.generation };
      const { answer, sentAt } = await askAs(host.actor, "renew_lease", input, this.limits(signal));
      if (host.isOver) return "done";
      held.note(answer, sentAt);
      this.sent++;
      this.wentWell();
    } catch (error) {
      if (host.isOver || this.loseBy(error)) return "done";
      if (error instanceof LeaseholdError) return this.refused(error, signal);
      throw error;
    }
    return "done";
  }

  private async refused(error: LeaseholdError, signal: AbortSignal): Promise<"look" | "done"> {
    this.failures++;
    const soonMs = this.host.usableMs(this.held) / attemptsInTheRest;
    this.pauseMs = Math.min(backOffMs(this.failures, backOffMsBase, backOffMsCap), Math.max(soonMs, backOffMsMin));
    switch (error.code) {
      case "stale_generation":
        if (!this.cellWasSilent) return "look";
        // Issued again, but the cell never confirmed it: until it does, the old end counts.
        this.generation = generationIn(error) ?? this.generation;
        this.pauseMs = 0;
        return "done";
      case "verify_required":
        if (await this.verify(signal)) this.pauseMs = 0;
        return "done";
      case "lease_denied":
        this.pauseMs = Number.POSITIVE_INFINITY; // Its time is used up; it runs out.
        break;
      default: // Everything else may pass: it is tried again until the time is up.
    }
    this.refusal = error;
    this.cellWasSilent ||= error.code === "paused" && error.reasonSaid === "cell_not_ready";
    return "done";
  }

  private async look(signal: AbortSignal): Promise<void> {
    const { held, host } = this;
    const { actor } = host;
    const { answer, sentAt } = await askAs(actor, "get_lease", { lease_id: held.id }, this.limits(signal));
    if (host.isOver) return;
    if (answer.agent_id !== actor.agentId) {
      const detail = `The lease is ${answer.agent_id}'s now.`;
      return host.lose({ reason: "stale", detail });
    }
    if (answer.state === "ACTIVE") {
      if (answer.generation <= held.lease.generation) return;
      if (answer.token !== undefined) {
        held.note(answer, sentAt);
        return this.wentWell();
      }
      this.generation = answer.generation;
    }
    // A renewal that is refused says how it ended, and why.
    await this.attempt(signal);
    if (!host.isOver) this.loseEnded(answer.state);
  }

  /** L9: after VERIFY_ALL a renewal revives the lease. */
  private async verify(signal: AbortSignal): Promise<boolean> {
    const { actor } = this.host;
    const input = { agent_id: actor.agentId, lease_ids: [this.held.id] };
    return askAs(actor, "verify_all", input, this.limits(signal)).then(
      () => true,
      () => false,
    );
  }

  private loseBy(error: unknown): boolean {
    const loss = lossIn(error);
    if (loss === null || this.host.isOver) return false;
    this.host.lose(loss);
    return true;
  }

  private loseEnded(state: LeaseState): void {
    if (state === "EXPIRED" || state === "RELEASED" || state === "REVOKED")
      this.host.lose({ reason: reasonOfEnd(state), detail: `The lease has ended (${state.toLowerCase()}).` });
  }

  private wentWell(): void {
    this.failures = 0;
    this.refusal = null;
    this.cellWasSilent = false;
    this.share = shareOfLife();
  }

  private limits(signal: AbortSignal) {
    const third = this.host.usableMs(this.held) / 3;
    const timeoutMs = Math.min(Math.max(third, attemptMsMin), attemptMsMax);
    return { signal, retries: 0, timeoutMs };
  }
}

function shareOfLife(): number {
  return renewAt - jitter + Math.random() * 2 * jitter;
}
