/**
 * Receipts on their way into the ledger, one or many. The kernel knows the keys of receipts about live tasks; whether a
 * key was used for a task that has ended, the ledger says (R3). So a receipt with a key is looked up before it is
 * submitted, two with the same key go one after the other, and what comes later about the same task waits for it. Many are
 * decided in slices, as batches empty.
 */
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { tasksOfEndedLeases } from "../../engine/history.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { ReceiptInput, SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import {
  dedupeMarksOf,
  isKeyOfLiveLease,
  isReceiptKnown,
  mayBeForeign,
  senderNameOf,
  taskOfReceipt,
} from "../../kernel/views.ts";
import { type Answer, answer, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { SubmitReceipts } from "../../protocol/answers/queries.ts";
import { receiptForm, receiptMarkForm, type ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import type { Form } from "../../protocol/schema/convert.ts";
import { receiptAnswer } from "../../protocol/tasks/task-json.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";
import { artifactsIn } from "../artifacts/references.ts";
import type { Service } from "../service.ts";
import { DedupeLookup, type FoundReceipts, findBefore, type KnownReceipt } from "./dedupe-lookup.ts";
import { type Finding, findLate, findRepeated, withoutOwned } from "./late-receipts.ts";
import type { ReceiptItems, ReceiptOutlet, ReceiptSender } from "./receipt-outlet.ts";

export class ReceiptSubmission {
  private readonly engine: Engine;
  private readonly lookup: DedupeLookup;
  /** By task: calls with receipts about it that are not decided yet. Later ones about the same task wait for them. */
  private readonly underWay = new Map<string, Promise<void>>();

  constructor(engine: Engine) {
    this.engine = engine;
    this.lookup = new DedupeLookup(engine);
  }

  /** Decides them in their order, in one turn if they are few and none of them needs to be looked up. */
  submit<T>(sender: ReceiptSender, receipts: ReceiptItems, outlet: ReceiptOutlet<T>): void {
    const { tenant } = sender;
    const good = receipts.map((receipt, index) => {
      if (receipt === null || receipt.tenantId === null || receipt.tenantId === tenant) return receipt;
      outlet.answered(index, tenantMismatch);
      return null;
    });
    const before = this.callsBefore(tenant, good);
    if (before.length === 0) this.begin(sender, good, outlet);
    else void Promise.all(before).then(() => this.begin(sender, good, outlet));
  }

  private begin<T>(sender: ReceiptSender, receipts: ReceiptItems, outlet: ReceiptOutlet<T>): void {
    const { engine, lookup } = this;
    const call = new ReceiptCall(engine, lookup, sender, receipts, outlet);
    if (!call.isKeyed && call.decideSlice()) return;
    const done = call.finish().catch((fault: unknown) => outlet.failed(fault));
    this.note(sender.tenant, receipts, done);
  }

  private callsBefore(tenant: string, receipts: ReceiptItems): readonly Promise<void>[] {
    if (this.underWay.size === 0) return [];
    return this.namesOf(tenant, receipts).flatMap((name) => this.underWay.get(name) ?? []);
  }

  private note(tenant: string, receipts: ReceiptItems, done: Promise<void>): void {
    const names = this.namesOf(tenant, receipts);
    for (const name of names) this.underWay.set(name, done);
    void done.then(() => {
      for (const name of names) if (this.underWay.get(name) === done) this.underWay.delete(name);
    });
  }

  private namesOf(tenant: string, receipts: ReceiptItems): readonly string[] {
    const tasks = this.engine.peek((state) =>
      receipts.map((receipt) => (receipt === null ? null : taskOfReceipt(state, tenant, receipt))),
    );
    return [...new Set(tasks)].flatMap((task) => (task === null ? [] : [`${tenant}\n${task}`]));
  }
}

/** The receipts of one call. */
class ReceiptCall<T> {
  /** Some have keys that only the ledger can know, or tasks that only history can. */
  readonly isKeyed: boolean;
  private readonly engine: Engine;
  private readonly lookup: DedupeLookup;
  private readonly sender: ReceiptSender;
  private readonly receipts: ReceiptItems;
  private readonly outlet: ReceiptOutlet<T>;
  private readonly marks: readonly (readonly string[])[];
  /** Tasks that the kernel does not know and that may be another system's; once history was asked, those that are (R1). */
  private unowned: ReadonlySet<string>;
  private next = 0;

  constructor(
    engine: Engine,
    lookup: DedupeLookup,
    sender: ReceiptSender,
    receipts: ReceiptItems,
    outlet: ReceiptOutlet<T>,
  ) {
    this.engine = engine;
    this.lookup = lookup;
    this.sender = sender;
    this.receipts = receipts;
    this.outlet = outlet;
    this.marks = receipts.some(isKeyed) ? receipts.map((receipt) => this.unknownMarks(receipt)) : [];
    const { tenant } = sender;
    const unknown = engine.peek((state) => receipts.filter((one) => one !== null && mayBeForeign(state, tenant, one)));
    this.unowned = new Set(unknown.flatMap((one) => one?.taskId ?? []));
    this.isKeyed = this.unowned.size > 0 || this.marks.some((some) => some.length > 0);
  }

  /** As many as fit into the batch, and at least one, so that many never block the loop. True: all are decided. */
  decideSlice(): boolean {
    const { receipts } = this;
    do {
      const receipt = receipts[this.next];
      if (receipt !== null && receipt !== undefined) this.submission(receipt, this.next, null).decide();
      this.next++;
    } while (this.next < receipts.length && !this.engine.isFull);
    return this.next >= receipts.length;
  }

  async finish(): Promise<void> {
    if (this.isKeyed) return this.finishKeyed();
    do await this.emptied();
    while (!this.decideSlice());
  }

  /**
   * One query to the ledger for all of them; nothing else with one of the marks is decided meanwhile. Receipts of the
   * call that share a mark go one after the other, each knowing what became of the one before.
   */
  private async finishKeyed(): Promise<void> {
    const { lookup, marks, receipts, sender } = this;
    const wanted = [...new Set(marks.flat())];
    const release = await lookup.hold(sender.tenant, wanted);
    try {
      const found = [
        lookup.find(sender.tenant, wanted),
        this.tasks(),
        withoutOwned(this.engine, sender.tenant, this.unowned),
      ] as const;
      const [known, tasks, unowned] = await Promise.all(found);
      this.unowned = unowned;
      const lastWith = new Map<string, Promise<void>>();
      const all: Promise<void>[] = [];
      for (const [index, receipt] of receipts.entries()) {
        if (receipt === null) continue;
        if (this.engine.isFull) await this.emptied();
        const own = marks[index] ?? [];
        const before = own.flatMap((mark) => lastWith.get(mark) ?? []);
        const begin = (): Promise<void> => this.settle(receipt, index, tasks[index] ?? null, known);
        const settled = before.length === 0 ? begin() : Promise.all(before).then(begin);
        for (const mark of own) lastWith.set(mark, settled);
        all.push(settled);
      }
      await Promise.all(all);
    } finally {
      release();
    }
  }

  /** The task of each receipt with unknown marks. That of a lease that has ended is in history. */
  private async tasks(): Promise<readonly (string | null)[]> {
    const { engine, marks, receipts, sender } = this;
    const { tenant } = sender;
    const live = receipts.map((one) => one && engine.peek((state) => taskOfReceipt(state, tenant, one)));
    const late = receipts.map((one, index) => {
      const isKeyed = (marks[index] ?? []).length > 0;
      return isKeyed && live[index] === null ? (one?.leaseId ?? null) : null;
    });
    const leaseIds = late.filter((id) => id !== null);
    if (leaseIds.length === 0) return live;
    const ended = await tasksOfEndedLeases(engine.store, tenant, leaseIds);
    return live.map((taskId, index) => taskId ?? ended.get(late[index] ?? "") ?? null);
  }

  private settle(receipt: ReceiptInput, index: number, taskId: string | null, known: FoundReceipts): Promise<void> {
    const marks = this.marks[index] ?? [];
    return new Promise((resolve) => {
      const submission = this.submission(receipt, index, (stored) => {
        if (stored !== null) for (const mark of marks) known.set(mark, [...(known.get(mark) ?? []), stored]);
        resolve();
      });
      const before = findBefore(known, marks, taskId, senderNameOf(this.sender.actor));
      if (before === undefined) submission.decide();
      else submission.settleRepeated(before);
    });
  }

  private submission(
    receipt: ReceiptInput,
    index: number,
    after: ((stored: KnownReceipt | null) => void) | null,
  ): Submission<T> {
    const { engine, sender, outlet } = this;
    const unowned = receipt.taskId !== null && this.unowned.has(receipt.taskId);
    return new Submission({ engine, sender, index, outlet, after, unowned }, receipt);
  }

  /** Marks that the kernel does not know; what those that it knows mean, it says itself. */
  private unknownMarks(receipt: ReceiptInput | null): readonly string[] {
    if (receipt === null || !isKeyed(receipt)) return [];
    const { sender } = this;
    const isMemorys = this.engine.peek(
      (state) => isKeyOfLiveLease(state, sender.tenant, receipt) || isReceiptKnown(state, sender, receipt),
    );
    return isMemorys ? [] : dedupeMarksOf(receipt);
  }

  private emptied(): Promise<void> {
    return new Promise((resolve) => this.engine.onceEmpty(() => setImmediate(resolve)));
  }
}

/** One receipt on its way: whose it is, its place in the call, and whom to tell what. */
interface Sent<T> {
  readonly engine: Engine;
  readonly sender: ReceiptSender;
  readonly index: number;
  readonly outlet: ReceiptOutlet<T>;
  /** What was stored, now or before; null: nothing. */
  readonly after: ((stored: KnownReceipt | null) => void) | null;
  /** History does not know its task (R1). */
  readonly unowned: boolean;
}

/** This object is kept until the commit: the receipt itself is not, once it is decided (0013). */
class Submission<T> implements Outlet<T | null> {
  private readonly sent: Sent<T>;
  private receipt: ReceiptInput | null;
  /** The reply that the ledger or history has to complete, or a refusal. */
  private undecided: Decision | null = null;
  private stored: KnownReceipt | null = null;
  /** Of a lease that has ended: the task that it was on. Not part of what was sent (R3). */
  private taskOfLease: string | null = null;

  constructor(sent: Sent<T>, receipt: ReceiptInput) {
    this.sent = sent;
    this.receipt = receipt;
  }

  /** With its marks in hand: nothing with one of them is under way. */
  decide(): void {
    const { receipt, sent, taskOfLease } = this;
    if (receipt === null) throw new TypeError("a receipt is decided once");
    const { sender, unowned } = sent;
    const { tenant, actor } = sender;
    const command = {
      type: "submit_receipt",
      tenant,
      actor,
      receipt,
      taskOfLease,
      unowned,
      entropy: unstamped,
    } as const;
    sent.engine.submit(command, this);
  }

  encode(decided: Decision): T | null {
    const { reply } = decided;
    const isLate = reply.type !== "refused" || reply.code === "task_unknown" || reply.code === "lease_unknown";
    const isStored = reply.type === "receipt";
    if (isStored) this.stored = knownAs(reply.receipt);
    if (isStored || !isLate) this.receipt = null;
    this.undecided = isStored ? null : decided;
    return isStored ? this.sent.outlet.encode(sealedIn(decided), true) : null;
  }

  send(encoded: T | null): void {
    const { undecided, receipt } = this;
    const { engine, sender, index, outlet, after } = this.sent;
    if (undecided === null) {
      if (encoded !== null) outlet.stored(index, encoded);
      after?.(this.stored);
      return;
    }
    const { reply, now } = undecided;
    if (receipt !== null) this.settle(findLate(engine, sender, receipt, this.taskOfLease, reply), now);
    else if (reply.type === "refused") this.refuse(reply, now);
  }

  fail(fault: unknown): void {
    this.sent.outlet.failed(fault);
    this.sent.after?.(null);
  }

  /** Its key or id is in the ledger. */
  settleRepeated(before: KnownReceipt): void {
    const { engine, sender } = this.sent;
    if (this.receipt !== null) this.settle(findRepeated(engine, sender, this.receipt, before), engine.now());
  }

  private refuse(refusal: Refusal, now: Millis): void {
    this.sent.outlet.refused(this.sent.index, refusal, now);
    this.sent.after?.(null);
  }

  private settle(finding: Promise<Finding>, now: Millis): void {
    const { index, outlet, after } = this.sent;
    finding.then(
      (found) => {
        if (found.type === "again") {
          this.taskOfLease = found.taskOfLease;
          return this.decide();
        }
        if (found.type === "refused") return this.refuse(found.refusal, now);
        outlet.stored(index, outlet.encode(found.stored, false));
        after?.(knownAs(found.stored.receipt));
      },
      (fault: unknown) => this.fail(fault),
    );
  }
}

const tenantMismatch = errorAnswer(
  "tenant_mismatch",
  "The receipt's tenant_id is not that of the credential; leave it out, or use the other tenant's credential.",
  { field: "tenant_id" },
);

/** A command may add further receipts; its own is the one in its reply. */
function sealedIn({ reply, receipts }: Decision): ShownReceipt {
  const sealed = reply.type === "receipt" ? receipts.find(({ receipt }) => receipt === reply.receipt) : undefined;
  if (sealed === undefined) throw new TypeError("a stored receipt has a place in the chain");
  return sealed;
}

function knownAs({ id: receiptId, taskId, submittedBy }: ShownReceipt["receipt"]): KnownReceipt {
  return { receiptId, taskId, submittedBy };
}

function isKeyed(receipt: ReceiptInput | null): boolean {
  return receipt !== null && (receipt.dedupeKey !== null || receipt.receiptId !== null);
}

export function runReceipt({ service, command, respond }: RunRequest<SubmitReceipt>): null {
  const failed = (fault: unknown): void => respond(answerForFault(service, fault));
  submit(
    service,
    command,
    [command.receipt],
    outletOf(service, receiptForm, (_index, answer) => respond(answer), failed),
  );
  return null;
}

/** Artifacts that receipts point to are kept as long as the ledger is, so they are marked first. */
function submit<T>(service: Service, sender: ReceiptSender, items: ReceiptItems, outlet: ReceiptOutlet<T>): void {
  const pointers = items.flatMap((one) => one?.artifactPointer ?? one?.artifactLocation ?? one?.artifactRefs ?? []);
  if (pointers.length === 0) return service.receipts.submit(sender, items, outlet);
  const all = items.map((one) => [one?.artifactPointer, one?.artifactLocation, one?.artifactRefs]);
  const go = (): void => service.receipts.submit(sender, items, outlet);
  service.artifacts.refer(sender.tenant, artifactsIn(all)).then(go, outlet.failed);
}

export function runReceipts({ service, command, respond }: RunRequest<SubmitReceipts>): null {
  const { items } = command;
  const results = new Results(service, items.length, respond);
  const good = items.map((item, index) => {
    if (item.ok) return item.value;
    service.counts.refuse(item.fault.code);
    results.set(index, faultAnswer(item.fault));
    return null;
  });
  const set = (index: number, answer: Answer): void => results.set(index, answer);
  submit(service, command, good, outletOf(service, receiptMarkForm, set, results.fail.bind(results)));
  return null;
}

function outletOf(
  { counts }: Service,
  form: Form<ShownReceipt>,
  respond: (index: number, answer: Answer) => void,
  failed: (fault: unknown) => void,
): ReceiptOutlet<Answer> {
  const refuse = (index: number, refused: Answer): void => {
    counts.refuse(refused.code);
    respond(index, refused);
  };
  return {
    encode: (stored, created) => answer(created ? 201 : 200, form, stored),
    stored: respond,
    refused: (index, refusal, now) => refuse(index, receiptAnswer(refusal, { now })),
    answered: refuse,
    failed,
  };
}
