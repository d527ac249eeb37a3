/** The truth about leases, and a code that says whether all of them can be used. */

import type { Client } from "../../sdk/client.ts";
import { agentFlag, agentNamed, agentToken } from "../acting.ts";
import type { Command } from "../command.ts";
import { showDuration } from "../durations.ts";
import { exitCodes } from "../exit-codes.ts";
import { isServerError, UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

interface Verified {
  readonly id: string;
  readonly state: string;
  readonly resource?: string;
  readonly fence?: number;
  readonly expires_in_ms?: number;
}

const columns: readonly Column<Verified>[] = [
  { title: "LEASE", cell: ({ id }) => id },
  { title: "STATE", cell: ({ state }) => state, colour: ({ state }) => (state === "ACTIVE" ? "green" : "red") },
  { title: "RESOURCE", cell: ({ resource = "" }) => resource, gives: "middle" },
  { title: "FENCE", cell: ({ fence }) => (fence === undefined ? "" : String(fence)) },
  { title: "LEFT", cell: ({ expires_in_ms: left = 0 }) => (left > 0 ? showDuration(left) : "-") },
];

const verifyCommand: Command = {
  name: "verify",
  summary: "tells whether leases can still be used; 7 if one cannot",
  usage: "[LEASE…] [--agent ID] [--fence N]",
  words: [0, 10_000],
  about: `With --agent it asks as that agent (VERIFY_ALL), for all its leases or for those that are named; that also ends a
restart. With --fence a lease counts only if it still has this fence: a script can so check, before it writes, that
nobody has taken its place.`,
  flags: { agent: agentFlag, fence: { sign: "N", words: "the fence that one lease must have" } },
  examples: [
    ["leasehold verify lse_01jcs8qm5t6w8y0a --fence 41", "may I still write?"],
    ["leasehold verify --agent refactorer-7", "what does it hold, truly?"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const agentId = agentNamed(call);
    const fence = call.integer("fence");
    if (words.length === 0 && agentId === null) throw new UsageProblem("name leases, or an agent with --agent");
    if (fence !== null && words.length !== 1) throw new UsageProblem("--fence is about one lease; name one");
    const client = await call.connect();
    const leases: readonly Verified[] =
      agentId === null
        ? await Promise.all(words.map((id) => lookUp(client, id)))
        : (
            await client.call(
              "verify_all",
              { agent_id: agentId, ...(words.length > 0 && { lease_ids: words }) },
              agentToken(call),
            )
          ).leases;
    const isGood = (one: Verified) => one.state === "ACTIVE" && (fence === null || one.fence === fence);
    const valid = leases.every(isGood);
    out.show({ valid, leases }, () => out.table(leases, columns, "The agent holds nothing."));
    if (!valid && fence !== null && leases[0]?.state === "ACTIVE") {
      out.note(`the lease has the fence ${leases[0].fence}, not ${fence}: it was issued again to another`);
    }
    return valid ? exitCodes.done : exitCodes.notSo;
  },
};

async function lookUp(client: Client, id: string): Promise<Verified> {
  try {
    return await client.call("get_lease", { lease_id: id });
  } catch (error) {
    if (isServerError(error) && error.code === "lease_unknown") return { id, state: "UNKNOWN" };
    throw error;
  }
}

export const commands: readonly Command[] = [verifyCommand];
