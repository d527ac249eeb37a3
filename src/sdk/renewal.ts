/**
 * Keeps one bound lease: it is never extended but issued anew, at three quarters of its life (G8). With the answer the
 * old token is dead and the new one is there; what is lost, late or told twice on the way is settled here.
 */
import { type Actor, askAs } from "./actor.ts";
import type { Mark } from "./clock.ts";
import { generationIn, LeaseholdError } from "./errors.ts";
import type { HeldLease } from "./held-lease.ts";
import { type Loss, lossIn } from "./lease-lost.ts";
import { backOffMs } from "./timing.ts";
import type { LeaseState } from "./wire.ts";

export interface RenewalHost {
  readonly actor: Actor;
  lose(loss: Omit<Loss, "leases">): void;
  readonly isOver: boolean;
  /** Until it may not be used any more. */
  usableMs(held: HeldLease): number;
}

/** When it is renewed, as a part of its life; not all at once, so that a crowd spreads out. */
const renewAt = 0.75;
const jitter = 0.05;
/** One attempt takes a third of the time that is left, within these: the server itself waits 5 s for a cell. */
const attemptMsMin = 500;
const attemptMsMax = 6_000;
const backOffMsBase = 100;
const backOffMsCap = 2_000;
/** However little time is left, it is worth a few attempts more. */
const attemptsInTheRest = 8;
const backOffMsMin = 20;

export class Renewal {
  private readonly held: HeldLease;
  private readonly host: RenewalHost;
  private readonly controller = new AbortController();
  private underWay: Promise<void> | null = null;
  /** What the next renewal is asked from: may be ahead of the token that is there. */
  private generation: number;
  private share = shareOfLife();
  private failures = 0;
  private triedAt: Mark;
  private pauseMs = 0;
  private refusal: LeaseholdError | null = null;
  private cellWasSilent = false;

  constructor(held: HeldLease, host: RenewalHost) {
    this.held = held;
    this.host = host;
    this.generation = held.lease.generation;
    this.triedAt = host.actor.client.time.mark();
  }

  /** What it means if the time runs out now. */
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

  /** Whether it has to be tried again soon. */
  get isOverdue(): boolean {
    return this.failures > 0 && this.underWay === null;
  }

  get isUnderWay(): boolean {
    return this.underWay !== null;
  }

  tick(): void {
    if (this.underWay !== null) return;
    const { time } = this.host.actor.client;
    const isDue =
      this.failures === 0
        ? this.held.ageMs >= this.held.lifeMs * this.share
        : time.elapsedMs(this.triedAt) >= this.pauseMs;
    if (isDue) void this.renew();
  }

  /** Renews at once, or waits for what is under way. Never rejects: what came of it is seen at the lease. */
  renew(): Promise<void> {
    return this.alone(async () => {
      if ((await this.attempt()) === "look") await this.look();
    });
  }

  /** Asks what has become of the lease, after a sign that something has: somebody renewed it, or it has ended. */
  check(): Promise<void> {
    return this.alone(() => this.look());
  }

  stop(): void {
    this.controller.abort();
  }

  private alone(step: () => Promise<void>): Promise<void> {
    this.underWay ??= step()
      .catch((error: unknown) => {
        this.loseBy(error);
      })
      .finally(() => {
        this.underWay = null;
      });
    return this.underWay;
  }

  /** "look": it has been issued anew already, and the answer that said so is not here. */
  private async attempt(): Promise<"look" | "done"> {
    const { held, host } = this;
    this.triedAt = host.actor.client.time.mark();
    this.generation = Math.max(this.generation, held.lease.generation);
    try {
      const input = { lease_id: held.id, generation: this.generation };
      const { answer, sentAt } = await askAs(host.actor, "renew_lease", input, this.limits());
      if (host.isOver) return "done";
      held.note(answer, sentAt);
      this.wentWell();
    } catch (error) {
      if (host.isOver || this.loseBy(error)) return "done";
      if (error instanceof LeaseholdError) return this.refused(error);
      throw error;
    }
    return "done";
  }

  private async refused(error: LeaseholdError): Promise<"look" | "done"> {
    this.failures++;
    const soonMs = this.host.usableMs(this.held) / attemptsInTheRest;
    this.pauseMs = Math.min(backOffMs(this.failures, backOffMsBase, backOffMsCap), Math.max(soonMs, backOffMsMin));
    switch (error.code) {
      case "stale_generation":
        if (!this.cellWasSilent) return "look";
        // Issued anew, but the cell never confirmed it: until it does, no more time than before is counted on.
        this.generation = generationIn(error) ?? this.generation;
        this.pauseMs = 0;
        return "done";
      case "verify_required":
        if (await this.verify()) this.pauseMs = 0;
        return "done";
      case "lease_denied":
        this.pauseMs = Number.POSITIVE_INFINITY; // Its time is used up; it runs out.
        break;
      default: // All else may pass: it is tried again until the time is up.
    }
    this.refusal = error;
    this.cellWasSilent ||= error.code === "paused" && error.reasonSaid === "cell_not_ready";
    return "done";
  }

  private async look(): Promise<void> {
    const { held, host } = this;
    const { actor } = host;
    const { answer, sentAt } = await askAs(actor, "get_lease", { lease_id: held.id }, this.limits());
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
    await this.attempt();
    if (!host.isOver) this.loseEnded(answer.state);
  }

  /** L9: after the truth is known, a renewal brings the lease back. */
  private async verify(): Promise<boolean> {
    const { actor } = this.host;
    const input = { agent_id: actor.agentId, lease_ids: [this.held.id] };
    return askAs(actor, "verify_all", input, this.limits()).then(
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
    const reason = state === "EXPIRED" ? "expired" : state === "RELEASED" ? "released" : "revoked";
    if (state === "EXPIRED" || state === "RELEASED" || state === "REVOKED")
      this.host.lose({ reason, detail: `The lease has ended (${state.toLowerCase()}).` });
  }

  private wentWell(): void {
    this.failures = 0;
    this.refusal = null;
    this.cellWasSilent = false;
    this.share = shareOfLife();
  }

  private limits(): { readonly signal: AbortSignal; readonly retries: 0; readonly timeoutMs: number } {
    const third = this.host.usableMs(this.held) / 3;
    const timeoutMs = Math.min(Math.max(third, attemptMsMin), attemptMsMax);
    return { signal: this.controller.signal, retries: 0, timeoutMs };
  }
}

function shareOfLife(): number {
  return renewAt - jitter + Math.random() * 2 * jitter;
}
