/** What was decided, counted as it happens: plain numbers, so that counting costs next to nothing. */
import type { Reply } from "../../kernel/contract/replies.ts";
import type { Answer } from "../../protocol/answers/answer.ts";

export interface Tally {
  /** Answers to an acquire, or to the question after its request. */
  readonly verdicts: { granted: number; waiting: number; died: number; paused: number };
  readonly leasesGranted: { total: number };
  /** By code: the kernel's refusals, and those of the edge itself. */
  readonly refusals: Map<string, number>;
  note(reply: Reply): void;
  refuse(code: string): void;
  /** Counts an answer of the edge by the code in its body. */
  refuseWith(answer: Answer): void;
}

export function createTally(): Tally {
  const verdicts = { granted: 0, waiting: 0, died: 0, paused: 0 };
  const leasesGranted = { total: 0 };
  const refusals = new Map<string, number>();
  const refuse = (code: string): void => {
    refusals.set(code, (refusals.get(code) ?? 0) + 1);
  };
  return {
    verdicts,
    leasesGranted,
    refusals,
    refuse,
    note(reply) {
      switch (reply.type) {
        case "granted":
          verdicts.granted++;
          leasesGranted.total += reply.leases.length;
          break;
        case "waiting":
        case "died":
        case "paused":
          verdicts[reply.type]++;
          break;
        case "refused":
          refuse(reply.code);
      }
    },
    refuseWith({ body }) {
      const { error } = JSON.parse(body) as { readonly error?: string };
      if (error !== undefined) refuse(error);
    },
  };
}
