/** Hands a lease on. */
import { agentToken } from "../acting.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { leaseColumns } from "../lease-words.ts";

export const transferCommand: Command = {
  name: "transfer",
  summary: "hands a lease to another agent, with a new fence",
  usage: "LEASE AGENT",
  words: [2, 2],
  flags: {},
  examples: [["leasehold transfer lse_01jcs8qm5t6w8y0a reviewer-2", "the reviewer goes on where this agent stops"]],
  run: async (call) => {
    const { words, out } = call;
    const [leaseId = "", toAgentId = ""] = words;
    const client = await call.connect();
    const lease = await client.call("transfer_lease", { lease_id: leaseId, to_agent_id: toAgentId }, agentToken(call));
    out.show(lease, () => out.table([lease], leaseColumns, ""));
    return exitCodes.done;
  },
};
