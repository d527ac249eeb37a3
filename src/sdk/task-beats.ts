/**
 * Heartbeats of tasks, all that are due in one call. It knows nothing of where it runs, so that it can run in a thread beside the event
 * loop that the work blocks (node/beat-thread.ts).
 */

import { beatShare, Heartbeat } from "../keeper/lease-keeper.ts";
import { tokenLimits } from "../token/index.ts";
import { errorOf } from "./errors.ts";
import { exchange, type Wire } from "./transport.ts";
import type { Lease, TaskLease, TaskLeases } from "./wire.ts";

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

/** What one call has at most; reports may have 16 KiB each. */
const beatsPerCall = 500;
const newsPerCall = 16;

interface Kept {
  readonly heartbeat: Heartbeat;
  leftMs: number;
  /** What the handler reported and the server does not have yet. */
  news: { readonly progress: unknown } | null;
  /** The next one does not wait for the answers of others. */
  goesAlone: boolean;
}

/** A heartbeat that is due. */
interface Beat {
  readonly leaseId: string;
  readonly one: Kept;
  readonly news: Kept["news"];
  readonly stopped: AbortSignal;
  readonly resolve: (nextMs: number | null) => void;
  readonly failed: (error: unknown) => void;
}

/** How long a task can be counted on: with tokens of cells no longer than those live (G3). */
export function beatWithinMs(leftMs: number, leases: readonly Lease[] = []): number {
  return leases.some(({ token }) => token !== undefined) ? Math.min(leftMs, tokenLimits.lifeMsMax) : leftMs;
}

export class TaskBeats {
  private readonly options: TaskBeatsOptions;
  private readonly kept = new Map<string, Kept>();
  private gathered: Beat[] = [];
  /** The server knows only heartbeats of one task. */
  private goesAlone = false;

  constructor(options: TaskBeatsOptions) {
    this.options = options;
  }

  /** `leftMs`: how long the lease lasts from now without a heartbeat. */
  add(leaseId: string, leftMs: number): void {
    const heartbeat = new Heartbeat({
      send: (signal) => this.send(leaseId, one, signal),
      lastsMs: () => one.leftMs,
    });
    const one: Kept = { heartbeat, leftMs, news: null, goesAlone: false };
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

  /** Waits a moment for others, so that one call has all that are due (T7). */
  private send(leaseId: string, one: Kept, stopped: AbortSignal): Promise<number | null> {
    if (!this.options.isAlive()) return Promise.resolve(one.leftMs / 6);
    return new Promise((resolve, reject) => {
      const { news } = one;
      one.news = null;
      const failed = (error: unknown): void => {
        one.news ??= news;
        reject(error);
      };
      if (this.gathered.push({ leaseId, one, news, stopped, resolve, failed }) === 1) setTimeout(() => this.leave(), 0);
    });
  }

  private leave(): void {
    // Those that are half due go along: from then on they are due together.
    for (const { heartbeat, leftMs } of this.kept.values()) {
      if (heartbeat.dueInMs < (leftMs * beatShare) / 2) void heartbeat.now();
    }
    let waiting = this.gathered;
    this.gathered = [];
    while (waiting.length > 0) {
      const call: Beat[] = [];
      const rest: Beat[] = [];
      let withNews = 0;
      for (const beat of waiting) {
        if (beat.stopped.aborted) beat.resolve(null);
        else if (this.goesAlone || beat.one.goesAlone) void this.sendAlone(beat);
        else if (call.length < beatsPerCall && (beat.news === null || withNews++ < newsPerCall)) call.push(beat);
        else rest.push(beat);
      }
      const [first] = call;
      if (call.length === 1 && first !== undefined) void this.sendAlone(first);
      else if (call.length > 1) void this.sendTogether(call);
      waiting = rest;
    }
  }

  private async sendAlone(beat: Beat): Promise<void> {
    const { wire, now } = this.options;
    const { leaseId, one, news, stopped } = beat;
    const at = now();
    const signal = AbortSignal.any([stopped, timeoutFor([beat])]);
    try {
      const { status, body } = await exchange(wire, "heartbeat_task", { lease_id: leaseId, ...news }, signal);
      one.goesAlone = false;
      this.answered(beat, at, status, body);
    } catch (error) {
      beat.failed(error);
    }
  }

  private async sendTogether(beats: readonly Beat[]): Promise<void> {
    const { wire, now } = this.options;
    const at = now();
    const timeout = timeoutFor(beats);
    const heartbeats = beats.map(({ leaseId, news }) => ({ lease_id: leaseId, ...news }));
    try {
      const { status, body } = await exchange(wire, "heartbeat_tasks", { heartbeats }, timeout);
      if (isAboutCall(status)) {
        // A server of an earlier version does not know it.
        if (status === 404 || status === 405) this.goesAlone = true;
        for (const beat of beats) void this.sendAlone(beat);
        return;
      }
      const { results } = status < 300 ? (body as TaskLeases) : { results: [] };
      for (const [index, beat] of beats.entries()) {
        const answer = results[index] ?? { status, body };
        this.answered(beat, at, answer.status, answer.body);
      }
    } catch (error) {
      for (const beat of beats) {
        // One that waits for its cell may hold up the others (G8): each goes by itself next.
        beat.one.goesAlone = timeout.aborted;
        beat.failed(error);
      }
    }
  }

  private answered({ leaseId, one, stopped, resolve, failed }: Beat, at: number, status: number, body: unknown): void {
    const { onBeat, onLost, now } = this.options;
    if (stopped.aborted) return resolve(null);
    if (status < 300) {
      const answer = body as TaskLease;
      one.leftMs = beatWithinMs(answer.expires_in_ms, answer.leases);
      onBeat(leaseId, at, one.leftMs, answer);
      return resolve(one.leftMs * beatShare - (now() - at));
    }
    const { code, detail, outcomeUnknown, retryable } = errorOf(status, body);
    // Progress that the server refuses, or a key that is being changed, does not end the task.
    // Nor does a cell that is away for a moment (G8): the lease keeps its present end, and the next one may extend it.
    const mayPass = code === "unauthorized" || code === "invalid_task" || code === "paused";
    if (outcomeUnknown || retryable || mayPass) return failed(new Error(detail));
    this.remove(leaseId);
    onLost(leaseId, code, detail);
    resolve(null);
  }
}

/** The call was refused, which says nothing of any one task. That there are too many calls is true of each. */
function isAboutCall(status: number): boolean {
  return status >= 400 && status < 500 && status !== 429;
}

/** Counted for the one that has the least time. */
function timeoutFor(beats: readonly Beat[]): AbortSignal {
  const leastMs = beats.reduce((least, { one }) => Math.min(least, one.leftMs), Number.POSITIVE_INFINITY);
  return AbortSignal.timeout(Math.ceil(Math.max(leastMs * beatShare, attemptMsMin)));
}
