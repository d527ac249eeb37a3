/**
 * A worker: polls for tasks, works on several at once, and keeps each one's lease from outside the handler's event loop.
 * When it drains, it takes nothing new, lets running tasks end for a while, and releases the rest, which burns
 * no attempt (T13).
 */

import type { Client } from "./client.ts";
import { drawKey } from "./idempotency.ts";
import { ReceiptBox } from "./receipt-box.ts";
import type { TaskKeeper } from "./task-keeper.ts";
import { TaskPolls } from "./task-polls.ts";
import { type TaskEnd, type TaskHandler, TaskRun } from "./task-run.ts";
import { TaskWatch } from "./task-watch.ts";
import { sleep } from "./timing.ts";
import type { Offer } from "./wire.ts";
import { runIn } from "./works.ts";

export interface WorkerOptions {
  readonly handler: TaskHandler;
  /**
   * Looks at an offer before it is accepted (T3). What it declines goes back to the queue, without an attempt and without a
   * receipt, and nothing is polled for a while. Left out: all offers are accepted.
   */
  readonly accept?: ((offer: Offer) => Promise<boolean> | boolean) | undefined;
  /** The kinds of tasks it does; others are given back. Left out: all. */
  readonly types?: readonly string[] | undefined;
  readonly capabilities?: readonly string[] | undefined;
  /** Tasks at once; 1 if left out. */
  readonly concurrency?: number | undefined;
  /** `{type}.{instance}`, the same across restarts: then its orphaned tasks come back to it. Drawn if left out. */
  readonly workerId?: string | undefined;
  /** An event loop that stands still for longer is taken for stuck, and its leases run out; a minute if left out. */
  readonly maxBusyMs?: number | undefined;
  /** A handler that runs longer is stopped by its signal, and its lease runs out; no limit if left out. */
  readonly maxRunMs?: number | undefined;
  /** When draining, how long running tasks may take before their signal fires; 10 s if left out. */
  readonly drainMs?: number | undefined;
  /** Signals of the process on which to drain; SIGTERM if left out. */
  readonly drainOn?: readonly string[] | undefined;
  readonly backOff?: WorkerBackOff | undefined;
  /** Called for each task that has ended here. */
  readonly onEnd?: ((taskId: string, end: TaskEnd) => void) | undefined;
  /** Called for errors after which the worker goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The pauses between polls (T6). A `Retry-After` of the server is obeyed where it is longer. */
export interface WorkerBackOff {
  /** Where there was no work, or none that was accepted; 5 s if left out. A poll that was held counts as the pause. */
  readonly noWorkMs?: number | undefined;
  /** After an error, and twice as long after each further one; 5 s if left out. */
  readonly errorMs?: number | undefined;
  /** At most; 60 s if left out. */
  readonly errorMsMax?: number | undefined;
}

type OpenKeeper = (maxBusyMs: number) => Promise<TaskKeeper>;

const maxBusyMsDefault = 60_000;
const drainMsDefault = 10_000;
/** A task that was taken; it runs once its lease is certain. */
interface TaskEntry {
  run: TaskRun | null;
  ended: Promise<void>;
  /** Its handler has ended, and somebody else may have its place. */
  isWorked: boolean;
}

export class Worker {
  readonly workerId: string;
  /** Settles when it has drained; rejects where it cannot go on. */
  readonly done: Promise<void>;
  private readonly client: Client;
  private readonly options: WorkerOptions;
  private readonly openKeeper: OpenKeeper;
  private readonly receipts: ReceiptBox;
  private readonly polls: TaskPolls;
  private keeper: TaskKeeper | null = null;
  private readonly watch = new TaskWatch();
  private readonly runs = new Set<TaskEntry>();
  /** Of those, the ones whose handler has not ended. */
  private working = 0;
  private readonly draining = new AbortController();
  constructor(client: Client, options: WorkerOptions, openKeeper: OpenKeeper) {
    this.client = client;
    this.options = options;
    this.openKeeper = openKeeper;
    this.receipts = new ReceiptBox(client);
    this.workerId = options.workerId ?? `worker.${drawKey("sdk")}`;
    this.polls = new TaskPolls({
      client,
      options,
      workerId: this.workerId,
      draining: this.draining.signal,
      places: () => this.places,
      begin: (offer, leftMs) => this.begin(offer, leftMs),
      giveBack: (offer) => this.giveBack(offer),
      flush: () => this.receipts.flush(),
    });
    // Its handlers are not part of the work that the worker was started in (W13).
    this.done = runIn(null, () => this.run());
    this.done.catch(() => undefined); // The caller awaits it, or does not.
  }

  /** How many tasks it works on. */
  get busy(): number {
    return this.runs.size;
  }

  /** Places for more. Receipts that are on their way do not take one, unless the server does not keep up with them. */
  private get places(): number {
    const { concurrency = 1 } = this.options;
    return this.runs.size < 2 * concurrency ? concurrency - this.working : 0;
  }

  /** Takes nothing new, and ends once all that runs has ended or was given back. */
  drain(): Promise<void> {
    this.draining.abort();
    this.polls.freed();
    return this.done;
  }

  private async run(): Promise<void> {
    const keeper = await this.openKeeper(this.options.maxBusyMs ?? maxBusyMsDefault);
    this.keeper = keeper;
    const stopListening = onSignals(this.options.drainOn ?? ["SIGTERM"], () => this.drain());
    try {
      await this.polls.run();
      await this.letEnd();
    } finally {
      for (const { run } of this.runs) run?.stop("drain", "The worker has ended.");
      await keeper.close();
      stopListening();
    }
  }

  private async giveBack({ lease_id }: Offer): Promise<void> {
    await this.client.call("release_task", { lease_id }).catch((error: unknown) => this.options.onError?.(error));
  }

  private begin(offer: Offer, leftMs: number): void {
    const { client, keeper, workerId } = this;
    if (keeper === null) throw new TypeError("a worker polls once it has a keeper");
    const { handler, maxRunMs = null, onEnd, onError } = this.options;
    const { receipts, watch } = this;
    const accept = this.options.accept === undefined ? null : (): Promise<boolean> => this.accepts(offer);
    const entry: TaskEntry = { run: null, ended: Promise.resolve(), isWorked: false };
    const onWorked = (): void => this.free(entry);
    const started = async (): Promise<void> => {
      // What was held for long says little of how much is left; the server is asked first.
      const fresh = leftMs > offer.expires_in_ms * 0.75 ? { leftMs, offer } : await this.extended(offer);
      if (this.isDraining) return this.giveBack(offer);
      const shared = { client, keeper, receipts, watch, workerId, handler, accept, maxRunMs, onWorked };
      const run = new TaskRun({ ...shared, ...fresh });
      entry.run = run;
      const end = await run.run();
      if (end === "declined") this.polls.declined();
      onEnd?.(run.taskId, end);
    };
    entry.ended = started()
      .catch((error: unknown) => onError?.(error))
      .finally(() => {
        this.runs.delete(entry);
        this.free(entry);
        // There may have been too many unacknowledged receipts until now.
        this.polls.freed();
      });
    this.runs.add(entry);
    this.working++;
  }

  private free(entry: TaskEntry): void {
    if (entry.isWorked) return;
    entry.isWorked = true;
    this.working--;
    this.polls.freed();
  }

  /** One that cannot say has not accepted. */
  private async accepts(offer: Offer): Promise<boolean> {
    const { accept, onError } = this.options;
    try {
      return accept === undefined || (await accept(offer));
    } catch (error) {
      onError?.(error);
      return false;
    }
  }

  private async extended(offer: Offer): Promise<{ readonly leftMs: number; readonly offer: Offer }> {
    const { answer, sentAt } = await this.client.ask("heartbeat_task", { lease_id: offer.lease_id });
    const { leases = offer.leases } = answer;
    const leftMs = answer.expires_in_ms - this.client.time.elapsedMs(sentAt);
    return { leftMs, offer: leases === undefined ? offer : { ...offer, leases } };
  }

  private async letEnd(): Promise<void> {
    const { drainMs = drainMsDefault } = this.options;
    const all = async (): Promise<void> => {
      await Promise.all([...this.runs].map(({ ended }) => ended));
    };
    const patience = new AbortController();
    await Promise.race([all(), sleep(drainMs, patience.signal).catch(() => undefined)]);
    patience.abort();
    for (const { run } of this.runs) run?.stop("drain", "The worker is going down.");
    await all();
  }

  private get isDraining(): boolean {
    return this.draining.signal.aborted;
  }
}

interface ProcessLike {
  readonly pid: number;
  on(signal: string, listener: () => void): void;
  off(signal: string, listener: () => void): void;
  listenerCount(signal: string): number;
  kill(pid: number, signal: string): void;
}

/** Drains on the signal; then the signal does what it would have done without us. */
function onSignals(signals: readonly string[], drain: () => Promise<void>): () => void {
  const { process } = globalThis as { process?: Partial<ProcessLike> };
  if (typeof process?.on !== "function" || typeof process.kill !== "function") return () => undefined;
  const { on, off, kill, pid = 0, listenerCount } = process as ProcessLike;
  const listeners = signals.map((signal) => {
    const listener = (): void => {
      const after = (): void => {
        off.call(process, signal, listener);
        if (listenerCount.call(process, signal) === 0) kill.call(process, pid, signal);
      };
      drain().then(after, after);
    };
    on.call(process, signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) off.call(process, signal, listener);
  };
}
