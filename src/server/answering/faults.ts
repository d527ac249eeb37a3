/** From a fault to the answer that its caller gets. */
import { DatabaseUnavailable, OutOfMemory, ShuttingDown } from "../../engine/engine-types.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { StoreFault } from "../../store/faults.ts";
import type { Service } from "../service.ts";

/** An answer on its way out through code that can only throw: a body's parser, a query. */
export class Refused extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super("refused");
    this.name = "Refused";
    this.answer = answer;
  }
}

/** An unexpected fault is logged; its caller learns only that there was one. */
export function answerForFault({ counts, log }: Pick<Service, "counts" | "log">, fault: unknown): Answer {
  const answer = answerFor(fault);
  counts.refuse(answer.code);
  if (answer.code === "internal_error") log.error({ err: fault }, "a command failed for a reason that is not its own");
  return answer;
}

function answerFor(fault: unknown): Answer {
  if (fault instanceof Refused) return fault.answer;
  if (fault instanceof ShuttingDown) return errorAnswer("shutting_down", sentence(fault.message), soon);
  if (fault instanceof OutOfMemory) return errorAnswer("memory_exhausted", sentence(fault.message), soon);
  // A StoreFault comes from reading history, which does not go through the engine.
  if (fault instanceof DatabaseUnavailable || fault instanceof StoreFault)
    return errorAnswer("database_unavailable", sentence(new DatabaseUnavailable().message), soon);
  return internalError;
}

export const internalError = errorAnswer("internal_error", "Something is wrong with the server; its log says what.");

/** An engine that starts over is usually back within a second. */
const soon = { retry_after_ms: 1_000 };

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
