/**
 * Receipts on their way into the ledger, one or many. The kernel knows the keys of receipts about live tasks; whether a
 * key was used for a task that has ended, the ledger says (R3). So a receipt with a key is looked up before it is
 * submitted, and two with the same key go one after the other.
 */
import type { Engine } from "../../engine/engine.ts";
import { drawEntropy } from "../../engine/entropy.ts";
import type { Decided } from "../../engine/terms.ts";
import type { Actor } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { ReceiptInput, SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { dedupeMarksOf } from "../../kernel/receipts/receipt-content.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { ShownReceipt } from "../../protocol/receipts/receipt-json.ts";
import { KeyLookup } from "./dedupe-lookup.ts";
import { answerLate, answerRepeated, type Late, needsLook } from "./receipt-history.ts";

/** Told what became of each, by its place: stored, now or before, or refused, by the kernel or at the edge. */
export interface Heard {
  /** What it returns says so: a receipt is put into words when it is decided, and told of when it is durable. */
  stored(index: number, stored: ShownReceipt, created: boolean): () => void;
  refused(index: number, refusal: Refusal, now: Millis): void;
  answered(index: number, answer: Answer): void;
  /** What became of it is not known (S2). */
  failed(fault: unknown): void;
}

export interface ReceiptsAsked {
  readonly tenant: string;
  readonly actor: Actor;
}

/** null: one of them that is answered already. */
export type Receipts = readonly (ReceiptInput | null)[];

export interface ReceiptDesk {
  /** Decides them in their order, in one turn if none of them needs to be looked up. */
  submit(asked: ReceiptsAsked, receipts: Receipts, heard: Heard): void;
}

export function createReceiptDesk(engine: Engine): ReceiptDesk {
  const lookup = new KeyLookup(engine);

  /** With its marks in hand: nothing with one of them is under way. */
  function decide(asked: ReceiptsAsked, receipt: ReceiptInput, index: number, heard: Heard): void {
    const { tenant, actor } = asked;
    const command: SubmitReceipt = { type: "submit_receipt", tenant, actor, receipt, entropy: drawEntropy() };
    engine.prepare(
      command,
      (decided) => {
        const { reply, now } = decided;
        if (reply.type === "receipt") return heard.stored(index, sealedIn(decided), true);
        if (reply.type === "refused" && !needsLook(reply)) return () => heard.refused(index, reply, now);
        return () => {
          answerLate(engine, command, reply).then((found) => settle(asked, found, now, index, heard), heard.failed);
        };
      },
      heard.failed,
    );
  }

  function settle(asked: ReceiptsAsked, found: Late, now: Millis, index: number, heard: Heard): void {
    if (found.type === "again") decide(asked, found.receipt, index, heard);
    else if (found.type === "stored") heard.stored(index, found.stored, false)();
    else heard.refused(index, found.refusal, now);
  }

  /** Receipts of one call may share a mark; those that do wait for the first of them. */
  async function decideKeyed(
    asked: ReceiptsAsked,
    receipts: Receipts,
    marks: readonly (readonly string[])[],
    heard: Heard,
  ): Promise<void> {
    const { first, later } = splitRepeated(receipts, marks);
    const wanted = first.flatMap((index) => marks[index] ?? []);
    const release = await lookup.hold(asked.tenant, wanted);
    try {
      const known = await lookup.find(asked.tenant, wanted);
      await new Promise<void>((resolve) => {
        const counting = countdown(heard, first.length, resolve);
        for (const index of first) {
          const receipt = receipts[index];
          if (receipt === null || receipt === undefined) continue;
          const before = (marks[index] ?? []).map((mark) => known.get(mark)).find((one) => one !== undefined);
          if (before === undefined) decide(asked, receipt, index, counting);
          else {
            answerRepeated(engine, asked.tenant, receipt, before).then(
              (found) => settle(asked, found, engine.now(), index, counting),
              counting.failed,
            );
          }
        }
      });
    } finally {
      release();
    }
    for (const index of later) {
      const alone = receipts.map((receipt, place) => (place === index ? receipt : null));
      await decideKeyed(asked, alone, marks, heard);
    }
  }

  return {
    submit(asked, receipts, heard) {
      const good = receipts.map((receipt, index) => {
        if (receipt === null || receipt.tenantId === null || receipt.tenantId === asked.tenant) return receipt;
        heard.answered(index, tenantMismatch);
        return null;
      });
      if (good.some(isKeyed)) {
        const marks = good.map((receipt) => (receipt === null ? [] : unknownMarks(engine, asked.tenant, receipt)));
        if (marks.some((some) => some.length > 0)) {
          decideKeyed(asked, good, marks, heard).catch(heard.failed);
          return;
        }
      }
      for (const [index, receipt] of good.entries()) if (receipt !== null) decide(asked, receipt, index, heard);
    },
  };
}

const tenantMismatch = errorAnswer(
  "tenant_mismatch",
  "The receipt's tenant_id is not that of the credential; leave it out, or use the other tenant's credential.",
  { field: "tenant_id" },
);

/** A command adds what the rules call for beside its own receipt, which is the one in its reply. */
function sealedIn({ reply, receipts }: Decided): ShownReceipt {
  const sealed = reply.type === "receipt" ? receipts.find(({ receipt }) => receipt === reply.receipt) : undefined;
  if (sealed === undefined) throw new TypeError("a stored receipt has a place in the chain");
  return sealed;
}

function isKeyed(receipt: ReceiptInput | null): boolean {
  return receipt !== null && (receipt.dedupeKey !== null || receipt.receiptId !== null);
}

/** Marks that the kernel does not know; of those that it does, it says itself what they mean. */
function unknownMarks(engine: Engine, tenant: string, receipt: ReceiptInput): readonly string[] {
  const marks = dedupeMarksOf(receipt);
  if (marks.length === 0) return marks;
  const isKnown = engine.peek(({ tenants }) => {
    const dedupes = tenants.get(tenant)?.book.dedupes;
    return marks.some((mark) => dedupes?.has(mark) === true);
  });
  return isKnown ? [] : marks;
}

/** In order: those to be decided now, and those that repeat a mark of an earlier one. */
function splitRepeated(receipts: Receipts, marks: readonly (readonly string[])[]) {
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

/** The same, and a word when the last of them was heard of. */
function countdown(heard: Heard, count: number, last: () => void): Heard {
  let left = count;
  const after = (): void => {
    if (--left === 0) last();
  };
  return {
    stored(index, stored, created) {
      const say = heard.stored(index, stored, created);
      return () => {
        say();
        after();
      };
    },
    refused(index, refusal, now) {
      heard.refused(index, refusal, now);
      after();
    },
    answered(index, answer) {
      heard.answered(index, answer);
      after();
    },
    failed(fault) {
      heard.failed(fault);
      after();
    },
  };
}
