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
import { receiptMarkText, receiptText, type ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import { receiptAnswer } from "../../protocol/tasks/task-json.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";
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
    for (const [index, receipt] of good.entries())
      if (receipt !== null) this.decide(sender, receipt, index, outlet, null);
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
          if (before === undefined) this.decide(sender, receipt, index, outlet, after);
          else new Submission(this.engine, sender, receipt, index, outlet, after).settleRepeated(before);
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

  private decide<T>(
    sender: ReceiptSender,
    receipt: ReceiptInput,
    index: number,
    outlet: ReceiptOutlet<T>,
    after: (() => void) | null,
  ): void {
    new Submission(this.engine, sender, receipt, index, outlet, after).decide();
  }
}

/** What history and the ledger say about a receipt that came late, or was sent before (T13, R3). */
type Finding =
  | { readonly type: "stored"; readonly stored: ShownReceipt }
  | { readonly type: "refused"; readonly refusal: Refusal }
  /** To be submitted once more, in this form. */
  | { readonly type: "again"; readonly receipt: ReceiptInput };

/** One receipt. What it returns from `encode` is kept until the commit: the receipt itself is not (0013). */
class Submission<T> implements Outlet<T | Undecided> {
  private readonly engine: Engine;
  private readonly sender: ReceiptSender;
  private readonly index: number;
  private readonly outlet: ReceiptOutlet<T>;
  private readonly after: (() => void) | null;
  private receipt: ReceiptInput | null;

  constructor(
    engine: Engine,
    sender: ReceiptSender,
    receipt: ReceiptInput,
    index: number,
    outlet: ReceiptOutlet<T>,
    after: (() => void) | null,
  ) {
    this.engine = engine;
    this.sender = sender;
    this.receipt = receipt;
    this.index = index;
    this.outlet = outlet;
    this.after = after;
  }

  /** With its marks in hand: nothing with one of them is under way. */
  decide(): void {
    const { receipt, sender } = this;
    if (receipt === null) throw new TypeError("a receipt is decided once");
    const { tenant, actor } = sender;
    this.engine.submit({ type: "submit_receipt", tenant, actor, receipt, entropy: unstamped }, this);
  }

  encode(decided: Decision): T | Undecided {
    const { reply, now } = decided;
    const { receipt } = this;
    if (reply.type === "receipt") {
      this.receipt = null;
      return this.outlet.encode(sealedIn(decided), true);
    }
    const isFinal = reply.type === "refused" && reply.code !== "task_unknown" && reply.code !== "lease_unknown";
    return new Undecided(reply, now, isFinal ? null : receipt);
  }

  send(encoded: T | Undecided): void {
    if (!(encoded instanceof Undecided)) {
      this.outlet.stored(this.index, encoded);
      this.after?.();
      return;
    }
    const { reply, now, receipt } = encoded;
    if (receipt !== null) this.settle(findLate(this.engine, this.sender, receipt, reply), now);
    else if (reply.type === "refused") this.refuse(reply, now);
  }

  fail(fault: unknown): void {
    this.outlet.failed(fault);
    this.after?.();
  }

  /** Its key or id is in the ledger. */
  settleRepeated(before: KnownReceipt): void {
    const { engine, sender, receipt } = this;
    if (receipt !== null) this.settle(findRepeated(engine, sender.tenant, receipt, before), engine.now());
  }

  private refuse(refusal: Refusal, now: Millis): void {
    this.outlet.refused(this.index, refusal, now);
    this.after?.();
  }

  private settle(finding: Promise<Finding>, now: Millis): void {
    finding.then(
      (found) => {
        if (found.type === "again") {
          this.receipt = found.receipt;
          return this.decide();
        }
        if (found.type === "stored") this.outlet.stored(this.index, this.outlet.encode(found.stored, false));
        else return this.refuse(found.refusal, now);
        this.after?.();
      },
      (fault: unknown) => this.fail(fault),
    );
  }
}

/** `receipt` is null where the refusal is final. */
class Undecided {
  readonly reply: Reply;
  readonly now: Millis;
  readonly receipt: ReceiptInput | null;

  constructor(reply: Reply, now: Millis, receipt: ReceiptInput | null) {
    this.reply = reply;
    this.now = now;
    this.receipt = receipt;
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
  const { receipts, counts } = service;
  receipts.submit(command, [command.receipt], {
    encode: (stored, created) => answer(created ? 201 : 200, receiptText(stored)),
    stored: (_index, answered) => respond(answered),
    refused(_index, refusal, now) {
      counts.refuse(refusal.code);
      respond(receiptAnswer(refusal, { now }));
    },
    answered(_index, answered) {
      counts.refuse(answered.code);
      respond(answered);
    },
    failed: (fault) => respond(answerForFault(service, fault)),
  });
  return null;
}

export function runReceipts({ service, command, respond }: RunRequest<SubmitReceipts>): null {
  const { receipts, counts } = service;
  const { items } = command;
  const results = new Results(service, items.length, respond);
  const good = items.map((item, index) => {
    if (item.ok) return item.value;
    counts.refuse(item.fault.code);
    results.set(index, faultAnswer(item.fault));
    return null;
  });
  receipts.submit(command, good, {
    encode: (stored, created) => answer(created ? 201 : 200, receiptMarkText(stored)),
    stored: (index, answered) => results.set(index, answered),
    refused(index, refusal, now) {
      counts.refuse(refusal.code);
      results.set(index, receiptAnswer(refusal, { now }));
    },
    answered(index, answered) {
      counts.refuse(answered.code);
      results.set(index, answered);
    },
    failed: (fault) => results.fail(fault),
  });
  return null;
}
