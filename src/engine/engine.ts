/**
 * The one loop between edges, kernel and store. A command is applied at once in memory, and answered when the batch
 * that holds its changes is durable (S1); reads wait for it too, so that nobody sees what could still be lost.
 * One batch is under way while the next one fills. After a failed commit memory is ahead of the disk, and only the
 * disk counts: memory is dropped, all waiting callers fail, and the store is opened again (S2).
 *
 *   opening ──► serving ──► (commit fails) ──► opening …       close() from any of them ──► closed
 */
import type { Command, Entropy } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";
import { apply, createState, nextDeadline, type State, type Step, settle } from "../kernel/kernel.ts";
import { createLedgerKey, type LedgerKey, type PublicLedgerKey } from "../ledger/keys.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { SignedHead, Store } from "../store/store.ts";
import {
  createBatch,
  isFull,
  type NumberedEvent,
  type OpenBatch,
  ReadyTasks,
  toStoreBatch,
  type Waiting,
} from "./batch.ts";
import { Alarm, type Clock, drawEntropy, startClock, systemTime, type TimeSources } from "./clock.ts";
import {
  DatabaseUnavailable,
  type Decision,
  type EngineOptions,
  type EventListener,
  type Outlet,
  type ReadyListener,
  ShuttingDown,
  Vitals,
} from "./engine-types.ts";
import { LedgerChain, noLedger } from "./ledger-chain.ts";
import { logFindings, recover, reopen } from "./recovery.ts";
import { v8Heap } from "./v8-heap.ts";

/** How many due items are settled before others get their turn, and how full a batch may get meanwhile. */
const settleSlice = 125;
const settleBatchMax = 500;
/** How many commits are noted before the metrics get them. */
const notedMax = 1_000;
const noReceipts: readonly SealedReceipt[] = [];

export class Engine {
  readonly vitals = new Vitals();
  readonly store: Store;
  private readonly options: EngineOptions;
  private readonly time: TimeSources;
  private readonly drawEntropy: () => Entropy;
  private readonly eventListeners = new Set<EventListener>();
  private readonly recoveryListeners = new Set<() => void>();
  /** Called once, when the batch that fills is an empty one again. */
  private emptyListeners: (() => void)[] = [];
  private readonly ready = new ReadyTasks();
  private key: LedgerKey | null = null;
  private ledger = noLedger;
  /** Every key that has signed heads of this ledger, the present one among them. */
  ledgerKeys: readonly PublicLedgerKey[] = [];
  private phase: "opening" | "serving" | "closed" = "opening";
  /** Whether commands are served now; written with `phase` only. A field, because every request reads it. */
  isServing = false;
  private state: State = createState();
  /** When the kernel has something due, as its last step said. */
  private dueAt = Number.POSITIVE_INFINITY;
  private clock: Clock;
  private batch: OpenBatch = createBatch();
  private committing: Promise<void> | null = null;
  private isFlushSet = false;
  /** Commands that came while something was due; they are decided after it (L3). */
  private queue: ((now: Millis) => void)[] = [];
  private isQueueSet = false;
  /** For the kernel's next deadline. */
  private readonly deadline: Alarm;
  /** Signs the ledger also when no more receipts come. */
  private readonly headsDue: Alarm;
  private nextSeq = 1;
  /** The last event that is durable. */
  lastSeq = 0;
  private readonly rows = { next: 1 };
  /** Raised with each recovery: a commit that was under way before it is ignored. */
  private incarnation = 0;
  /** Made at first start, and again at every restore: what agent tokens are derived from (S6). */
  secret = "";

  constructor(options: EngineOptions) {
    this.options = options;
    this.store = options.store;
    this.time = options.time ?? systemTime;
    this.drawEntropy = options.drawEntropy ?? drawEntropy;
    this.deadline = new Alarm(this.time, () => this.isServing && this.runQueue());
    this.headsDue = new Alarm(this.time, () => this.isServing && this.setFlush());
    this.clock = startClock(0, this.time);
  }

  readonly now = (): Millis => this.clock.now();

  /** Answers in the batch that fills while a commit is under way. */
  get waitingCount(): number {
    return this.batch.waiting.length;
  }

  /** Stamps a command with random numbers and decides it, at once or after what is due (L3). */
  submit<T>(command: Command, outlet: Outlet<T>): void {
    const now = this.clock.now();
    if (this.isClear(now)) this.decide(command, outlet, now);
    else this.postpone((later) => this.decide(command, outlet, later), outlet);
  }

  private decide<T>(command: Command, outlet: Outlet<T>, now: Millis): void {
    command.entropy = this.drawEntropy();
    const outcome = apply(this.state, command, now);
    const receipts = this.collect(outcome, now);
    const decided = { reply: outcome.reply, now, receipts };
    this.batch.waiting.push({ encoded: outlet.encode === null ? decided : outlet.encode(decided), outlet });
  }

  /** The same, for callers that need not be quick. */
  command(command: Command): Promise<Decision> {
    return new Promise((send, fail) => this.submit(command, { encode: null, send, fail }));
  }

  /** Reads the state; resolves when all that was read is durable (S1). */
  ask<T>(read: (state: State, now: Millis) => T): Promise<T> {
    return new Promise((send, fail) => {
      const outlet = { send, fail };
      const run = (now: Millis): void => {
        this.batch.waiting.push({ encoded: read(this.state, now), outlet });
        this.setFlush();
      };
      const now = this.clock.now();
      if (this.isClear(now)) run(now);
      else this.postpone(run, outlet);
    });
  }

  /** Reads the state at once, durable or not: for the server's own use, such as finding a key, not for answers. */
  peek<T>(read: (state: State) => T): T {
    return read(this.state);
  }

  /** Calls back with the events of each batch, in order, once they are durable and after its replies have left. */
  subscribe(listener: EventListener): () => void {
    this.eventListeners.add(listener);
    return () => this.eventListeners.delete(listener);
  }

  /**
   * Calls back with the tasks that became ready, right before a batch is sent off: polls that a listener submits are
   * decided in that batch. Not re-entrant.
   */
  onReady(listener: ReadyListener): () => void {
    this.ready.listeners.add(listener);
    return () => this.ready.listeners.delete(listener);
  }

  /** True while callers that can wait should wait for `onceEmpty`. */
  get isFull(): boolean {
    return isFull(this.batch);
  }

  /** Calls back once, when the batch that fills is an empty one again. */
  onceEmpty(listener: () => void): void {
    this.emptyListeners.push(listener);
  }

  /** The key that signs at present. */
  get ledgerKey(): PublicLedgerKey {
    return this.ledger.key;
  }

  /** The durable head of the tenant's ledger; 0 and zeros where it has no receipt (R6). */
  signHead(tenant: string): SignedHead {
    if (this.phase === "opening") throw new DatabaseUnavailable();
    return this.ledger.signDurable(tenant, this.clock.now());
  }

  /** Calls back when the service goes on after a failed commit, whose events were never announced (S2). */
  onRecovery(listener: () => void): void {
    this.recoveryListeners.add(listener);
  }

  /** No new work; what is under way is committed and answered. */
  async close(): Promise<void> {
    if (this.phase === "closed") return;
    const wasServing = this.phase === "serving";
    this.phase = "closed";
    this.isServing = false;
    this.deadline.clear();
    this.headsDue.clear();
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
      await this.store.commit(toStoreBatch({ ...createBatch(), now }, heads, this.rows));
    } catch (fault) {
      const message = "the last heads of the ledger could not be stored; the next start signs them";
      this.options.log.warn({ err: fault }, message);
    }
  }

  /** True if a command may be decided now: nothing is due and nothing is queued. */
  private isClear(now: Millis): boolean {
    return this.isServing && this.queue.length === 0 && (this.dueAt > now || this.settleSlice(now));
  }

  /** Queues until what is due has been settled; fails at once, or then, if nothing is served. */
  private postpone(decide: (now: Millis) => void, outlet: Pick<Outlet<never>, "fail">): void {
    const run = (now: Millis): void => {
      if (this.isServing) decide(now);
      else outlet.fail(this.phase === "closed" ? new ShuttingDown() : new DatabaseUnavailable());
    };
    if (!this.isServing) return run(this.clock.now());
    this.queue.push(run);
    this.resumeQueue();
  }

  /** True when nothing is due by then any more. A command is decided at the time for which this was found. */
  private settleSlice(now: Millis): boolean {
    if (this.dueAt > now) return true;
    if (this.batch.changes.size >= settleBatchMax) return false;
    if (this.dueAt > 0) this.vitals.latenessMs.push(now - this.dueAt);
    const settled = settle(this.state, now, settleSlice);
    this.collect(settled, now);
    return !settled.more;
  }

  private runQueue(): void {
    const queue = this.queue;
    this.queue = [];
    for (const [index, run] of queue.entries()) {
      const now = this.clock.now();
      if (this.isServing && !this.settleSlice(now)) {
        this.queue = [...queue.slice(index), ...this.queue];
        return this.resumeQueue();
      }
      run(now);
    }
    if (!this.isServing) return;
    if (this.settleSlice(this.clock.now())) this.deadline.set(this.dueAt, this.now);
    else this.resumeQueue();
  }

  /** In the next turn. A full batch waits for the one before it, whose commit calls again. */
  private resumeQueue(): void {
    if (this.isQueueSet || (this.committing !== null && this.batch.changes.size >= settleBatchMax)) return;
    this.isQueueSet = true;
    setImmediate(() => {
      this.isQueueSet = false;
      this.runQueue();
    });
  }

  /** Receipts are sealed, and events encoded, at once: the records they hold are at hand, and the work is spread out. */
  private collect(step: Step, now: Millis): readonly SealedReceipt[] {
    const { batch, ledger } = this;
    const { receipts } = batch;
    const before = receipts.length;
    batch.now = now;
    for (const handle of step.changes) batch.changes.add(handle);
    for (const receipt of step.receipts) receipts.push(ledger.seal(receipt, now));
    for (const event of step.events)
      batch.events.push({ seq: this.nextSeq++, event, text: this.options.encodeEvent(event) });
    if (step.ready.length > 0) this.ready.add(step.ready);
    this.dueAt = step.nextDueAt;
    this.setFlush();
    if (this.dueAt < this.deadline.at) this.deadline.set(this.dueAt, this.now);
    return receipts.length === before ? noReceipts : receipts.slice(before);
  }

  /** One commit per turn of the loop: whatever arrives in the same turn shares its fsync. */
  private setFlush(): void {
    if (this.committing !== null || this.isFlushSet) return;
    this.isFlushSet = true;
    setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.isFlushSet = false;
    if (this.committing !== null || this.ready.isAnnouncing) return;
    if (this.isServing && this.ready.gathered.length > 0) this.ready.announce();
    const { batch } = this;
    const isQuiet = batch.changes.size === 0 && batch.events.length === 0;
    if (isQuiet) batch.now = this.clock.now();
    const heads = this.ledger.nextHeadAt <= batch.now ? this.ledger.dueHeads(batch.now) : [];
    if (this.ledger.nextHeadAt < Number.POSITIVE_INFINITY) this.headsDue.set(this.ledger.nextHeadAt, this.now);
    if (isQuiet && heads.length === 0) {
      if (batch.waiting.length === 0) return;
      this.batch = createBatch();
      this.deliver(batch.waiting, batch.events);
      return this.announceEmpty();
    }
    this.batch = createBatch();
    const { incarnation } = this;
    const began = performance.now();
    const stored = toStoreBatch(batch, heads, this.rows);
    // Only these: the closures below keep what they capture in memory until the commit.
    const { waiting, events } = batch;
    const { puts, removes, ended, endedTasks } = stored;
    const rows = puts.length + removes.length + ended.length + endedTasks.length + batch.receipts.length + heads.length;
    const ends = batch.receipts.length === 0 ? null : this.ledger.ends(batch.receipts);
    this.committing = this.store.commit(stored).then(
      () => {
        if (incarnation !== this.incarnation) return;
        this.committing = null;
        this.vitals.commits.push({ ms: performance.now() - began, answered: waiting.length, rows });
        if (this.vitals.commits.length >= notedMax) this.vitals.handOver();
        if (ends !== null) this.ledger.stored(ends);
        this.deliver(waiting, events);
        this.flush();
        if (this.queue.length > 0 || this.dueAt <= this.clock.now()) this.runQueue();
      },
      (fault: unknown) => {
        if (incarnation === this.incarnation) this.failCommit(waiting, fault);
      },
    );
    if (this.emptyListeners.length > 0) this.announceEmpty();
  };

  private announceEmpty(): void {
    const listeners = this.emptyListeners;
    this.emptyListeners = [];
    for (const listener of listeners) listener();
  }

  /** Replies first: a caller that gets WAIT can begin to watch before the grant of the same batch is announced. */
  private deliver(waiting: readonly Waiting[], events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (last !== undefined) this.lastSeq = last.seq;
    for (const { encoded, outlet } of waiting) outlet.send(encoded);
    if (last !== undefined) for (const listener of this.eventListeners) listener(events);
  }

  private failCommit(waiting: readonly Waiting[], fault: unknown): void {
    this.options.log.error({ err: fault }, "a commit failed: memory is dropped and the store is opened again (S2)");
    const unavailable = new DatabaseUnavailable(fault);
    const lost = [...waiting, ...this.batch.waiting];
    const wasClosing = this.phase === "closed";
    this.drop();
    for (const { outlet } of lost) outlet.fail(unavailable);
    this.announceEmpty();
    const isWanted = (): boolean => this.phase === "opening";
    if (!wasClosing) void reopen(() => this.start(), isWanted, this.time, this.options.log);
  }

  private drop(): void {
    this.incarnation++;
    this.committing = null;
    this.batch = createBatch();
    this.state = createState();
    this.ledger = noLedger;
    this.ready.gathered = [];
    this.deadline.clear();
    this.headsDue.clear();
    this.dueAt = Number.POSITIVE_INFINITY;
    this.isServing = false;
    if (this.phase === "serving") this.phase = "opening";
    this.runQueue();
  }

  /** Opens the store and serves what is in it. Throws if that is not possible; later faults are recovered from. */
  async start(): Promise<void> {
    const { ledgerKey: openKey = createLedgerKey, heap = v8Heap, log } = this.options;
    const recovered = await recover(this.store, this.time.wall(), () => (this.key ??= openKey()), heap);
    if (this.phase === "closed") return;
    logFindings(recovered, this.time.wall(), log);
    this.state = recovered.state;
    this.ledger = new LedgerChain(recovered.ledgerKey, recovered.ledgerHeads);
    this.ledgerKeys = recovered.ledgerKeys;
    this.secret = recovered.secret;
    this.nextSeq = recovered.lastSeq + 1;
    this.lastSeq = recovered.lastSeq;
    this.rows.next = recovered.lastRow + 1;
    const before = this.phase === "opening" && this.incarnation > 0 ? this.clock.now() : 0;
    this.clock = startClock(Math.max(recovered.now, before), this.time);
    this.phase = "serving";
    this.isServing = true;
    this.dueAt = nextDeadline(this.state);
    this.deadline.set(this.dueAt, this.now);
    if (this.incarnation > 0) for (const listener of this.recoveryListeners) listener();
  }
}
