/** An answer on its way out through code that can only throw: a body's parser, a question's run. */
import type { Answer } from "../../protocol/answers/answer.ts";

export class Refused extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super("refused");
    this.name = "Refused";
    this.answer = answer;
  }
}
