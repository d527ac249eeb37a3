/** Answers to many that came together, in their order, sent when the last one is there. */
import { type Answer, answer } from "../../protocol/answers/answer.ts";

export interface Gathering {
  add(index: number, status: number, body: string): void;
  settle(index: number, answered: Answer): void;
  /** What became of one is not known, so nothing is said of the others either; each can be sent again (S2). */
  readonly fail: (fault: unknown) => void;
}

export function createGathering(
  count: number,
  respond: (answer: Answer) => void,
  failed: (fault: unknown) => void,
): Gathering {
  const texts: string[] = new Array<string>(count).fill("");
  let left = count;
  let isOver = false;
  const add = (index: number, status: number, body: string): void => {
    texts[index] = `{"status":${status},"body":${body}}`;
    if (--left > 0 || isOver) return;
    respond(answer(200, `{"results":[${texts.join(",")}]}`));
  };
  return {
    add,
    settle: (index, { status, body }) => add(index, status, body),
    fail(fault) {
      if (isOver) return;
      isOver = true;
      failed(fault);
    },
  };
}
