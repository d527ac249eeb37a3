/**
 * One task, from its offer to its receipt: accepted, kept, worked on, and completed, failed, escalated or given back. The
 * signal fires when the work has to stop; what the handler does then decides how it ends.
 */

import type { Mark } from "../keeper/clock.ts";
import { tickMs } from "../keeper/lease-keeper.ts";
import type { Client } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import type { LiveLease } from "./live-lease.ts";
import type { ReceiptBox } from "./receipt-box.ts";
import { beatWithinMs } from "./task-beats.ts";
import type { KeptTask, TaskKeeper } from "./task-keeper.ts";
import { TaskLeases } from "./task-leases.ts";
import {
  failureReceipt,
  type ReceiptInput,
  type StopReason,
  successReceipt,
  type TaskResult,
  TaskStopped,
} from "./task-outcome.ts";
import type { TaskWatch, Watched } from "./task-watch.ts";
import type { Lease, Offer, OfferedTask, TaskLease } from "./wire.ts";

/** What a handler is given beside the task. */
export interface TaskContext {
  /** Fires when the work has to stop; its reason is a TaskStopped that says why. */
  readonly signal: AbortSignal;
  readonly attempt: number;
  /** To show to whatever is written to. */
  readonly fence: number;
  /** Those of the task's manifest, as they are now; what a cell hosts has its `coordinate` and the `token` of the moment. */
  readonly leases: readonly Lease[];
  /** The same to work with: `fetch`, `connect`, `file`, `memory` and `datagrams`, in the order of the manifest. */
  readonly live: readonly LiveLease[];
  /** One of those, by its name; where it was picked, by its place in the manifest. */
  leaseOf(resource: string | number): LiveLease;
  readonly leaseId: string;
  /** The trace that the task belongs to (W3C Trace Context): the parent of what the handler does. Null: of none. */
  readonly traceparent: string | null;
  /** Any JSON: shown with the task at once. */
  progress(value: unknown): void;
  /** How long the lease can be counted on without another word from the server. */
  remainingMs(): number;
}

export type TaskHandler = (task: OfferedTask, context: TaskContext) => Promise<TaskResult> | TaskResult;

/** "declined": its worker did not accept the offer (T3). */
export type TaskEnd = "succeeded" | "failed" | "escalated" | "given_back" | "dropped" | "declined";

export interface TaskRunOptions {
  readonly client: Client;
  readonly keeper: TaskKeeper;
  readonly receipts: ReceiptBox;
  readonly watch: TaskWatch;
  readonly workerId: string;
  readonly handler: TaskHandler;
  /** Whether it is wanted, asked while there is no obligation yet (T3). */
  readonly accept: (() => Promise<boolean>) | null;
  /** The handler has ended: the place is free, though its receipt is on its way. */
  readonly onWorked: () => void;
  readonly maxRunMs: number | null;
  /** How long the lease lasts from now. */
  readonly leftMs: number;
  readonly offer: Offer;
}

/** How often the clocks are read, at least. */
const tickMsMax = 200;

export class TaskRun implements Watched {
  readonly everyMs: number;
  private readonly options: TaskRunOptions;
  private readonly marginMs: number;
  private kept: KeptTask | null = null;
  private begun: Mark | null = null;
  private stopped: { readonly reason: StopReason; readonly detail: string } | null = null;
  // Most handlers are done before they ask for one of these.
  private madeController: AbortController | null = null;
  private madeLeases: TaskLeases | null = null;

  constructor(options: TaskRunOptions) {
    this.options = options;
    this.marginMs = Math.min(options.leftMs / 10, 2_000);
    this.everyMs = tickMs(options.leftMs, tickMsMax);
    // Their time counts from here.
    if ((options.offer.leases?.length ?? 0) > 0) void this.leases;
  }

  get taskId(): string {
    return this.options.offer.task.task_id;
  }

  /** Tells the handler to stop. The first reason stays. */
  stop(reason: StopReason, detail: string): void {
    if (this.stopped !== null) return;
    this.stopped = { reason, detail };
    if (reason === "lost") this.madeLeases?.lose(detail);
    this.madeController?.abort(new TaskStopped(reason, detail));
  }

  async run(): Promise<TaskEnd> {
    const { keeper, offer, leftMs, accept, watch } = this.options;
    this.kept = keeper.keep(offer.lease_id, beatWithinMs(leftMs, offer.leases), {
      beat: (answer) => this.heard(answer),
      lost: (code, detail) => this.stop("lost", `The lease of the task has ended (${code}): ${detail}`),
    });
    try {
      if (accept !== null && !(await accept())) {
        await this.giveBack();
        return "declined";
      }
      if (offer.accepted_receipt_id === undefined && !(await this.oblige())) return "dropped";
      this.begun = this.options.client.time.mark();
      watch.add(this);
      return await this.work();
    } finally {
      watch.delete(this);
      this.kept.stop();
      this.madeLeases?.end();
    }
  }

  /** Without it there is no obligation, and without that there is no result (T3). */
  private async oblige(): Promise<boolean> {
    try {
      await this.send({ phase: "accepted" });
      return true;
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      await this.giveBack();
      return false;
    }
  }

  private async work(): Promise<TaskEnd> {
    const { handler, offer, onWorked } = this.options;
    let result: TaskResult;
    try {
      if (this.stopped !== null) throw new TaskStopped(this.stopped.reason, this.stopped.detail);
      result = await handler(offer.task, new RunContext(this, offer));
    } catch (error) {
      onWorked();
      return this.failed(error);
    }
    onWorked();
    // A result that came in spite of all is offered: whether it is late is for the ledger to say (T13).
    return (await this.deliver({ phase: "complete", ...successReceipt(result) })) ? "succeeded" : "dropped";
  }

  private async failed(error: unknown): Promise<TaskEnd> {
    switch (this.stopped?.reason ?? null) {
      case "preempt":
      case "drain":
        await this.giveBack();
        return "given_back";
      case "cancel":
      case "lost":
      case "overrun":
        return "dropped"; // The task has ended, or has been or will be taken away; there is nothing to say to it.
      case null: {
        const receipt = failureReceipt(error, this.options.offer.attempt);
        const isDelivered = await this.deliver({ phase: "complete", ...receipt });
        return !isDelivered ? "dropped" : receipt.phase === "escalate" ? "escalated" : "failed";
      }
    }
  }

  /** False where the ledger refuses it: the task has gone another way. */
  private async deliver(receipt: ReceiptInput): Promise<boolean> {
    try {
      await this.send(receipt);
      return true;
    } catch (error) {
      if (error instanceof LeaseholdError && error.status !== null && error.status < 500) return false;
      throw error;
    }
  }

  private async send(receipt: ReceiptInput): Promise<void> {
    const { receipts, offer, workerId } = this.options;
    const { lease_id } = offer;
    // Each is said once of a lease, so its key needs no drawing; and one of this form is not looked up in the ledger (R3).
    const dedupe_key = `${lease_id}:${receipt.phase}`;
    await receipts.post({ ...receipt, lease_id, source_system: workerId, dedupe_key });
  }

  private async giveBack(): Promise<void> {
    const { client, offer } = this.options;
    this.kept?.stop();
    await client.call("release_task", { lease_id: offer.lease_id }).catch(() => undefined); // It runs out by itself.
  }

  progress(value: unknown): void {
    this.kept?.progress(value);
  }

  private heard(answer: TaskLease): void {
    const { directives } = answer;
    this.madeLeases?.note(answer);
    for (const directive of directives) {
      if (directive === "cancel") this.stop("cancel", "The task was called off.");
      else this.stop("preempt", "A more urgent task needs this worker.");
    }
  }

  get signal(): AbortSignal {
    if (this.madeController === null) {
      this.madeController = new AbortController();
      if (this.stopped !== null) this.madeController.abort(new TaskStopped(this.stopped.reason, this.stopped.detail));
    }
    return this.madeController.signal;
  }

  get leases(): TaskLeases {
    if (this.madeLeases === null) {
      const { client, offer } = this.options;
      this.madeLeases = new TaskLeases({
        client,
        leaseId: offer.lease_id,
        leases: offer.leases ?? [],
        leftMs: () => this.leftMs(),
        onBeat: (answer) => this.heard(answer),
      });
      if (this.stopped?.reason === "lost") this.madeLeases.lose(this.stopped.detail);
    }
    return this.madeLeases;
  }

  leftMs(): number {
    return Math.max((this.kept?.leftMs() ?? 0) - this.marginMs, 0);
  }

  /** A7: the work stops before its lease can have ended. One that runs for too long keeps its lease no longer. */
  check(): void {
    const { maxRunMs, client, watch } = this.options;
    if (this.leftMs() <= 0) {
      watch.delete(this);
      return this.stop("lost", "The server could not be reached in time.");
    }
    if (maxRunMs === null || this.begun === null || client.time.elapsedMs(this.begun) <= maxRunMs) return;
    this.kept?.stop();
    watch.delete(this);
    this.stop("overrun", `The handler ran for more than ${maxRunMs} ms.`);
  }
}

/**
 * A class of getters, and no fields with functions: objects that were made with either for each task outlived their tasks until
 * the whole heap was collected, and a third of a worker's time was garbage collection (decision 0048). Functions are made when
 * they are taken, bound, so that they may be taken out of it.
 */
class RunContext implements TaskContext {
  readonly #run: TaskRun;
  readonly attempt: number;
  readonly fence: number;
  readonly leaseId: string;
  readonly traceparent: string | null;

  constructor(run: TaskRun, { attempt, fence, lease_id, task }: Offer) {
    this.#run = run;
    this.attempt = attempt;
    this.fence = fence;
    this.leaseId = lease_id;
    this.traceparent = task.traceparent ?? null;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get leases(): readonly Lease[] {
    return this.#run.leases.leases;
  }

  get live(): readonly LiveLease[] {
    return this.#run.leases.live;
  }

  get leaseOf(): TaskContext["leaseOf"] {
    return (resource) => this.#run.leases.leaseOf(resource);
  }

  get progress(): TaskContext["progress"] {
    return (value) => this.#run.progress(value);
  }

  get remainingMs(): TaskContext["remainingMs"] {
    return () => this.#run.leftMs();
  }
}
