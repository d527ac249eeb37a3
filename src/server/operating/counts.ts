/** Counts of what was decided, kept as plain numbers because every request counts. */
import type { Reply } from "../../kernel/contract/replies.ts";

export class Counts {
  /** Answers to an acquire, or to the question about its request. */
  readonly verdicts = { granted: 0, waiting: 0, died: 0, paused: 0 };
  /** By code: the kernel's refusals, and those of the edge itself. */
  readonly refusals = new Map<string, number>();

  note(reply: Reply): void {
    switch (reply.type) {
      case "granted":
      case "waiting":
      case "died":
      case "paused":
        this.verdicts[reply.type]++;
        break;
      case "refused":
        this.refuse(reply.code);
    }
  }

  /** Null is an answer that is not an error. */
  refuse(code: string | null): void {
    if (code !== null) this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
  }
}
