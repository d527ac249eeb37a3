/** Takes leases away. */
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { UsageProblem } from "../problem.ts";

export const revokeCommand: Command = {
  name: "revoke",
  summary: "takes leases away: one, all of an agent, or all under a prefix",
  usage: "LEASE | --agent ID | --prefix RES, --reason TEXT",
  words: [0, 1],
  about: "For operators and supervisors. The holders learn of it, and why, at once.",
  flags: {
    agent: { sign: "ID", words: "all leases of this agent" },
    prefix: { sign: "RES", words: "all leases under this name" },
    reason: { sign: "TEXT", words: "why, for the holders [revoked by an operator]" },
  },
  examples: [
    ["leasehold revoke lse_01jcs8qm5t6w8y0a --reason 'stuck'", "one lease"],
    ["leasehold revoke --prefix FILE:/shop/legacy --reason 'to be deleted'", "a whole folder"],
    ["leasehold revoke --agent refactorer-7", "whatever an agent holds"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const [lease] = words;
    const agent = call.text("agent");
    const prefix = call.text("prefix");
    const targets = {
      ...(lease !== undefined && { lease_id: lease }),
      ...(agent !== null && { agent_id: agent }),
      ...(prefix !== null && { resource_prefix: call.resource(prefix).replace(/\/\*\*$/, "") }),
    };
    if (Object.keys(targets).length !== 1)
      throw new UsageProblem("name one lease, or give one of --agent and --prefix");
    const client = await call.connect();
    const answer = await client.call("revoke", { ...targets, reason: call.text("reason") ?? "revoked by an operator" });
    out.show(answer, () => (answer.revoked === 1 ? "1 lease was revoked." : `${answer.revoked} leases were revoked.`));
    return exitCodes.done;
  },
};
