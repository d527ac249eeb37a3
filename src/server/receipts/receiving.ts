/** Receipts in, answers out: one with the whole receipt, many with what each sender needs to know. */
import type { SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { type Answer, answer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { SubmitReceipts } from "../../protocol/answers/queries.ts";
import { receiptMarkText, receiptText } from "../../protocol/receipts/receipt-json.ts";
import { receiptAnswer } from "../../protocol/tasks/task-replies.ts";
import type { Service } from "../service.ts";
import { createGathering } from "./gathering.ts";

type Respond = (answer: Answer) => void;
type Failed = (fault: unknown) => void;

export function submitReceipt(
  { receipts, tally }: Service,
  { tenant, actor, receipt }: SubmitReceipt,
  respond: Respond,
  failed: Failed,
): void {
  receipts.submit({ tenant, actor }, [receipt], {
    stored(_index, stored, created) {
      const text = receiptText(stored);
      return () => respond(answer(created ? 201 : 200, text));
    },
    refused(_index, refusal, now) {
      tally.note(refusal);
      respond(receiptAnswer(refusal, { now }));
    },
    answered(_index, answered) {
      tally.refuseWith(answered);
      respond(answered);
    },
    failed,
  });
}

export function submitReceipts(
  { receipts, tally }: Service,
  { tenant, actor, items }: SubmitReceipts,
  respond: Respond,
  failed: Failed,
): void {
  const gathering = createGathering(items.length, respond, failed);
  const good = items.map((item, index) => {
    if (item.ok) return item.value;
    tally.refuse(item.fault.code);
    gathering.settle(index, faultAnswer(item.fault));
    return null;
  });
  receipts.submit({ tenant, actor }, good, {
    stored(index, stored, created) {
      const text = receiptMarkText(stored);
      return () => gathering.add(index, created ? 201 : 200, text);
    },
    refused(index, refusal, now) {
      tally.note(refusal);
      gathering.settle(index, receiptAnswer(refusal, { now }));
    },
    answered(index, answered) {
      tally.refuseWith(answered);
      gathering.settle(index, answered);
    },
    failed: gathering.fail,
  });
}
