/**
 * A worker: polls for tasks, works on several at once, and keeps each one's lease from outside the handler's event loop.
 * When it drains, it takes nothing new, lets running tasks end for a while, and releases the rest, which burns
 * no attempt (T13).
 */

import { backOffMs } from "../keeper/lease-keeper.ts";
import type { Client } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import { drawKey } from "./idempotency.ts";
import type { TaskKeeper } from "./task-keeper.ts";
import { type TaskEnd, type TaskHandler, TaskRun } from "./task-run.ts";
import { sleep } from "./timing.ts";
import type { Offer, OperationAnswers, OperationInputs } from "./wire.ts";

export interface WorkerOptions {
  readonly handler: TaskHandler;
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
  /** Called for each task that has ended here. */
  readonly onEnd?: ((taskId: string, end: TaskEnd) => void) | undefined;
  /** Called for errors after which the worker goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

type OpenKeeper = (maxBusyMs: number) => Promise<TaskKeeper>;
type PollInput = OperationInputs["poll_tasks"];

const holdMs = 10_000;
const maxBusyMsDefault = 60_000;
const drainMsDefault = 10_000;
/** T6: the pauses between polls, after nothing and after an error. */
const noWorkMs = 250;
const foreignMs = 5_000;
const errorMsBase = 500;
const errorMsCap = 60_000;

/** A task that was taken; it runs once its lease is certain. */
interface TaskEntry {
  run: TaskRun | null;
  ended: Promise<void>;
}

export class Worker {
  readonly workerId: string;
  /** Settles when it has drained; rejects where it cannot go on. */
  readonly done: Promise<void>;
  private readonly client: Client;
  private readonly options: WorkerOptions;
  private readonly openKeeper: OpenKeeper;
  private readonly runs = new Set<TaskEntry>();
  private readonly draining = new AbortController();
  private wakeUp: () => void = () => undefined;

  constructor(client: Client, options: WorkerOptions, openKeeper: OpenKeeper) {
    this.client = client;
    this.options = options;
    this.openKeeper = openKeeper;
    this.workerId = options.workerId ?? `worker.${drawKey("sdk")}`;
    this.done = this.run();
    this.done.catch(() => undefined); // The caller awaits it, or does not.
  }

  /** How many tasks it works on. */
  get busy(): number {
    return this.runs.size;
  }

  /** Takes nothing new, and ends once all that runs has ended or was given back. */
  drain(): Promise<void> {
    this.draining.abort();
    this.wakeUp();
    return this.done;
  }

  private async run(): Promise<void> {
    const keeper = await this.openKeeper(this.options.maxBusyMs ?? maxBusyMsDefault);
    const stopListening = onSignals(this.options.drainOn ?? ["SIGTERM"], () => this.drain());
    try {
      await this.poll(keeper);
      await this.letEnd();
    } finally {
      for (const { run } of this.runs) run?.stop("drain", "The worker has ended.");
      await keeper.close();
      stopListening();
    }
  }

  private async poll(keeper: TaskKeeper): Promise<void> {
    const { concurrency = 1, workerId } = this.options;
    let isFirst = workerId !== undefined;
    let failures = 0;
    while (!this.isDraining) {
      const free = concurrency - this.runs.size;
      if (free <= 0) {
        await this.untilFree();
        continue;
      }
      try {
        const taken = await this.take(keeper, free, isFirst);
        isFirst = false;
        failures = 0;
        if (taken.offers === 0) await this.rest(noWorkMs);
        else if (taken.foreign === taken.offers) await this.rest(foreignMs);
      } catch (error) {
        if (this.isDraining) return;
        if (!mayGoOn(error)) throw error;
        this.options.onError?.(error);
        await this.rest(backOffMs(failures++, errorMsBase, errorMsCap));
      }
    }
  }

  /** Polls once, and begins what is offered. */
  private async take(
    keeper: TaskKeeper,
    free: number,
    reclaim: boolean,
  ): Promise<{ readonly offers: number; readonly foreign: number }> {
    const { types, capabilities } = this.options;
    const input: PollInput = {
      worker_id: this.workerId,
      max_tasks: free,
      request_id: drawKey(),
      ...(capabilities !== undefined && { capabilities }),
      ...(types !== undefined && { accept_types: types }),
      ...(reclaim && { reclaim: true }),
    };
    const { signal } = this.draining;
    const polled = this.client.ask("poll_tasks", { ...input, hold_ms: holdMs }, { signal });
    const { answer, sentAt } = await polled.catch(async (error: unknown) => {
      if (this.isDraining) await this.refuseLate(input);
      throw error;
    });
    let foreign = 0;
    const offers = offersOf(answer);
    for (const offer of offers) {
      if (this.isDraining || (types !== undefined && !types.includes(offer.task.task_type))) {
        foreign++;
        await this.giveBack(offer);
      } else this.begin(keeper, offer, offer.expires_in_ms - this.client.time.elapsedMs(sentAt));
    }
    return { offers: offers.length, foreign };
  }

  /** A poll that was given up may have been answered all the same: asked again by its key, it says so. */
  private async refuseLate(input: PollInput): Promise<void> {
    const late = await this.client.call("poll_tasks", input).catch(() => null);
    for (const offer of offersOf(late)) await this.giveBack(offer);
  }

  private async giveBack({ lease_id }: Offer): Promise<void> {
    await this.client.call("release_task", { lease_id }).catch((error: unknown) => this.options.onError?.(error));
  }

  private begin(keeper: TaskKeeper, offer: Offer, leftMs: number): void {
    const { client, workerId } = this;
    const { handler, maxRunMs = null, onEnd, onError } = this.options;
    const entry: TaskEntry = { run: null, ended: Promise.resolve() };
    const started = async (): Promise<void> => {
      // What was held for long says little of how much is left; the server is asked first.
      const left = leftMs > offer.expires_in_ms * 0.75 ? leftMs : await this.leftOf(offer);
      if (this.isDraining) return this.giveBack(offer);
      const run = new TaskRun({ client, keeper, workerId, handler, maxRunMs, leftMs: left, offer });
      entry.run = run;
      const end = await run.run();
      onEnd?.(run.taskId, end);
    };
    entry.ended = started()
      .catch((error: unknown) => onError?.(error))
      .finally(() => {
        this.runs.delete(entry);
        this.wakeUp();
      });
    this.runs.add(entry);
  }

  private async leftOf({ lease_id }: Offer): Promise<number> {
    const { answer, sentAt } = await this.client.ask("heartbeat_task", { lease_id });
    return answer.expires_in_ms - this.client.time.elapsedMs(sentAt);
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

  private untilFree(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeUp = resolve;
    });
  }

  private async rest(ms: number): Promise<void> {
    await sleep(ms, this.draining.signal).catch(() => undefined);
  }
}

function offersOf(answer: OperationAnswers["poll_tasks"]): readonly Offer[] {
  if (answer === null || Object.keys(answer).length === 0) return [];
  return "offers" in answer ? answer.offers : [answer];
}

/** A refused key or a wrong id does not get better by retrying. */
function mayGoOn(error: unknown): boolean {
  if (!(error instanceof LeaseholdError)) return false;
  if (error.retryable || error.code === "tenant_suspended" || error.code === "bad_answer") return true;
  return error.status !== null && error.status >= 500;
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
