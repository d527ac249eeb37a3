/** The results of many items that came together, in their order; they leave when the last one is there. */
import { type Answer, answer, bodyObject, bodyText } from "../../protocol/answers/answer.ts";
import type { Form } from "../../protocol/schema/convert.ts";
import type { Service } from "../service.ts";
import { answerForFault } from "./faults.ts";

const resultsForm: Form<readonly Answer[]> = {
  text: (answers) =>
    `{"results":[${answers.map((one) => `{"status":${one.status},"body":${bodyText(one)}}`).join(",")}]}`,
  object: (answers) => ({ results: answers.map((one) => ({ status: one.status, body: bodyObject(one) })) }),
};

export class Results {
  private readonly service: Service;
  private readonly respond: (answer: Answer) => void;
  private readonly answers: Answer[];
  private left: number;
  /** The caller has its answer, that the outcome is unknown: nothing more need be done. */
  isOver = false;

  constructor(service: Service, count: number, respond: (answer: Answer) => void) {
    this.service = service;
    this.respond = respond;
    this.answers = new Array<Answer>(count);
    this.left = count;
  }

  set(index: number, one: Answer): void {
    this.answers[index] = one;
    if (--this.left === 0 && !this.isOver) this.respond(answer(200, resultsForm, this.answers));
  }

  /** The outcome of one is unknown, so nothing is said of the others either; each can be sent again (S2). */
  fail(fault: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.respond(answerForFault(this.service, fault));
  }
}
