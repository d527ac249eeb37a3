/**
 * One task, from its offer to its receipt: accepted, kept, worked on, and completed, failed, escalated or given back. The
 * signal fires when the work has to stop; what the handler does then decides how it ends.
 */

import { Deadline, tickMs } from "../keeper/lease-keeper.ts";
import type { Client } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import type { LiveLease } from "./live-lease.ts";
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
  readonly workerId: string;
  readonly handler: TaskHandler;
  /** Whether it is wanted, asked while there is no obligation yet (T3). */
  readonly accept: () => Promise<boolean>;
  readonly maxRunMs: number | null;
  /** How long the lease lasts from now. */
  readonly leftMs: number;
  readonly offer: Offer;
}

/** How often the clocks are read, at least. */
const tickMsMax = 200;

export class TaskRun {
  private readonly options: TaskRunOptions;
  private readonly controller = new AbortController();
  private readonly marginMs: number;
  private kept: KeptTask | null = null;
  private readonly leases: TaskLeases;
  private deadline: Deadline | null = null;
  private stopped: StopReason | null = null;

  constructor(options: TaskRunOptions) {
    this.options = options;
    this.leases = new TaskLeases({
      client: options.client,
      leaseId: options.offer.lease_id,
      leases: options.offer.leases ?? [],
      leftMs: () => this.leftMs(),
      onBeat: (answer) => this.heard(answer),
    });
    this.marginMs = Math.min(options.leftMs / 10, 2_000);
  }

  get taskId(): string {
    return this.options.offer.task.task_id;
  }

  /** Tells the handler to stop. The first reason stays. */
  stop(reason: StopReason, detail: string): void {
    if (this.stopped !== null) return;
    this.stopped = reason;
    if (reason === "lost") this.leases.lose(detail);
    this.controller.abort(new TaskStopped(reason, detail));
  }

  async run(): Promise<TaskEnd> {
    const { keeper, offer, leftMs, accept } = this.options;
    this.kept = keeper.keep(offer.lease_id, beatWithinMs(leftMs, offer.leases), {
      beat: (answer) => this.heard(answer),
      lost: (code, detail) => this.stop("lost", `The lease of the task has ended (${code}): ${detail}`),
    });
    try {
      if (!(await accept())) {
        await this.giveBack();
        return "declined";
      }
      if (!(await this.oblige())) return "dropped";
      this.watch();
      return await this.work();
    } finally {
      this.deadline?.stop();
      this.kept.stop();
      this.leases.end();
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
    const { handler, offer } = this.options;
    let result: TaskResult;
    try {
      this.controller.signal.throwIfAborted();
      result = await handler(offer.task, this.context());
    } catch (error) {
      return this.failed(error);
    }
    // A result that came in spite of all is offered: whether it is late is for the ledger to say (T13).
    return (await this.deliver({ phase: "complete", ...successReceipt(result) })) ? "succeeded" : "dropped";
  }

  private async failed(error: unknown): Promise<TaskEnd> {
    switch (this.stopped) {
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
    const { client, offer, workerId } = this.options;
    await client.call("submit_receipt", { ...receipt, lease_id: offer.lease_id, source_system: workerId });
  }

  private async giveBack(): Promise<void> {
    const { client, offer } = this.options;
    this.kept?.stop();
    await client.call("release_task", { lease_id: offer.lease_id }).catch(() => undefined); // It runs out by itself.
  }

  private context(): TaskContext {
    const { offer } = this.options;
    const run = this;
    return {
      signal: this.controller.signal,
      attempt: offer.attempt,
      fence: offer.fence,
      leaseId: offer.lease_id,
      get leases() {
        return run.leases.leases;
      },
      get live() {
        return run.leases.live;
      },
      leaseOf: (resource) => this.leases.leaseOf(resource),
      progress: (value) => this.kept?.progress(value),
      remainingMs: () => this.leftMs(),
    };
  }

  private heard(answer: TaskLease): void {
    const { directives } = answer;
    this.leases.note(answer);
    for (const directive of directives) {
      if (directive === "cancel") this.stop("cancel", "The task was called off.");
      else this.stop("preempt", "A more urgent task needs this worker.");
    }
  }

  private leftMs(): number {
    return Math.max((this.kept?.leftMs() ?? 0) - this.marginMs, 0);
  }

  /** A7: the work stops before its lease can have ended. One that runs for too long keeps its lease no longer. */
  private watch(): void {
    const { maxRunMs, leftMs, client } = this.options;
    const { time } = client;
    const begun = time.mark();
    this.deadline = new Deadline({
      time,
      leftMs: () => this.leftMs(),
      everyMs: tickMs(leftMs, tickMsMax),
      onEnd: () => this.stop("lost", "The server could not be reached in time."),
      onTick: () => {
        if (maxRunMs === null || time.elapsedMs(begun) <= maxRunMs) return;
        this.kept?.stop();
        this.deadline?.stop();
        this.stop("overrun", `The handler ran for more than ${maxRunMs} ms.`);
      },
    });
    this.deadline.start();
  }
}
