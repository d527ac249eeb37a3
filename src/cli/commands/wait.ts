/** Waits until names are free, and leaves them so: for an agent that was refused and has nothing else to do. */
import { acquire, collect, waitFlags, waitMsOf } from "../acquiring.ts";
import { register } from "../acting.ts";
import type { Command } from "../command.ts";
import { manifestFlags, readManifest } from "../manifest.ts";
import { untilStopped } from "../stop-signals.ts";

/** Long enough for the answer to arrive; then it is given back. */
const ttlMs = 10_000;

export const commands: readonly Command[] = [
  {
    name: "wait",
    summary: "waits until names are free, without keeping them",
    usage: "[-x|-s|-p P] RES… [-n|-w TIME]",
    words: [1, 256],
    about: `It stands in line as every request does, and ends the moment it could have had all of the names; then it gives them
back. The exit code is 0 once they are free, and 107 after --wait. Between its end and your next step another agent may be
quicker: to do something while nobody else can, use \`leasehold run\`.`,
    flags: { ...manifestFlags, ...waitFlags },
    examples: [
      ["leasehold wait src/auth.ts", "until nobody holds that file"],
      ["leasehold wait -w 10m src/ && git pull", "at most ten minutes"],
      ["leasehold wait -n src/auth.ts", "is it free right now?"],
    ],
    run: async (call) => {
      const intents = readManifest(call);
      const client = await call.connect();
      // As an agent of its own, which holds nothing, so that the request may stand by where it would get DIE (W14).
      const acting = await register(client, null);
      const actor = { client, ...acting };
      const claim = { intents, ttlMs, waitMs: waitMsOf(call), purpose: "waits until it is free", isNew: true };
      const { answer } = await untilStopped((givenUp) => acquire(actor, { ...claim, givenUp }, call.out));
      const { leases } = await collect(actor, answer);
      const ended = { agent_id: acting.agentId, to: "ABORTED" } as const;
      await client.call("transition_agent", ended, acting.token === null ? {} : { token: acting.token });
      const resources = leases.map(({ resource }) => resource);
      call.out.show(
        { free: true, resources },
        () => `${resources.join(", ")} ${resources.length === 1 ? "is" : "are"} free`,
      );
    },
  },
];
