/**
 * Who leads data that several servers share, as one server sees it. A term is one time of leading: it begins with an
 * election, loads what is stored, serves, and ends for good; the next one starts from nothing.
 *
 *                   campaign              won                loaded
 *      standby ───────────────► campaigning ───────► loading ───────► leading
 *         ▲                        │ lost               │ failed         │ failed, deposed, expired, resign
 *         ├────────────────────────┘                    ▼                ▼
 *         └─────────────── stepped_down ──────────── stepping_down ◄─────┘          close, from everywhere ──► closed
 *
 * An outcome that is not known counts as lost. A deposed leader is a standby, and campaigns only past its successor's
 * lease. The lease is counted by the monotonic clock, from before the request for it was sent, minus a margin.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreFault } from "../store/faults.ts";
import type { Leader, LeaderLease, Millis, Opened, Store } from "../store/store.ts";
import type { EngineLog } from "./engine-types.ts";

export type LeadershipState = "standby" | "campaigning" | "loading" | "leading" | "stepping_down" | "closed";
export type LeadershipEvent =
  | ("campaign" | "won" | "lost" | "loaded")
  /** Loading failed; the engine dropped its memory; another server leads; the lease has run out; asked to. */
  | ("failed" | "deposed" | "expired" | "resign")
  | ("stepped_down" | "close");

/** null: cannot happen, and is a bug. */
type Row = Readonly<Record<LeadershipEvent, LeadershipState | null>>;

const ending = { failed: "stepping_down", deposed: "stepping_down", expired: "stepping_down" } as const;
const noElection = { campaign: null, won: null, lost: null, loaded: null } as const;

/** Every state with every event. Events of a term that is ending or over change nothing any more. */
export const leadershipTable: Readonly<Record<LeadershipState, Row>> = {
  standby: {
    ...{ ...noElection, campaign: "campaigning" },
    ...{
      failed: "standby",
      deposed: "standby",
      expired: "standby",
      resign: "standby",
      stepped_down: null,
      close: "closed",
    },
  },
  campaigning: {
    ...{ ...noElection, won: "loading", lost: "standby" },
    ...{ failed: null, deposed: null, expired: null, resign: "campaigning", stepped_down: null, close: "closed" },
  },
  loading: {
    ...{ ...noElection, loaded: "leading" },
    ...{ ...ending, resign: "stepping_down", stepped_down: null, close: "closed" },
  },
  leading: { ...noElection, ...ending, resign: "stepping_down", stepped_down: null, close: "closed" },
  stepping_down: {
    ...noElection,
    ...{ ...ending, resign: "stepping_down", stepped_down: "standby", close: "closed" },
  },
  closed: {
    // An election or a load that was under way may still report.
    ...{ campaign: null, won: "closed", lost: "closed", loaded: "closed" },
    ...{
      failed: "closed",
      deposed: "closed",
      expired: "closed",
      resign: "closed",
      stepped_down: "closed",
      close: "closed",
    },
  },
};

/** What serves during a term. */
export interface Term {
  /** Settles when it cannot go on, with the reason: the engine has dropped its memory. */
  readonly over: Promise<unknown>;
  readonly now: () => Millis;
  /** In order: what is under way is committed and answered, and the store is closed, which resigns. */
  close(): Promise<void>;
  /** At once: nothing more is answered. */
  abort(): Promise<void>;
}

export interface LeadershipOptions {
  /** A handle for one term. */
  readonly createStore: () => Store;
  readonly begin: (store: Store, opened: Opened, lease: CountedLease) => Promise<Term>;
  readonly log: EngineLog;
  /** False: it passes requests on, and never campaigns. */
  readonly mayLead: boolean;
  /** Who leads, where one question asks for several; absent: the store is asked. */
  readonly watch?: () => Promise<Leader | null>;
  /** Whether this server is to take what nobody leads, at this moment; absent: always. */
  readonly mayCampaign?: () => boolean;
  readonly pollMs?: number;
}

/** How often a standby asks who leads, at least. */
const pollMsDefault = 200;
/** After an election or a load that failed, doubled up to the second. */
const pauseMs = [100, 3_000] as const;

export class Leadership {
  readonly #options: LeadershipOptions;
  /** Null: it is asked elsewhere. */
  readonly #watcher: Store | null;
  #state: LeadershipState = "standby";
  #leader: Leader | null = null;
  #term: Term | null = null;
  #resigning = Promise.withResolvers<void>();
  readonly #stop = new AbortController();
  #failures = 0;
  /** Whether the last question who leads failed; only the first of them is logged. */
  #isBlind = false;
  #running: Promise<void> | null = null;
  /** Until then this server leaves the lead to others. */
  #standsBackUntil = 0;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#watcher = options.watch === undefined ? options.createStore() : null;
  }

  get #isClosing(): boolean {
    return this.#stop.signal.aborted;
  }

  get state(): LeadershipState {
    return this.#state;
  }

  /** Who leads, as far as this server knows: it asks often. */
  get leader(): Leader | null {
    return this.#leader;
  }

  /** Whether it goes on by itself: a first try may have failed, and is repeated. */
  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Makes or checks the schema. */
  async prepare(): Promise<void> {
    await this.#watch();
  }

  async #watch(): Promise<Leader | null> {
    return (await (this.#watcher?.watch() ?? this.#options.watch?.())) ?? null;
  }

  /** The first question, whose failure is the operator's to know; then it goes on by itself. Resolves when somebody leads, or nobody may. */
  async start(): Promise<void> {
    this.#leader = await this.#watch();
    if (this.#leader !== null || !this.#options.mayLead) {
      this.#running = this.#run();
      return;
    }
    const first = Promise.withResolvers<void>();
    this.#running = this.#run(first);
    await first.promise;
  }

  /** Stops leading, in order, and lets another server go first. */
  resign(): void {
    this.#standsBackUntil = performance.now() + standBackMs;
    this.#resigning.resolve();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#resigning.resolve();
    await this.#running;
    this.#move("close");
    await this.#watcher?.close();
  }

  /** `first` learns how the first try went. */
  async #run(first: PromiseWithResolvers<void> | null = null): Promise<void> {
    while (!this.#isClosing) {
      try {
        this.#leader = await this.#watch();
        this.#isBlind = false;
        if (this.#leader === null && this.#mayCampaign) {
          await this.#tryToLead(first);
          continue;
        }
        first?.resolve();
      } catch (fault) {
        if (first !== null && this.#failures === 0) first.reject(fault);
        this.#leader = null;
        if (!this.#isBlind) this.#options.log.warn({ err: fault }, "the database does not say who leads");
        this.#isBlind = true;
      }
      const { pollMs = pollMsDefault } = this.#options;
      await this.#wait(Math.min(this.#leader?.leftMs ?? pollMs, pollMs));
    }
    first?.resolve();
  }

  get #mayCampaign(): boolean {
    const { mayLead, mayCampaign } = this.#options;
    return mayLead && performance.now() >= this.#standsBackUntil && (mayCampaign === undefined || mayCampaign());
  }

  async #tryToLead(first: PromiseWithResolvers<void> | null): Promise<void> {
    const { createStore, begin, log } = this.#options;
    this.#resigning = Promise.withResolvers();
    if (this.#isClosing) return;
    const store = createStore();
    this.#move("campaign");
    let opened: Opened;
    try {
      opened = await store.open();
    } catch (fault) {
      this.#move("lost");
      await store.close().catch(() => undefined);
      if (!(fault instanceof StoreFault && fault.code === "store_locked")) {
        log.warn({ err: fault }, "a campaign failed");
        first?.reject(fault);
      }
      return await this.#pause();
    }
    this.#move("won");
    const lease = new CountedLease(opened.lease, store);
    try {
      const term = await begin(store, opened, lease);
      this.#term = term;
      lease.now = term.now;
    } catch (fault) {
      lease.stop();
      this.#move("failed");
      await store.close().catch(() => undefined);
      this.#move("stepped_down");
      log.error({ err: fault }, "what is stored could not be loaded; another server may lead");
      first?.reject(fault);
      return await this.#pause();
    }
    this.#move("loaded");
    this.#failures = 0;
    this.#leader = await this.#watch().catch(() => null);
    log.info({ epoch: opened.epoch }, "this server leads");
    first?.resolve();
    await this.#lead(this.#term, lease);
  }

  async #lead(term: Term, lease: CountedLease): Promise<void> {
    const { log } = this.#options;
    const failed = term.over.then((cause) => ({ event: "failed" as const, cause }));
    const ended = lease.over.then((event) => ({ event, cause: null }));
    const asked = this.#resigning.promise.then(() => ({ event: "resign" as const, cause: null }));
    const { event, cause } = await Promise.race([failed, ended, asked]);
    this.#move(event);
    try {
      // The lease goes on while what is under way is answered, unless it is what has ended.
      if (event === "resign") await Promise.race([term.close(), lease.over.then(() => term.abort())]);
      else await term.abort();
    } catch (fault) {
      log.error({ err: fault }, "the end of a term was not in order");
    }
    lease.stop();
    this.#term = null;
    this.#leader = null;
    this.#move("stepped_down");
    if (event === "resign") log.info({}, "this server has resigned");
    else log.error({ err: cause }, `this server does not lead any more: ${event}`);
    if (event === "failed") await this.#pause();
  }

  async #pause(): Promise<void> {
    const [first, last] = pauseMs;
    const ms = Math.min(first * 2 ** Math.min(this.#failures++, 10), last);
    await this.#wait(ms);
  }

  /** Or until it closes. */
  async #wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  #move(event: LeadershipEvent): void {
    const next = leadershipTable[this.#state][event];
    if (next === null) assert.fail(`${event} cannot happen to a server that is ${this.#state}`);
    this.#state = next;
  }
}

/** After a resignation, how long others have to be elected. */
const standBackMs = 5_000;
/** So that one which hangs and is given up leaves time for another. */
const renewalsPerLease = 4;
/** What is taken off the lease when it is counted here: for clocks that drift, and for answers on their way out. */
const marginShare = 1 / 6;
const retryMs = 100;

/** A leader's own count of its lease, and what renews it. A lease of null lasts. */
export class CountedLease {
  readonly #store: Store;
  readonly #over = Promise.withResolvers<"deposed" | "expired">();
  #goodUntil = Number.POSITIVE_INFINITY;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;
  /** The engine's time, once there is one. */
  now: (() => Millis) | null = null;

  constructor(lease: LeaderLease | null, store: Store) {
    this.#store = store;
    if (lease === null) return;
    this.#count(lease);
    this.#renewIn(lease.lastsMs / renewalsPerLease);
  }

  readonly over = this.#over.promise;

  /** Asked at the moment when an answer leaves. */
  readonly isGood = (): boolean => !this.#isOver && performance.now() < this.#goodUntil;

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #count({ askedAt, lastsMs }: LeaderLease): void {
    this.#goodUntil = askedAt + lastsMs * (1 - marginShare);
  }

  #renewIn(ms: number): void {
    if (this.#isOver) return;
    const left = this.#goodUntil - performance.now();
    if (left <= 0) return this.#end("expired");
    this.#timer = setTimeout(() => void this.#renew(), Math.min(ms, left));
  }

  async #renew(): Promise<void> {
    const left = this.#goodUntil - performance.now();
    if (left <= 0) return this.#end("expired");
    // A request that hangs must not hide that the lease has run out.
    const alarm = setTimeout(() => this.#end("expired"), left);
    try {
      const lease = await this.#store.renew(this.now?.() ?? null);
      if (lease !== null && !this.#isOver) this.#count(lease);
      this.#renewIn((lease?.lastsMs ?? 0) / renewalsPerLease);
    } catch (fault) {
      if (fault instanceof StoreFault && fault.code === "stale_epoch") this.#end("deposed");
      else this.#renewIn(retryMs);
    } finally {
      clearTimeout(alarm);
    }
  }

  #end(event: "deposed" | "expired"): void {
    if (this.#isOver) return;
    this.stop();
    this.#over.resolve(event);
  }
}
