/**
 * Heartbeats for tasks: one for each at a third of its lease, sent anew soon where no answer came. It knows nothing of
 * what it runs in, so that it can be run beside the event loop that the work blocks (node/beat-thread.ts).
 */
import { errorOf } from "./errors.ts";
import { backOffMs } from "./timing.ts";
import type { Wire } from "./transport.ts";
import type { TaskLease } from "./wire.ts";

export interface BeatReport {
  /** The lease lasts `leftMs` from the moment `at` of the given clock, which was before the heartbeat was sent. */
  beat(leaseId: string, at: number, leftMs: number, answer: TaskLease): void;
  lost(leaseId: string, code: string, detail: string): void;
}

interface Kept {
  leftMs: number;
  failures: number;
  progress: unknown;
  hasProgress: boolean;
  timer: ReturnType<typeof setTimeout> | null;
  isSending: boolean;
}

export interface BeatsOptions {
  readonly wire: Wire;
  readonly report: BeatReport;
  readonly now: () => number;
  /** False once those who work have not stirred for too long: then nobody's lease is extended. */
  readonly isAlive: () => boolean;
}

const everyMsMin = 10;
/** A busy machine takes its time; with less than this, attempts would only follow one another. */
const attemptMsMin = 200;

export class Beats {
  private readonly options: BeatsOptions;
  private readonly kept = new Map<string, Kept>();

  constructor(options: BeatsOptions) {
    this.options = options;
  }

  /** `leftMs`: how long the lease lasts from now without a heartbeat. */
  add(leaseId: string, leftMs: number): void {
    const one: Kept = { leftMs, failures: 0, progress: null, hasProgress: false, timer: null, isSending: false };
    this.kept.set(leaseId, one);
    this.schedule(leaseId, one, leftMs / 3);
  }

  /** Goes out at once, and counts as a heartbeat. */
  tell(leaseId: string, progress: unknown): void {
    const one = this.kept.get(leaseId);
    if (one === undefined) return;
    one.progress = progress;
    one.hasProgress = true;
    if (!one.isSending) this.schedule(leaseId, one, 0);
  }

  remove(leaseId: string): void {
    const one = this.kept.get(leaseId);
    if (one === undefined) return;
    if (one.timer !== null) clearTimeout(one.timer);
    this.kept.delete(leaseId);
  }

  close(): void {
    for (const leaseId of [...this.kept.keys()]) this.remove(leaseId);
  }

  private schedule(leaseId: string, one: Kept, ms: number): void {
    if (one.timer !== null) clearTimeout(one.timer);
    one.timer = setTimeout(() => void this.send(leaseId, one), ms <= 0 ? 0 : Math.max(ms, everyMsMin));
  }

  private async send(leaseId: string, one: Kept): Promise<void> {
    const { wire, report, now, isAlive } = this.options;
    if (!isAlive()) return this.schedule(leaseId, one, one.leftMs / 6);
    one.isSending = true;
    const { progress, hasProgress } = one;
    one.hasProgress = false;
    const at = now();
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), Math.max(one.leftMs / 3, attemptMsMin));
    let next = one.leftMs / 3;
    try {
      const input = hasProgress ? { lease_id: leaseId, progress } : { lease_id: leaseId };
      const { status, body } = await wire.send("heartbeat_task", input, controller.signal);
      if (this.kept.get(leaseId) !== one) return;
      if (status >= 300) {
        const { code, detail, outcomeUnknown, retryable } = errorOf(status, body);
        if (!outcomeUnknown && !retryable && code !== "unauthorized" && code !== "invalid_task") {
          this.remove(leaseId);
          return report.lost(leaseId, code, detail);
        }
        next = this.soon(one);
      } else {
        const answer = body as TaskLease;
        one.failures = 0;
        one.leftMs = answer.expires_in_ms;
        next = one.leftMs / 3;
        report.beat(leaseId, at, answer.expires_in_ms, answer);
      }
    } catch {
      one.hasProgress ||= hasProgress;
      next = this.soon(one);
    } finally {
      clearTimeout(timer);
      one.isSending = false;
      if (this.kept.get(leaseId) === one) this.schedule(leaseId, one, one.hasProgress && one.failures === 0 ? 0 : next);
    }
  }

  private soon(one: Kept): number {
    return backOffMs(one.failures++, one.leftMs / 64, one.leftMs / 8);
  }
}
