/** Sequence numbers that are never given twice: the fence of a grant (L11). */
import { acquire, collect } from "../acquiring.ts";
import { register } from "../acting.ts";
import type { Command } from "../command.ts";
import { UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";

const ttlMs = 10_000;

export const commands: readonly Command[] = [
  {
    name: "next",
    summary: "prints a number that nobody else gets",
    usage: "NAME",
    about: `Each number is greater than all that were given before it, and none is given twice: not to two callers at the
same time, not after a crash, not from a restored backup. It is the fence of a grant on SEQUENCE:/NAME (L11), so there
are gaps: every grant of the tenant counts, and after a restore the numbers jump ahead.`,
    examples: [
      ["leasehold next migration", "for the name of a migration that nobody else takes"],
      ["git switch -c fix-$(leasehold next branch)", "a branch of its own for each agent"],
    ],
    run: async (call) => {
      if (!/^[\w.-]+(\/[\w.-]+)*$/.test(call.word)) {
        throw new UsageProblem("name the sequence in letters, digits, dots and dashes: `leasehold next migration`");
      }
      const client = await call.connect();
      const acting = await register(client, null);
      const actor = { client, ...acting };
      const intents = [{ predicate: "CONSUMES", resource: `SEQUENCE:/${call.word}` }] as const;
      const claim = { intents, ttlMs, waitMs: Number.POSITIVE_INFINITY, purpose: "a number", isNew: true };
      const { answer } = await untilStopped((givenUp) => acquire(actor, { ...claim, givenUp }, call.out));
      const { leases } = await collect(actor, answer);
      const ended = { agent_id: acting.agentId, to: "ABORTED" } as const;
      await client.call("transition_agent", ended, acting.token === null ? {} : { token: acting.token });
      const number = leases[0]?.fence ?? 0;
      call.out.show({ sequence: call.word, number }, () => String(number));
    },
  },
];
