/** Receipts in, answers out: one with the whole receipt, many with what each sender needs to know. */
import type { SubmitReceipt } from "../../kernel/contract/task-commands.ts";
import { answer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { SubmitReceipts } from "../../protocol/answers/queries.ts";
import { receiptMarkText, receiptText } from "../../protocol/receipts/receipt-json.ts";
import { receiptAnswer } from "../../protocol/tasks/task-replies.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";

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
