/** Leases for a manifest, held until they are released or run out. */
import { acquire, collect, notGranted, waitFlags, waitMsOf } from "../acquiring.ts";
import { actingAgent, agentFlag, asAgent } from "../acting.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { blockedWords, leaseColumnsLong, noteChanges } from "../lease-words.ts";
import { anyFlag, manifestFlags, readChoice } from "../manifest.ts";
import { untilStopped } from "../stop-signals.ts";

const acquireCommand: Command = {
  name: "acquire",
  summary: "acquires leases and leaves them held: all of them, or none",
  usage: "[-x|-s|-p P] RES… [-n|-w TIME] [--ttl TIME] [--dry-run]",
  words: [1, 256],
  about: `The leases last for --ttl, and longer with \`leasehold renew\`; \`leasehold release\` ends them. To hold something
while a command runs, \`leasehold run\` is safer. Without --agent a new agent is registered; --json shows its token,
which is needed to act for it where the key may only register agents. What others changed while the agent waited, or
since it lost a lease, is printed to standard error, and is in --json as observation_update.`,
  flags: {
    ...manifestFlags,
    any: anyFlag,
    ...waitFlags,
    ttl: { sign: "TIME", words: "how long they last without a renewal [60s]" },
    agent: agentFlag,
    purpose: { sign: "TEXT", words: "why, for those whom it blocks" },
    "dry-run": { words: "show the verdict, and change nothing" },
  },
  examples: [
    ["leasehold acquire src/auth.ts", "to change one file of this repository"],
    ["leasehold acquire -x src/ -s FILE:/shop/docs/** --ttl 5m", "a folder to change and another to read, together"],
    ["leasehold acquire --dry-run -p DELETES old/", "would it be granted, and who is in the way?"],
    ["leasehold acquire --units 2 GPU:/rack-1/a100 --json", "two units of a counted resource"],
  ],
  run: async (call) => {
    const intents = readChoice(call);
    const client = await call.connect();
    const acting = await actingAgent(call, client);
    const purpose = call.text("purpose");
    const ttlMs = call.durationMs("ttl");
    const { out } = call;
    if (call.isSet("dry-run")) {
      const waitMs = waitMsOf(call);
      const wait = waitMs === Number.POSITIVE_INFINITY ? {} : { wait_timeout_ms: waitMs };
      const input = { agent_id: acting.agentId, intents, dry_run: true, ttl_ms: ttlMs, ...wait };
      const answer = await client.call("acquire", input, asAgent(acting)).catch((error: unknown) => {
        throw notGranted(error, exitCodes.notGranted);
      });
      out.show(answer, () =>
        answer.verdict === "GRANTED" ? "GRANTED" : `WAIT: ${blockedWords(answer.blocked_by, answer.blocked_by_total)}`,
      );
      return answer.verdict === "GRANTED" ? exitCodes.done : exitCodes.notGranted;
    }
    const actor = { client, ...acting };
    const { answer } = await untilStopped((givenUp) =>
      acquire(actor, { intents, ttlMs, waitMs: waitMsOf(call), purpose, givenUp, isNew: acting.isNew }, out),
    );
    const granted = await collect(actor, answer);
    for (const warning of granted.warnings) out.note(warning);
    const { agentId, token, isNew } = acting;
    out.show({ ...granted, agent_id: agentId, ...(isNew && { agent_token: token }) }, () =>
      out.table(granted.leases, leaseColumnsLong, ""),
    );
    noteChanges(out, granted);
    return exitCodes.done;
  },
};

export const commands: readonly Command[] = [acquireCommand];
