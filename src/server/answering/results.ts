/** The results of many items that came together, in their order; they leave when the last one is there. */
import { type Answer, answer } from "../../protocol/answers/answer.ts";
import type { Service } from "../service.ts";
import { answerForFault } from "./faults.ts";

export class Results {
  private readonly service: Service;
  private readonly respond: (answer: Answer) => void;
  private readonly texts: string[];
  private left: number;
  private isOver = false;

  constructor(service: Service, count: number, respond: (answer: Answer) => void) {
    this.service = service;
    this.respond = respond;
    this.texts = new Array<string>(count).fill("");
    this.left = count;
  }

  set(index: number, { status, body }: Pick<Answer, "status" | "body">): void {
    this.texts[index] = `{"status":${status},"body":${body}}`;
    if (--this.left === 0 && !this.isOver) this.respond(answer(200, `{"results":[${this.texts.join(",")}]}`));
  }

  /** The outcome of one is unknown, so nothing is said of the others either; each can be sent again (S2). */
  fail(fault: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.respond(answerForFault(this.service, fault));
  }
}
