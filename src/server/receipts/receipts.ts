/**
 * Receipts on their way into the ledger, one or many. The kernel knows the keys of receipts about live tasks; whether a
 * key was used for a task that has ended, the ledger says (R3). So a receipt with a key is looked up before it is
 * submitted, and two with the same key go one after the other.
 */
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { completeReply, findEndedTask, findReceipt, taskOfEndedLease } from "../../engine/history.ts";
import { type Actor, unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import type { ReceiptInput, SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { dedupeConflict, receiptFingerprint } from "../../kernel/kernel.ts";
import { dedupeMarksOf, isReceiptKnown } from "../../kernel/views.ts";
import { type Answer, answer, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { SubmitReceipts } from "../../protocol/answers/queries.ts";
import { receiptForm, receiptMarkForm, type ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import type { Form } from "../../protocol/schema/convert.ts";
import { receiptAnswer } from "../../protocol/tasks/task-json.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";
import type { Service } from "../service.ts";
import { DedupeLookup, type KnownReceipt } from "./dedupe-lookup.ts";

/** Gets what became of each receipt, by its place: stored, now or before, or refused, by the kernel or at the edge. */
export interface ReceiptOutlet<T = unknown> {
  /** Runs when the receipt is decided; `stored` gets its result when it is durable. */
  encode(stored: ShownReceipt, created: boolean): T;
  stored(index: number, encoded: T): void;
  refused(index: number, refusal: Refusal, now: Millis): void;
  answered(index: number, answer: Answer): void;
  /** The outcome is unknown (S2). */
  failed(fault: unknown): void;
}

export interface ReceiptSender {
  readonly tenant: string;
  readonly actor: Actor;
}

/** null: an item that is answered already. */
export type ReceiptItems = readonly (ReceiptInput | null)[];

export class ReceiptSubmission {
  private readonly engine: Engine;
  private readonly lookup: DedupeLookup;

  constructor(engine: Engine) {
    this.engine = engine;
    this.lookup = new DedupeLookup(engine);
  }

  /** Decides them in their order, in one turn if none of them needs to be looked up. */
  submit<T>(sender: ReceiptSender, receipts: ReceiptItems, outlet: ReceiptOutlet<T>): void {
    const { tenant } = sender;
    const good = receipts.map((receipt, index) => {
      if (receipt === null || receipt.tenantId === null || receipt.tenantId === tenant) return receipt;
      outlet.answered(index, tenantMismatch);
      return null;
    });
    if (good.some(isKeyed)) {
      const marks = good.map((receipt) => (receipt === null ? [] : this.unknownMarks(tenant, receipt)));
      if (marks.some((some) => some.length > 0)) {
        this.submitKeyed(sender, good, marks, outlet).catch((fault: unknown) => outlet.failed(fault));
        return;
      }
    }
    const { engine } = this;
    for (const [index, receipt] of good.entries())
      if (receipt !== null) new Submission({ engine, sender, index, outlet, after: null }, receipt).decide();
  }

  /** Marks that the kernel does not know; what those that it knows mean, it says itself. */
  private unknownMarks(tenant: string, receipt: ReceiptInput): readonly string[] {
    return this.engine.peek((state) => isReceiptKnown(state, tenant, receipt)) ? [] : dedupeMarksOf(receipt);
  }

  /** Receipts of one call may share a mark; those that do wait for the first of them. */
  private async submitKeyed<T>(
    sender: ReceiptSender,
    receipts: ReceiptItems,
    marks: readonly (readonly string[])[],
    outlet: ReceiptOutlet<T>,
  ): Promise<void> {
    const { tenant } = sender;
    const { first, later } = splitRepeated(receipts, marks);
    const wanted = first.flatMap((index) => marks[index] ?? []);
    const release = await this.lookup.hold(tenant, wanted);
    try {
      const known = await this.lookup.find(tenant, wanted);
      await new Promise<void>((resolve) => {
        let left = first.length;
        const after = (): void => {
          if (--left === 0) resolve();
        };
        for (const index of first) {
          const receipt = receipts[index];
          if (receipt === null || receipt === undefined) continue;
          const before = (marks[index] ?? []).map((mark) => known.get(mark)).find((one) => one !== undefined);
          const submission = new Submission({ engine: this.engine, sender, index, outlet, after }, receipt);
          if (before === undefined) submission.decide();
          else submission.settleRepeated(before);
        }
      });
    } finally {
      release();
    }
    for (const index of later) {
      const alone = receipts.map((receipt, place) => (place === index ? receipt : null));
      await this.submitKeyed(sender, alone, marks, outlet);
    }
  }
}

/** What history and the ledger say about a receipt that came late, or was sent before (T13, R3). */
type Finding =
  | { readonly type: "stored"; readonly stored: ShownReceipt }
  | { readonly type: "refused"; readonly refusal: Refusal }
  /** To be submitted once more, in this form. */
  | { readonly type: "again"; readonly receipt: ReceiptInput };

/** One receipt on its way: whose it is, its place in the call, and whom to tell what. */
interface Sent<T> {
  readonly engine: Engine;
  readonly sender: ReceiptSender;
  readonly index: number;
  readonly outlet: ReceiptOutlet<T>;
  readonly after: (() => void) | null;
}

/** This object is kept until the commit: the receipt itself is not, once it is decided (0013). */
class Submission<T> implements Outlet<T | null> {
  private readonly sent: Sent<T>;
  private receipt: ReceiptInput | null;
  /** The reply that the ledger or history has to complete, or a refusal. */
  private undecided: Decision | null = null;

  constructor(sent: Sent<T>, receipt: ReceiptInput) {
    this.sent = sent;
    this.receipt = receipt;
  }

  /** With its marks in hand: nothing with one of them is under way. */
  decide(): void {
    const { receipt, sent } = this;
    if (receipt === null) throw new TypeError("a receipt is decided once");
    const { tenant, actor } = sent.sender;
    sent.engine.submit({ type: "submit_receipt", tenant, actor, receipt, entropy: unstamped }, this);
  }

  encode(decided: Decision): T | null {
    const { reply } = decided;
    const isLate = reply.type !== "refused" || reply.code === "task_unknown" || reply.code === "lease_unknown";
    const isStored = reply.type === "receipt";
    if (isStored || !isLate) this.receipt = null;
    this.undecided = isStored ? null : decided;
    return isStored ? this.sent.outlet.encode(sealedIn(decided), true) : null;
  }

  send(encoded: T | null): void {
    const { undecided, receipt } = this;
    const { engine, sender, index, outlet, after } = this.sent;
    if (undecided === null) {
      if (encoded !== null) outlet.stored(index, encoded);
      after?.();
      return;
    }
    const { reply, now } = undecided;
    if (receipt !== null) this.settle(findLate(engine, sender, receipt, reply), now);
    else if (reply.type === "refused") this.refuse(reply, now);
  }

  fail(fault: unknown): void {
    this.sent.outlet.failed(fault);
    this.sent.after?.();
  }

  /** Its key or id is in the ledger. */
  settleRepeated(before: KnownReceipt): void {
    const { engine, sender } = this.sent;
    if (this.receipt !== null) this.settle(findRepeated(engine, sender.tenant, this.receipt, before), engine.now());
  }

  private refuse(refusal: Refusal, now: Millis): void {
    this.sent.outlet.refused(this.sent.index, refusal, now);
    this.sent.after?.();
  }

  private settle(finding: Promise<Finding>, now: Millis): void {
    const { index, outlet, after } = this.sent;
    finding.then(
      (found) => {
        if (found.type === "again") {
          this.receipt = found.receipt;
          return this.decide();
        }
        if (found.type === "refused") return this.refuse(found.refusal, now);
        outlet.stored(index, outlet.encode(found.stored, false));
        after?.();
      },
      (fault: unknown) => this.fail(fault),
    );
  }
}

async function findLate(
  { store }: Engine,
  { tenant, actor }: ReceiptSender,
  receipt: ReceiptInput,
  reply: Reply,
): Promise<Finding> {
  if (reply.type === "refused" && reply.code === "lease_unknown") {
    // Its lease has ended; history knows the task that it was on.
    const taskId = receipt.leaseId === null ? null : await taskOfEndedLease(store, tenant, receipt.leaseId);
    if (taskId === null || receipt.taskId !== null) return { type: "refused", refusal: reply };
    return { type: "again", receipt: { ...receipt, taskId } };
  }
  const command: SubmitReceipt = { type: "submit_receipt", tenant, actor, receipt, entropy: unstamped };
  const completed = await completeReply(store, command, reply);
  if (completed.type === "refused") return { type: "refused", refusal: completed };
  if (completed.type !== "receipt_known") throw new TypeError(`${completed.type} does not answer a receipt`);
  return storedAs({ store }, tenant, completed.receiptId);
}

/** R3: the key is in the ledger. The same content is the first receipt again; other content is refused. */
async function findRepeated(
  engine: Engine,
  tenant: string,
  receipt: ReceiptInput,
  before: KnownReceipt,
): Promise<Finding> {
  const marks = dedupeMarksOf(receipt);
  const ended = await findEndedTask(engine.store, tenant, before.taskId);
  const mark = ended?.dedupes.find(({ key }) => marks.includes(key));
  if (mark !== undefined) {
    const isSame = mark.fingerprint === receiptFingerprint(receipt);
    return isSame ? storedAs(engine, tenant, mark.receiptId) : conflict;
  }
  // Its task is alive, and the kernel knows the mark by now; or its task is forgotten, and only the ledger remembers.
  if (engine.peek((state) => isReceiptKnown(state, tenant, receipt))) return { type: "again", receipt };
  const stored = await findReceipt(engine.store, tenant, before.receiptId);
  return stored !== null && agrees(receipt, stored.receipt) ? { type: "stored", stored } : conflict;
}

const conflict: Finding = { type: "refused", refusal: dedupeConflict() };

async function storedAs({ store }: Pick<Engine, "store">, tenant: string, receiptId: string): Promise<Finding> {
  const stored = await findReceipt(store, tenant, receiptId);
  if (stored === null) throw new TypeError(`the ledger does not have ${receiptId}, which was answered before`);
  return { type: "stored", stored };
}

/** Whether all that was sent is what is stored; how the attempt was named is not part of the content. */
function agrees(sent: ReceiptInput, stored: object): boolean {
  const there = stored as Readonly<Record<string, unknown>>;
  return Object.entries(sent).every(([field, value]) => {
    if (value === null || value === undefined || notContent.has(field)) return true;
    return JSON.stringify(value) === JSON.stringify(there[field]);
  });
}

const notContent: ReadonlySet<string> = new Set(["leaseId", "fence", "receiptId", "tenantId", "obligationId"]);

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

function isKeyed(receipt: ReceiptInput | null): boolean {
  return receipt !== null && (receipt.dedupeKey !== null || receipt.receiptId !== null);
}

/** In order: those to be decided now, and those that repeat a mark of an earlier one. */
function splitRepeated(receipts: ReceiptItems, marks: readonly (readonly string[])[]) {
  const seen = new Set<string>();
  const first: number[] = [];
  const later: number[] = [];
  for (const [index, receipt] of receipts.entries()) {
    if (receipt === null) continue;
    const own = marks[index] ?? [];
    if (own.some((mark) => seen.has(mark))) later.push(index);
    else first.push(index);
    for (const mark of own) seen.add(mark);
  }
  return { first, later };
}

export function runReceipt({ service, command, respond }: RunRequest<SubmitReceipt>): null {
  const failed = (fault: unknown): void => respond(answerForFault(service, fault));
  const answered = (_index: number, answer: Answer): void => respond(answer);
  service.receipts.submit(command, [command.receipt], outletOf(service, receiptForm, answered, failed));
  return null;
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
  service.receipts.submit(
    command,
    good,
    outletOf(service, receiptMarkForm, set, (fault) => results.fail(fault)),
  );
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
