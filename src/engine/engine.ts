/**
 * The one loop between edges, kernel and store. A command is applied at once in memory, and answered when the batch
 * that holds its changes is durable (S1); questions wait for it too, so that nobody sees what could still be lost.
 * One batch is under way while the next one fills. After a failed commit memory is ahead of the disk, and only the
 * disk counts: memory is dropped, everybody is told, and the store is opened again (S2).
 *
 *   opening ──► serving ──► (commit fails) ──► opening …       close() from any of them ──► closed
 */
import type { Command } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";
import { apply, createState, hasDue, nextDeadline, type State, type Step, settle } from "../kernel/kernel.ts";
import { createLedgerKey, type LedgerKey, type PublicLedgerKey } from "../ledger/keys.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { SignedHead, Store } from "../store/store.ts";
import { Alarm } from "./alarm.ts";
import {
  addStep,
  createBatch,
  hasChanges,
  isFull,
  type NumberedEvent,
  type OpenBatch,
  toStoreBatch,
  type Waiting,
} from "./batch.ts";
import { type Clock, describeWallOffset, startClock, systemTime, type TimeSources } from "./clock.ts";
import { DatabaseUnavailable, ShuttingDown } from "./faults.ts";
import { LedgerChain, noLedger } from "./ledger-chain.ts";
import { Listeners } from "./listeners.ts";
import { NextTurn } from "./next-turn.ts";
import { type ReadyListener, ReadyTasks } from "./ready-tasks.ts";
import { recover } from "./recovery.ts";
import { reopen } from "./reopening.ts";
import type { Decided, EngineOptions, EventListener } from "./terms.ts";
import { createVitals, rowsIn, type Vitals } from "./vitals.ts";

/** How many due items are settled before others get their turn, and how full a batch may get meanwhile. */
const settleSlice = 125;
const settleBatchMax = 500;
const noReceipts: readonly SealedReceipt[] = [];

export class Engine {
  readonly vitals: Vitals = createVitals();
  readonly store: Store;
  private readonly options: EngineOptions;
  private readonly time: TimeSources;
  private readonly eventListeners = new Listeners<Parameters<EventListener>>();
  private readonly recoveryListeners = new Listeners();
  private readonly roomListeners = new Listeners();
  private readonly ready = new ReadyTasks();
  private key: LedgerKey | null = null;
  private ledger = noLedger;
  /** Every key that has signed heads of this ledger, the present one among them. */
  ledgerKeys: readonly PublicLedgerKey[] = [];
  private phase: "opening" | "serving" | "closed" = "opening";
  private state: State = createState();
  private clock: Clock;
  private batch: OpenBatch = createBatch();
  private committing: Promise<void> | null = null;
  private readonly nextFlush = new NextTurn(() => this.flush());
  /** Commands that came while something was due: they are decided after it (L3). */
  private queue: ((now: Millis) => void)[] = [];
  private readonly nextQueue = new NextTurn(() => this.runQueue());
  /** For the kernel's next deadline. */
  private readonly deadline = new Alarm(() => {
    if (this.phase === "serving") this.runQueue();
  });
  /** So that a ledger that has gone quiet is signed too. */
  private readonly headsDue = new Alarm(() => {
    if (this.phase === "serving") this.setFlush();
  });
  private nextSeq = 1;
  private durableSeq = 0;
  private nextRow = 1;
  /** Raised with each recovery, so that whatever was under way before it is not mistaken for the present. */
  private incarnation = 0;
  /** Made at first start, and again at every restore: what agent tokens are derived from (S6). */
  secret = "";

  constructor(options: EngineOptions) {
    this.options = options;
    this.store = options.store;
    this.time = options.time ?? systemTime;
    this.clock = startClock(0, this.time);
  }

  /** Opens the store and serves what is in it. Throws if that is not possible; later faults are recovered from. */
  async start(): Promise<void> {
    await this.recoverOnce();
  }

  get isServing(): boolean {
    return this.phase === "serving";
  }

  readonly now = (): Millis => this.clock.now();

  /** The last event that is durable. */
  get lastSeq(): number {
    return this.durableSeq;
  }

  /** How many answers wait in the batch that fills, behind the commit that is under way. */
  get waitingCount(): number {
    return this.batch.waiting.length;
  }

  /** Decides a command. The callbacks come when it is durable, or when that is not known (S2). */
  submit(command: Command, done: (decided: Decided) => void, failed: (fault: Error) => void): void {
    this.prepare(command, (decided) => () => done(decided), failed);
  }

  /**
   * The same for whoever puts the answer into words at once: what `word` returns says it, and is called when that may
   * be said. Until then only the words are kept in memory, and not all that they were made of.
   */
  prepare(command: Command, word: (decided: Decided) => () => void, failed: (fault: Error) => void): void {
    const now = this.clock.now();
    if (this.isClear(now)) this.decide(command, now, word, failed);
    else this.postpone((later) => this.decide(command, later, word, failed), failed);
  }

  private decide(
    command: Command,
    now: Millis,
    word: (decided: Decided) => () => void,
    failed: (fault: Error) => void,
  ): void {
    const outcome = apply(this.state, command, now);
    const receipts = this.collect(outcome, now);
    this.batch.waiting.push({ settled: word({ reply: outcome.reply, now, receipts }), failed });
  }

  command(command: Command): Promise<Decided> {
    return new Promise((resolve, reject) => this.submit(command, resolve, reject));
  }

  /** Looks at the state, and is answered when all that it saw is durable (S1). */
  ask<T>(look: (state: State, now: Millis) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const see = (now: Millis): void => {
        const seen = look(this.state, now);
        this.batch.waiting.push({ settled: () => resolve(seen), failed: reject });
        this.setFlush();
      };
      const now = this.clock.now();
      if (this.isClear(now)) see(now);
      else this.postpone(see, reject);
    });
  }

  /** Looks at what the server needs to know at once, such as which keys there are; not for what a caller is told. */
  peek<T>(look: (state: State) => T): T {
    return look(this.state);
  }

  /** Called with the events of each batch, in order, once they are durable and after its replies have left. */
  subscribe(listener: EventListener): () => void {
    return this.eventListeners.add(listener);
  }

  /**
   * Called with the tasks that can be offered since the last time, right before a batch is sent off: polls that a
   * listener submits are decided in that batch. Never called from within itself.
   */
  onReady(listener: ReadyListener): () => void {
    return this.ready.listen(listener);
  }

  /** Whoever can wait for `onRoom` should. */
  get isFull(): boolean {
    return isFull(this.batch);
  }

  /** Called whenever the batch that fills is an empty one again. */
  onRoom(listener: () => void): void {
    this.roomListeners.add(listener);
  }

  /** The key that signs at present. */
  get ledgerKey(): PublicLedgerKey {
    return this.ledger.key;
  }

  /** How far the tenant's ledger has come, as far as that is durable; 0 and zeros where it has no receipt (R6). */
  signHead(tenant: string): SignedHead {
    if (this.phase === "opening") throw new DatabaseUnavailable();
    return this.ledger.signDurable(tenant, this.clock.now());
  }

  /** Called when the service goes on after a failed commit: what that commit held was announced to nobody (S2). */
  onRecovery(listener: () => void): void {
    this.recoveryListeners.add(listener);
  }

  /** No new work; what is under way is committed and answered. */
  async close(): Promise<void> {
    if (this.phase === "closed") return;
    const wasServing = this.phase === "serving";
    this.phase = "closed";
    this.disarm();
    this.runQueue();
    if (wasServing) {
      this.flush();
      while (this.committing !== null || this.batch.waiting.length > 0) {
        await this.committing;
        this.flush();
      }
      await this.commitLastHeads();
    }
    await this.store.close();
  }

  /** Nothing is left unsigned by a service that ends in order. */
  private async commitLastHeads(): Promise<void> {
    const now = this.clock.now();
    const heads = this.ledger.lastHeads(now);
    if (heads.length === 0) return;
    try {
      await this.store.commit(toStoreBatch({ ...createBatch(), now }, heads, () => this.nextRow++));
    } catch (fault) {
      this.options.log.warn(
        { err: fault },
        "the last heads of the ledger could not be stored; the next start signs them",
      );
    }
  }

  /** Nothing stands before a command that comes now. */
  private isClear(now: Millis): boolean {
    return this.phase === "serving" && this.queue.length === 0 && this.settleSlice(now);
  }

  /** Until what is due has been settled; whoever comes while nothing is served, then or by then, is told so. */
  private postpone(decide: (now: Millis) => void, failed: (fault: Error) => void): void {
    const run = (now: Millis): void => {
      if (this.phase === "serving") decide(now);
      else failed(this.phase === "closed" ? new ShuttingDown() : new DatabaseUnavailable());
    };
    if (this.phase !== "serving") return run(this.clock.now());
    this.queue.push(run);
    this.nextQueue.set();
  }

  /** True when nothing is due by then any more. A command is decided at the time for which this was found. */
  private settleSlice(now: Millis): boolean {
    if (!hasDue(this.state, now)) return true;
    if (this.batch.changes.size >= settleBatchMax) return false;
    const due = nextDeadline(this.state) ?? 0;
    if (due > 0) this.vitals.noteLateness(now - due);
    const settled = settle(this.state, now, settleSlice);
    this.collect(settled, now);
    return !settled.more;
  }

  private runQueue(): void {
    const queue = this.queue;
    this.queue = [];
    for (const [index, run] of queue.entries()) {
      const now = this.clock.now();
      if (this.phase === "serving" && !this.settleSlice(now)) {
        this.queue = [...queue.slice(index), ...this.queue];
        return this.resumeQueue();
      }
      run(now);
    }
    if (this.phase !== "serving") return;
    if (this.settleSlice(this.clock.now())) this.arm();
    else this.resumeQueue();
  }

  /** A full batch waits for the one before it, whose commit calls again; else the next turn goes on. */
  private resumeQueue(): void {
    if (this.committing === null || this.batch.changes.size < settleBatchMax) this.nextQueue.set();
  }

  private collect(step: Step, now: Millis): readonly SealedReceipt[] {
    const { receipts } = this.batch;
    const before = receipts.length;
    this.nextSeq = addStep(this.batch, step, now, this.nextSeq, this.options.encodeEvent, this.ledger);
    this.ready.add(step.ready);
    this.setFlush();
    this.arm();
    return receipts.length === before ? noReceipts : receipts.slice(before);
  }

  private arm(): void {
    this.deadline.set(nextDeadline(this.state), this.now);
  }

  private disarm(): void {
    this.deadline.clear();
    this.headsDue.clear();
  }

  /** One commit per turn of the loop: whatever arrives in the same turn shares its fsync. */
  private setFlush(): void {
    if (this.committing === null) this.nextFlush.set();
  }

  private flush(): void {
    if (this.committing !== null || this.ready.isAnnouncing) return;
    if (this.phase === "serving") this.ready.announce();
    const { batch } = this;
    const isQuiet = !hasChanges(batch);
    if (isQuiet) batch.now = this.clock.now();
    const heads = this.ledger.dueHeads(batch.now);
    this.headsDue.set(this.ledger.nextHeadAt, this.now);
    if (isQuiet && heads.length === 0) {
      if (batch.waiting.length === 0) return;
      this.batch = createBatch();
      this.deliver(batch.waiting, batch.events);
      return this.roomListeners.tell();
    }
    this.batch = createBatch();
    const { incarnation } = this;
    const began = performance.now();
    const stored = toStoreBatch(batch, heads, () => this.nextRow++);
    const rows = rowsIn(stored);
    // The rest of the batch is not needed any more, and would be kept in memory by what waits for the commit.
    const { waiting, events } = batch;
    const ends = this.ledger.ends(batch.receipts);
    this.committing = this.store.commit(stored).then(
      () => {
        if (incarnation !== this.incarnation) return;
        this.committing = null;
        this.vitals.noteCommit({ ms: performance.now() - began, answered: waiting.length, rows });
        this.ledger.stored(ends);
        this.deliver(waiting, events);
        this.flush();
        if (this.queue.length > 0 || hasDue(this.state, this.clock.now())) this.runQueue();
      },
      (fault: unknown) => {
        if (incarnation === this.incarnation) this.failCommit(waiting, fault);
      },
    );
    this.roomListeners.tell();
  }

  /** Replies first: who is told WAIT can begin to watch before the grant of the same batch is announced. */
  private deliver(waiting: readonly Waiting[], events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (last !== undefined) this.durableSeq = last.seq;
    for (const { settled } of waiting) settled();
    if (last !== undefined) this.eventListeners.tell(events);
  }

  private failCommit(waiting: readonly Waiting[], fault: unknown): void {
    this.options.log.error({ err: fault }, "a commit failed: memory is dropped and the store is opened again (S2)");
    const unavailable = new DatabaseUnavailable(fault);
    const lost = [...waiting, ...this.batch.waiting];
    const wasClosing = this.phase === "closed";
    this.drop();
    for (const { failed } of lost) failed(unavailable);
    this.roomListeners.tell();
    if (!wasClosing)
      void reopen(
        () => this.recoverOnce(),
        () => this.phase === "opening",
        this.options.log,
      );
  }

  private drop(): void {
    this.incarnation++;
    this.committing = null;
    this.batch = createBatch();
    this.state = createState();
    this.ledger = noLedger;
    this.ready.clear();
    this.disarm();
    if (this.phase === "serving") this.phase = "opening";
    this.runQueue();
  }

  private async recoverOnce(): Promise<void> {
    const openKey = this.options.ledgerKey ?? createLedgerKey;
    const recovered = await recover(this.store, this.time.wall(), () => (this.key ??= openKey()));
    if (this.phase === "closed") return;
    const offset = describeWallOffset(recovered.now, this.time.wall());
    if (offset !== null) this.options.log.warn({ storedTime: new Date(recovered.now).toISOString() }, offset);
    for (const fault of recovered.ledgerFaults) this.options.log.error({}, fault);
    this.state = recovered.state;
    this.ledger = new LedgerChain(recovered.ledgerKey, recovered.ledgerHeads);
    this.ledgerKeys = recovered.ledgerKeys;
    this.secret = recovered.secret;
    this.nextSeq = recovered.lastSeq + 1;
    this.durableSeq = recovered.lastSeq;
    this.nextRow = recovered.lastRow + 1;
    this.clock = startClock(
      Math.max(recovered.now, this.phase === "opening" && this.incarnation > 0 ? this.clock.now() : 0),
      this.time,
    );
    this.phase = "serving";
    this.arm();
    if (this.incarnation > 0) this.recoveryListeners.tell();
  }
}
