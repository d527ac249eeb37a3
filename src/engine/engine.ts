/**
 * The one loop between edges, kernel and store. A command is applied at once in memory, and answered when the batch
 * that holds its changes is durable (S1); reads wait for it too, so that nobody sees what could still be lost.
 * One batch is under way while the next one fills. After a failed commit memory is ahead of the disk, and only the
 * disk counts: memory is dropped, all waiting callers fail, and the store is opened again (S2).
 *
 *   opening ──► serving ──► (commit fails) ──► opening …       close() from any of them ──► closed
 */
import type { Command, Entropy } from "../kernel/contract/commands.ts";
import { limits } from "../kernel/contract/limits.ts";
import type { Millis } from "../kernel/contract/records.ts";
import { applySlice, createState, nextDeadline, SettleFault, type State, type Step, settle } from "../kernel/kernel.ts";
import type { LedgerKey, PublicLedgerKey } from "../ledger/keys.ts";
import type { SealedReceipt } from "../ledger/seal.ts";
import type { Batch, SignedHead, Store } from "../store/store.ts";
import { Alarm, StoredTime } from "./alarm.ts";
import { addReceipt, createBatch, isFull, Listeners, type OpenBatch, toStoreBatch } from "./batch.ts";
import { type Clock, drawEntropy, startClock, systemTime, type TimeSources } from "./clock.ts";
import { CommandQueue, type QueueOwner } from "./command-queue.ts";
import {
  type Caller,
  DatabaseUnavailable,
  type Decision,
  type EngineOptions,
  notedMax,
  type Outlet,
  refuseGrowth,
  ShuttingDown,
  Vitals,
} from "./engine-types.ts";
import { Payloads } from "./history.ts";
import { commitLastHeads, LedgerChain, noLedger } from "./ledger-chain.ts";
import { logFindings, recover, reopen } from "./recovery.ts";
import { SetAside } from "./set-aside.ts";
import { SlicedWork, type WorkOwner } from "./sliced-work.ts";
import { v8Heap } from "./v8-heap.ts";

/** How many due items are settled before others get their turn, and how full a batch may get meanwhile. */
const settleSlice = 125;
const settleBatchMax = 500;
const noReceipts: readonly SealedReceipt[] = [];

export class Engine extends Listeners implements QueueOwner, WorkOwner {
  readonly vitals = new Vitals();
  readonly store: Store;
  readonly encodeEvent: EngineOptions["encodeEvent"];
  private readonly options: EngineOptions;
  private readonly time: TimeSources;
  private readonly drawEntropy: () => Entropy;
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
  private readonly queue: CommandQueue;
  private readonly work: SlicedWork;
  /** For the kernel's next deadline. */
  private readonly deadline: Alarm;
  /** Signs the ledger also when no more receipts come. */
  private readonly headsDue: Alarm;
  /** Stores the time while nothing else is stored. */
  private readonly storedTime: StoredTime;
  private readonly rows = { next: 1 };
  /** Raised with each recovery: a commit that was under way before it is ignored. */
  private incarnation = 0;
  /** Recoveries since a commit went through: each waits longer than the one before. */
  private failuresInRow = 0;
  private readonly setAside = new SetAside();
  readonly payloads: Payloads;
  /** Made at first start, and again at every restore: what agent tokens are derived from (S6). */
  secret = "";

  constructor(options: EngineOptions) {
    super();
    this.options = options;
    this.store = options.store;
    this.encodeEvent = options.encodeEvent;
    this.time = options.time ?? systemTime;
    this.drawEntropy = options.drawEntropy ?? drawEntropy;
    this.payloads = new Payloads(this, options.payloadCharsMax);
    this.queue = new CommandQueue(this);
    this.work = new SlicedWork(this);
    this.deadline = new Alarm(this.time, () => this.isServing && this.queue.run());
    this.headsDue = new Alarm(this.time, () => this.isServing && this.setFlush());
    this.storedTime = new StoredTime(this.time, () => this.isServing && this.setFlush());
    this.clock = startClock(Math.floor(this.time.wall()), this.time);
  }

  readonly now = (): Millis => this.clock.now();

  /** Answers in the batch that fills while a commit is under way. */
  get waitingCount(): number {
    return this.batch.waiting.length;
  }

  /** Stamps a command with random numbers and decides it, at once or after what is due (L3). */
  submit<T>(command: Command, outlet: Outlet<T>): void {
    if ((this.options.heap ?? v8Heap).isFull && refuseGrowth(command, outlet)) return;
    const now = this.clock.now();
    if (this.isClear(now)) this.decide(command, outlet, now);
    else this.postpone((later) => this.decide(command, outlet, later), outlet);
  }

  private decide<T>(command: Command, outlet: Outlet<T>, now: Millis): void {
    command.entropy = this.drawEntropy();
    let decided: Decision;
    try {
      const begun = applySlice(this.state, command, now, limits.recordsPerStepMax);
      const { reply } = begun;
      const receipts = this.collect(begun, now);
      if (reply.type === "payload_away") return this.payloads.decideWith(command, outlet, reply);
      if (reply.type === "later") return this.work.add({ reply, receipts, outlet: outlet as Outlet<never> });
      decided = { reply, now, receipts };
    } catch (fault) {
      return this.failStep(`deciding ${command.type}`, fault, [{ outlet }]);
    }
    this.answer(decided, outlet);
  }

  answer<T>(decided: Decision, outlet: Outlet<T>): void {
    const { reply } = decided;
    if (reply.type === "offers" && reply.offers.some(({ payload, task }) => payload === null && task.payloadBytes > 0))
      this.batch.waiting.push(this.payloads.answerWith(decided, outlet));
    else this.batch.waiting.push({ encoded: outlet.encode === null ? decided : outlet.encode(decided), outlet });
  }

  /** A step of the kernel besides a command; null: it threw. */
  step<T extends Step>(what: string, now: Millis, run: (state: State) => T): T | null {
    try {
      const step = run(this.state);
      this.collect(step, now);
      return step;
    } catch (fault) {
      this.failStep(what, fault, []);
      return null;
    }
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
        try {
          this.batch.waiting.push({ encoded: read(this.state, now), outlet });
        } catch (fault) {
          fail(fault);
        }
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

  /** True while callers that can wait should wait for `onceEmpty`. */
  get isFull(): boolean {
    return isFull(this.batch);
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

  /** No new work; what is under way is committed and answered. */
  async close(): Promise<void> {
    if (this.phase === "closed") return;
    const wasServing = this.phase === "serving";
    this.phase = "closed";
    this.isServing = false;
    for (const timer of [this.deadline, this.headsDue, this.storedTime]) timer.clear();
    this.queue.run();
    if (wasServing) {
      while (this.state.jobs.length > 0) {
        this.work.run(this.clock.now());
        this.flush();
        await this.committing;
      }
      this.flush();
      while (this.committing !== null || this.batch.waiting.length > 0) {
        await this.committing;
        this.flush();
      }
      await commitLastHeads(this.ledger, this.store, this.clock.now(), this.rows, this.options.log);
    }
    await this.store.close();
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
    this.queue.add(run);
  }

  /** True when nothing is due by then any more. A command is decided at the time for which this was found. */
  settleSlice(now: Millis): boolean {
    if (this.dueAt > now) return true;
    if (this.batch.changes.size >= settleBatchMax) return false;
    if (this.dueAt > 0) this.vitals.latenessMs.push(now - this.dueAt);
    const settled = this.step("settling what is due", now, (state) => settle(state, now, settleSlice));
    return settled !== null && !settled.more;
  }

  mustWaitForCommit(): boolean {
    return this.committing !== null && this.batch.changes.size >= settleBatchMax;
  }

  setDeadline(): void {
    this.deadline.set(this.dueAt, this.now);
  }

  /** Receipts are sealed at once: the records they hold are at hand, and the work is spread out. */
  private collect(step: Step, now: Millis): readonly SealedReceipt[] {
    const { batch, ledger } = this;
    const before = batch.receipts.length;
    batch.now = now;
    for (const handle of step.changes) batch.changes.add(handle);
    for (const receipt of step.receipts) addReceipt(batch, ledger.seal(receipt, now));
    for (const entry of step.audits) batch.audits.push(ledger.audits.seal(entry));
    for (const event of step.events) batch.events.push({ seq: this.nextSeq++, event });
    if (step.ready.length > 0) this.ready.add(step.ready);
    this.dueAt = step.nextDueAt;
    this.setFlush();
    if (this.state.jobs.length > 0) this.work.resume();
    if (this.dueAt < this.deadline.at) this.deadline.set(this.dueAt, this.now);
    return batch.receipts.length === before ? noReceipts : batch.receipts.slice(before);
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
    const { batch, storedTime } = this;
    const isQuiet = batch.changes.size === 0 && batch.events.length === 0;
    if (isQuiet) batch.now = this.clock.now();
    const heads = this.ledger.nextHeadAt <= batch.now ? this.ledger.dueHeads(batch.now) : [];
    if (this.ledger.nextHeadAt < Number.POSITIVE_INFINITY) this.headsDue.set(this.ledger.nextHeadAt, this.now);
    const isTimeDue = isQuiet && storedTime.hasRung && storedTime.isDue(this.state, batch.now, this.now);
    if (isQuiet && heads.length === 0 && !isTimeDue) {
      if (batch.waiting.length === 0) return;
      this.batch = createBatch();
      this.deliver(batch.waiting, batch.events);
      return this.announceEmpty();
    }
    this.batch = createBatch();
    const { incarnation } = this;
    const began = performance.now();
    let stored: Batch;
    try {
      stored = toStoreBatch(batch, heads, this.rows, this.encodeEvent);
    } catch (fault) {
      return this.failStep("encoding a batch", fault, batch.waiting);
    }
    // Only these: the closures below keep what they capture in memory until the commit.
    const { waiting, events, now, carriers } = batch;
    const { puts, removes, ended, endedTasks } = stored;
    const rows = puts.length + removes.length + ended.length + endedTasks.length + batch.receipts.length + heads.length;
    const ends = batch.receipts.length === 0 ? null : this.ledger.ends(batch.receipts);
    this.committing = this.store.commit(stored).then(
      () => {
        // Memory was dropped meanwhile, but what these callers were promised is stored.
        if (incarnation !== this.incarnation) return this.deliver(waiting, events);
        this.committing = null;
        this.failuresInRow = 0;
        const ms = performance.now() - began;
        const noted = this.vitals.commits.push({ began, ms, answered: waiting.length, rows });
        if (noted >= notedMax) this.vitals.handOver();
        if (ends !== null) this.ledger.stored(ends);
        if (carriers.length > 0) this.payloads.note(carriers);
        storedTime.at = now;
        if (storedTime.alarm.at === Number.POSITIVE_INFINITY) storedTime.alarm.set(now + StoredTime.everyMs, this.now);
        this.deliver(waiting, events);
        this.flush();
        if (this.state.jobs.length > 0) this.work.resume();
        if (this.queue.length > 0 || this.dueAt <= this.clock.now()) this.queue.run();
      },
      (fault: unknown) => {
        if (incarnation === this.incarnation) this.committing = null;
        this.fail("a commit failed", fault, waiting, incarnation);
      },
    );
    if (this.emptyListeners.length > 0) this.announceEmpty();
  };

  /** An exception in the kernel may have changed half of what belongs together: as after a failed commit (S2). */
  private failStep(what: string, fault: unknown, callers: readonly Caller[]): void {
    if (fault instanceof SettleFault) this.setAside.note(fault.item);
    this.fail(`a bug: ${what} threw`, fault, callers, this.incarnation);
  }

  /** Only the disk counts from here on. What is being committed is still answered by what becomes of it. */
  private fail(what: string, fault: unknown, callers: readonly Caller[], incarnation: number): void {
    this.options.log.error({ err: fault }, `${what}: memory is dropped and the store is opened again (S2)`);
    const { committing, phase } = this;
    const isFirst = incarnation === this.incarnation;
    const lost = isFirst ? [...callers, ...this.batch.waiting, ...this.work.drop()] : callers;
    if (isFirst) this.drop();
    const unavailable = new DatabaseUnavailable(fault);
    for (const { outlet } of lost) outlet.fail(unavailable);
    if (!isFirst) return;
    this.announceEmpty();
    if (phase === "serving") (this.options.onTermOver ?? (() => void this.reopen(committing)))(fault);
  }

  private async reopen(committing: Promise<void> | null): Promise<void> {
    await committing;
    const isWanted = (): boolean => this.phase === "opening";
    // Closed first: the store itself may be well, and refuses to be opened twice.
    const open = async (): Promise<void> => {
      await this.store.close().catch(() => undefined);
      await this.start();
    };
    await reopen(open, isWanted, this.failuresInRow++, this.time, this.options.log);
  }

  private drop(): void {
    this.incarnation++;
    this.committing = null;
    this.batch = createBatch();
    this.state = createState();
    this.ledger = noLedger;
    this.ready.gathered = [];
    this.payloads.clear();
    for (const timer of [this.deadline, this.headsDue, this.storedTime]) timer.clear();
    this.dueAt = Number.POSITIVE_INFINITY;
    this.isServing = false;
    if (this.phase === "serving") this.phase = "opening";
    this.queue.run();
  }

  /** Opens the store and serves what is in it. Throws if that is not possible; later faults are recovered from. */
  async start(): Promise<void> {
    const running = this.incarnation > 0 ? this.clock : null;
    const recovered = await recover(this.options, { time: this.time, running, key: this.key });
    this.key = recovered.ledgerKey;
    if (this.phase === "closed") return;
    logFindings(recovered, this.options.log);
    this.state = recovered.state;
    this.setAside.apply(this.state, this.options.log);
    this.ledger = new LedgerChain(recovered.ledgerKey, recovered.ledgerHeads, recovered.auditHeads);
    this.ledgerKeys = recovered.ledgerKeys;
    this.secret = recovered.secret;
    this.nextSeq = recovered.lastSeq + 1;
    this.lastSeq = recovered.lastSeq;
    this.rows.next = recovered.lastRow + 1;
    this.clock = recovered.clock;
    this.storedTime.begin(this.now);
    this.phase = "serving";
    this.isServing = true;
    this.dueAt = nextDeadline(this.state);
    this.deadline.set(this.dueAt, this.now);
    if (this.state.jobs.length > 0) this.work.resume();
    if (this.incarnation > 0) this.announceRecovery();
  }
}
