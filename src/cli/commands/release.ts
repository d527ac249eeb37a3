/** Gives leases back. */
import { agentFlag, agentNamed, agentToken } from "../acting.ts";
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { UsageProblem } from "../problem.ts";

export const releaseCommand: Command = {
  name: "release",
  summary: "gives leases back; what has ended already is no error",
  usage: "LEASE… | --all --agent ID",
  words: [0, 10_000],
  about:
    "With --report the next holder, and whoever resumes later, learns what became of it: a hash, a commit, any text.",
  flags: {
    all: { words: "all leases of the agent" },
    agent: agentFlag,
    report: { sign: "TEXT", words: "what the resource is now" },
  },
  examples: [
    ["leasehold release lse_01jcs8qm5t6w8y0a", "one lease"],
    ["leasehold release lse_01jcs8qm5t6w8y0a --report sha256:9f2c", "and what became of the file"],
    ["leasehold release --all --agent refactorer-7", "whatever an agent holds"],
  ],
  run: async (call) => {
    const { words, out } = call;
    if (call.isSet("all") === words.length > 0) throw new UsageProblem("name leases, or give --all with --agent");
    const client = await call.connect();
    const version = call.text("report");
    const options = agentToken(call);
    const agentId = agentNamed(call);
    const ended: { readonly id: string; readonly state: string }[] = [];
    if (call.isSet("all")) {
      if (agentId === null) throw new UsageProblem("--all takes --agent: whose leases?");
      ended.push(...(await client.call("release_all", { agent_id: agentId }, options)).leases);
    } else {
      for (const id of words) {
        ended.push(await client.call("release_lease", { lease_id: id, ...(version !== null && { version }) }, options));
      }
    }
    out.show({ leases: ended }, () =>
      out.table(
        ended,
        [
          { title: "LEASE", cell: ({ id }) => id },
          { title: "STATE", cell: ({ state }) => state },
        ],
        "The agent holds nothing.",
      ),
    );
    return exitCodes.done;
  },
};
