/** Keeps leases alive. */
import type { Lease } from "../../sdk/wire.ts";
import { agentFlag, agentNamed, agentToken } from "../acting.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { leaseColumns } from "../lease-words.ts";
import { UsageProblem } from "../problem.ts";

export const renewCommand: Command = {
  name: "renew",
  summary: "extends leases by their ttl from now",
  usage: "LEASE… | --all --agent ID",
  words: [0, 10_000],
  about: `With --reissue a lease is issued anew instead: same id, next generation, new fence; what was proved with the old
one is stale. Leases on bound resources can only be renewed so.`,
  flags: {
    all: { words: "all leases of the agent" },
    agent: agentFlag,
    reissue: { words: "issue anew, with a new fence" },
    activity: { words: "report activity too, for idle detection" },
  },
  examples: [
    ["leasehold renew lse_01jcs8qm5t6w8y0a", "so long again, from now"],
    ["leasehold renew --all --agent refactorer-7", "whatever an agent holds"],
    ["leasehold renew lse_01jcs8qm5t6w8y0a --reissue --json", "with a new fence"],
  ],
  run: async (call) => {
    const { words, out } = call;
    if (call.isSet("all") === words.length > 0) throw new UsageProblem("name leases, or give --all with --agent");
    const client = await call.connect();
    const options = agentToken(call);
    const activity = call.isSet("activity");
    const agentId = agentNamed(call);
    if (call.isSet("all")) {
      if (agentId === null) throw new UsageProblem("--all takes --agent: whose leases?");
      const answer = await client.call("heartbeat_all", { agent_id: agentId, activity }, options);
      out.show(answer, () => out.table(answer.leases, leaseColumns, "The agent holds nothing."));
      return answer.lost.length > 0 ? exitCodes.failed : exitCodes.done;
    }
    const leases: Lease[] = [];
    for (const id of words) {
      leases.push(
        call.isSet("reissue")
          ? await client.call("renew_lease", { lease_id: id }, options)
          : await client.call("heartbeat", { lease_id: id, activity }, options),
      );
    }
    out.show({ leases }, () => out.table(leases, leaseColumns, ""));
    return exitCodes.done;
  },
};
