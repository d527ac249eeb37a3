/**
 * The polls of a worker. A loop polls while places are free, and its polls are held while there is no work. While work flows a
 * second poll, which is not held, asks for the places that become free meanwhile, and offers of one answer begin in two
 * turns: so the server decides about one half of the tasks while the other half is worked on.
 *
 *   worker   │ half A │ half B │        │ half A │ half B │
 *            └────────┴───┐    └───┐    ▲        ▲
 *   server                └─ A ────┴─ B ┴────────┘            each: receipts and poll in one frame, one commit, offers
 */
import type { Mark } from "../keeper/clock.ts";
import type { Client, Timed } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import { drawKey } from "./idempotency.ts";
import { afterTurn, atEndOfTurn } from "./platform.ts";
import { sleep } from "./timing.ts";
import type { Offer, OperationAnswers, OperationInputs } from "./wire.ts";
import type { WorkerOptions } from "./worker.ts";

type PollInput = OperationInputs["poll_tasks"];
type PollAnswer = OperationAnswers["poll_tasks"];

const holdMs = 10_000;
const noWorkMsDefault = 5_000;
const errorMsDefault = 5_000;
const errorMsMaxDefault = 60_000;
/** The part of the pause after an error that is left to chance, so that a crowd spreads out. */
const errorJitter = 0.2;
/** A poll whose connection was stale is sent again at once; all else waits for the back-off. */
const pollRetries = 1;
/** An answer with fewer offers begins in one turn, and fewer places get no second poll: each call has a cost of its own. */
const halfMin = 8;

/** T6: doubles from the first to the longest, which chance does not pass. */
export function errorPauseMs(failures: number, firstMs: number, longestMs: number, chance = Math.random()): number {
  return Math.min(firstMs * 2 ** failures, longestMs / (1 + errorJitter)) * (1 + chance * errorJitter);
}

export interface TaskPollsOptions {
  readonly client: Client;
  readonly workerId: string;
  readonly options: WorkerOptions;
  readonly draining: AbortSignal;
  /** Places for which nothing is done now. */
  readonly places: () => number;
  /** Works on it; its place is taken from now on. */
  readonly begin: (offer: Offer, leftMs: number) => void;
  readonly giveBack: (offer: Offer) => Promise<void>;
  /** Sends the receipts of this turn, so that the poll for their places follows them in the same frame. */
  readonly flush: () => void;
}

export class TaskPolls {
  private readonly worker: TaskPollsOptions;
  /** Places that are asked for, or whose offers have not begun yet. */
  private asked = 0;
  /** When an offer was last declined: it would be offered again at once. */
  private declinedAt = Number.NEGATIVE_INFINITY;
  /** Polls whose answers may be lost: sent again by its key, each brings what was offered then (T1). Their places stay asked for. */
  private readonly lost: PollInput[] = [];
  /** Goes on with the loop, where it waits for a free place. */
  private goOn: (() => void) | null = null;
  private isTurnSet = false;
  /** The last poll brought as many tasks as it asked for, so there are probably more. */
  private isFlowing = false;
  private second: Promise<void> | null = null;

  constructor(worker: TaskPollsOptions) {
    this.worker = worker;
  }

  /** Until the worker drains; rejects where it cannot go on. */
  async run(): Promise<void> {
    await this.loop();
    await this.second;
  }

  declined(): void {
    this.declinedAt = performance.now();
  }

  /** A place became free: at the end of the turn more are, and their receipts can be sent. */
  freed(): void {
    if (this.isTurnSet) return;
    this.isTurnSet = true;
    atEndOfTurn(() => {
      this.isTurnSet = false;
      this.worker.flush();
      const { goOn } = this;
      this.goOn = null;
      if (goOn !== null) goOn();
      else this.pollSecond();
    });
  }

  private get free(): number {
    return this.worker.places() - this.asked;
  }

  private async loop(): Promise<void> {
    const { options, draining } = this.worker;
    const {
      noWorkMs = noWorkMsDefault,
      errorMs = errorMsDefault,
      errorMsMax = errorMsMaxDefault,
    } = options.backOff ?? {};
    let reclaim = options.workerId !== undefined;
    let failures = 0;
    while (!draining.aborted) {
      if (this.free <= 0 && this.lost.length === 0) {
        await new Promise<void>((resolve) => {
          this.goOn = resolve;
        });
        continue;
      }
      const pauseMs = this.declinedAt + noWorkMs - performance.now();
      if (pauseMs > 0) {
        await this.rest(pauseMs);
        continue;
      }
      const since = performance.now();
      try {
        const taken = await this.take(this.lost.shift() ?? this.inputFor(this.free, reclaim), holdMs);
        reclaim = false;
        failures = 0;
        if (taken === 0) await this.rest(since + noWorkMs - performance.now());
        // What ends at once ends in this turn, and its place is asked for with its receipt.
        await new Promise<void>(atEndOfTurn);
        this.worker.flush();
      } catch (error) {
        if (draining.aborted) return;
        if (!mayGoOn(error)) throw error;
        options.onError?.(error);
        const pauseMs = errorPauseMs(failures++, errorMs, errorMsMax);
        const askedMs = error instanceof LeaseholdError ? (error.retryAfterMs ?? 0) : 0;
        await this.rest(Math.max(pauseMs, askedMs));
      }
    }
  }

  private pollSecond(): void {
    const { draining, options } = this.worker;
    const { free } = this;
    if (!this.isFlowing || this.second !== null || free < halfMin || draining.aborted) return;
    if (performance.now() - this.declinedAt < (options.backOff?.noWorkMs ?? noWorkMsDefault)) return;
    this.second = this.take(this.inputFor(free, false), 0)
      .then(
        () => undefined,
        // The loop's next poll meets the same error if it lasts, and pauses.
        (error: unknown) => draining.aborted || options.onError?.(error),
      )
      .then(() => {
        this.second = null;
        this.freed();
      });
  }

  private inputFor(free: number, reclaim: boolean): PollInput {
    const { workerId, options } = this.worker;
    const { types, capabilities, accept } = options;
    this.asked += free;
    return {
      worker_id: workerId,
      max_tasks: free,
      request_id: drawKey(),
      ...(capabilities !== undefined && { capabilities }),
      ...(types !== undefined && { accept_types: types }),
      ...(reclaim && { reclaim: true }),
      // Without a look at each, all are accepted: then that, too, is one commit for all.
      ...(accept === undefined && { accept: true }),
    };
  }

  /** Polls once, and begins what is offered; how many that were. */
  private async take(input: PollInput, holdMs: number): Promise<number> {
    const { client, draining } = this.worker;
    const asked = input.max_tasks ?? 1;
    let polled: Timed<PollAnswer>;
    try {
      const hold = holdMs > 0 ? { ...input, hold_ms: holdMs } : input;
      polled = await client.ask("poll_tasks", hold, { signal: draining, retries: pollRetries });
    } catch (error) {
      this.isFlowing = false;
      const isLost = error instanceof LeaseholdError && error.outcomeUnknown;
      if (isLost && !draining.aborted) this.lost.push(input);
      else this.asked -= asked;
      if (draining.aborted) await this.refuseLate(input);
      throw error;
    }
    const offers = offersOf(polled.answer);
    this.isFlowing = offers.length >= asked;
    this.asked -= asked - offers.length;
    const half = Math.ceil((this.worker.options.concurrency ?? 1) / 2);
    if (offers.length <= half || half < halfMin) return this.begin(offers, polled.sentAt);
    const first = await this.begin(offers.slice(0, half), polled.sentAt);
    await afterTurn();
    return first + (await this.begin(offers.slice(half), polled.sentAt));
  }

  private async begin(offers: readonly Offer[], sentAt: Mark): Promise<number> {
    const { client, options, draining } = this.worker;
    const { types } = options;
    const unwanted: Offer[] = [];
    for (const offer of offers) {
      this.asked--;
      if (draining.aborted || (types !== undefined && !types.includes(offer.task.task_type))) unwanted.push(offer);
      else this.worker.begin(offer, offer.expires_in_ms - client.time.elapsedMs(sentAt));
    }
    if (unwanted.length > 0) await Promise.all(unwanted.map((offer) => this.worker.giveBack(offer)));
    return offers.length - unwanted.length;
  }

  /** A poll that was given up may have been answered all the same: asked again by its key, it says so. */
  private async refuseLate(input: PollInput): Promise<void> {
    const late = await this.worker.client.call("poll_tasks", input).catch(() => null);
    for (const offer of offersOf(late)) await this.worker.giveBack(offer);
  }

  private async rest(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, this.worker.draining).catch(() => undefined);
  }
}

function offersOf(answer: PollAnswer): readonly Offer[] {
  if (answer === null || Object.keys(answer).length === 0) return [];
  return "offers" in answer ? answer.offers : [answer];
}

/** A refused key or a wrong id does not get better by retrying. */
function mayGoOn(error: unknown): boolean {
  if (!(error instanceof LeaseholdError)) return false;
  if (error.retryable || error.code === "tenant_suspended" || error.code === "bad_answer") return true;
  return error.status !== null && error.status >= 500;
}
