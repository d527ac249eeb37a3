/**
 * Heartbeats of tasks, one for each. It knows nothing of where it runs, so that it can run in a thread beside the event
 * loop that the work blocks (node/beat-thread.ts).
 */

import { beatShare, Heartbeat } from "../keeper/lease-keeper.ts";
import { tokenLimits } from "../token/index.ts";
import { errorOf } from "./errors.ts";
import { exchange, type Wire } from "./transport.ts";
import type { Lease, TaskLease } from "./wire.ts";

export interface TaskBeatsOptions {
  readonly wire: Wire;
  /** The lease lasts `leftMs` from the moment `at` of the given clock, which was before the heartbeat was sent. */
  readonly onBeat: (leaseId: string, at: number, leftMs: number, answer: TaskLease) => void;
  readonly onLost: (leaseId: string, code: string, detail: string) => void;
  readonly now: () => number;
  /** False once the event loop has stood still for too long: then no lease is extended. */
  readonly isAlive: () => boolean;
}

/** A busy machine takes its time; with less than this, attempts would only follow one another. */
const attemptMsMin = 200;

interface Kept {
  readonly heartbeat: Heartbeat;
  leftMs: number;
  /** What the handler reported and the server does not have yet. */
  news: { readonly progress: unknown } | null;
}

/** How long a task can be counted on: with tokens of cells no longer than those live (G3). */
export function beatWithinMs(leftMs: number, leases: readonly Lease[] = []): number {
  return leases.some(({ token }) => token !== undefined) ? Math.min(leftMs, tokenLimits.lifeMsMax) : leftMs;
}

export class TaskBeats {
  private readonly options: TaskBeatsOptions;
  private readonly kept = new Map<string, Kept>();

  constructor(options: TaskBeatsOptions) {
    this.options = options;
  }

  /** `leftMs`: how long the lease lasts from now without a heartbeat. */
  add(leaseId: string, leftMs: number): void {
    const heartbeat = new Heartbeat({
      send: (signal) => this.send(leaseId, one, signal),
      lastsMs: () => one.leftMs,
    });
    const one: Kept = { heartbeat, leftMs, news: null };
    this.kept.set(leaseId, one);
    heartbeat.within(leftMs * beatShare);
  }

  /** Leaves at once, and counts as a heartbeat. */
  report(leaseId: string, progress: unknown): void {
    const one = this.kept.get(leaseId);
    if (one === undefined) return;
    one.news = { progress };
    one.heartbeat.within(0);
  }

  remove(leaseId: string): void {
    this.kept.get(leaseId)?.heartbeat.stop();
    this.kept.delete(leaseId);
  }

  close(): void {
    for (const leaseId of [...this.kept.keys()]) this.remove(leaseId);
  }

  private async send(leaseId: string, one: Kept, stopped: AbortSignal): Promise<number | null> {
    const { wire, onBeat, onLost, now, isAlive } = this.options;
    if (!isAlive()) return one.leftMs / 6;
    const { news } = one;
    one.news = null;
    const at = now();
    const timeout = AbortSignal.timeout(Math.ceil(Math.max(one.leftMs * beatShare, attemptMsMin)));
    const signal = AbortSignal.any([stopped, timeout]);
    const sent = exchange(wire, "heartbeat_task", { lease_id: leaseId, ...news }, signal);
    const { status, body } = await sent.catch((error: unknown) => {
      one.news ??= news;
      throw error;
    });
    if (stopped.aborted) return null;
    if (status < 300) {
      const answer = body as TaskLease;
      one.leftMs = beatWithinMs(answer.expires_in_ms, answer.leases);
      onBeat(leaseId, at, one.leftMs, answer);
      return one.leftMs * beatShare - (now() - at);
    }
    const { code, detail, outcomeUnknown, retryable } = errorOf(status, body);
    // Progress that the server refuses, or a key that is being changed, does not end the task.
    // Nor does a cell that is away for a moment (G8): the lease keeps its present end, and the next one may extend it.
    const mayPass = code === "unauthorized" || code === "invalid_task" || code === "paused";
    if (outcomeUnknown || retryable || mayPass) throw new Error(detail);
    this.remove(leaseId);
    onLost(leaseId, code, detail);
    return null;
  }
}
