/** What is done with leases that are held: renewed, released, transferred, revoked. */
import type { Lease } from "../../sdk/wire.ts";
import { agentFlag, agentNamed, agentToken } from "../acting.ts";
import type { Call, Command, Flags } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { leaseColumnsLong, noteChanges } from "../lease-words.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const endColumns: readonly Column<{ readonly id: string; readonly state: string }>[] = [
  { title: "LEASE", cell: ({ id }) => id },
  { title: "STATE", cell: ({ state }) => state },
];

const allFlags: Flags = { all: { words: "all leases of the agent" }, agent: agentFlag };

/** The agent whose leases are all meant; null where leases are named. */
function agentOfAll(call: Call): string | null {
  const isAll = call.isSet("all");
  if (isAll === call.words.length > 0) throw new UsageProblem("name leases, or give --all with --agent");
  const agentId = agentNamed(call);
  if (isAll && agentId === null) throw new UsageProblem("--all takes --agent: whose leases?");
  return isAll ? agentId : null;
}

export const commands: readonly Command[] = [
  {
    name: "renew",
    summary: "extends leases by their ttl from now",
    usage: "LEASE… | --all --agent ID",
    words: [0, 10_000],
    about: `With --reissue a lease is issued again instead: same id, next generation, new fence; the old fence and token are
stale. Leases on bound resources can only be renewed so.`,
    flags: {
      ...allFlags,
      reissue: { words: "issue again, with a new fence" },
      activity: { words: "report activity too, for idle detection" },
    },
    examples: [
      ["leasehold renew lse_01jcs8qm5t6w8y0a", "for another ttl, from now"],
      ["leasehold renew --all --agent refactorer-7", "all that an agent holds"],
      ["leasehold renew lse_01jcs8qm5t6w8y0a --reissue --json", "with a new fence"],
    ],
    run: async (call) => {
      const { out } = call;
      const options = agentToken(call);
      const activity = call.isSet("activity");
      const agentId = agentOfAll(call);
      if (agentId !== null) {
        const answer = await call.ask("heartbeat_all", { agent_id: agentId, activity }, options);
        out.show(answer, () => out.table(answer.leases, leaseColumnsLong, "The agent holds nothing."));
        noteChanges(out, answer);
        return answer.lost.length > 0 ? exitCodes.failed : exitCodes.done;
      }
      const leases: Lease[] = [];
      for (const id of call.words) {
        const kept = call.isSet("reissue")
          ? await call.ask("renew_lease", { lease_id: id }, options)
          : await call.ask("heartbeat", { lease_id: id, activity }, options);
        leases.push(kept);
        noteChanges(out, kept);
      }
      out.show({ leases }, () => out.table(leases, leaseColumnsLong, ""));
      return exitCodes.done;
    },
  },
  {
    name: "release",
    summary: "releases leases; one that has ended already is not an error",
    usage: "LEASE… | --all --agent ID",
    words: [0, 10_000],
    about: "With --report the next holder learns the resource's version: a hash, a commit, any text.",
    flags: { ...allFlags, report: { sign: "TEXT", words: "the resource's version now" } },
    examples: [
      ["leasehold release lse_01jcs8qm5t6w8y0a", "one lease"],
      ["leasehold release lse_01jcs8qm5t6w8y0a --report sha256:9f2c", "and the file's version"],
      ["leasehold release --all --agent refactorer-7", "all that an agent holds"],
    ],
    run: async (call) => {
      const version = call.text("report");
      const options = agentToken(call);
      const agentId = agentOfAll(call);
      const leases: { readonly id: string; readonly state: string }[] = [];
      if (agentId !== null) leases.push(...(await call.ask("release_all", { agent_id: agentId }, options)).leases);
      for (const id of call.words) leases.push(await call.ask("release_lease", { lease_id: id, version }, options));
      call.out.show({ leases }, () => call.out.table(leases, endColumns, "The agent holds nothing."));
    },
  },
  {
    name: "transfer",
    summary: "hands a lease to another agent, with a new fence",
    usage: "LEASE AGENT",
    about: "With --report others learn the resource's version, as with `leasehold release`.",
    flags: { report: { sign: "TEXT", words: "the resource's version now" } },
    examples: [
      ["leasehold transfer lse_01jcs8qm5t6w8y0a reviewer-2", "the reviewer goes on where this agent stops"],
      ["leasehold transfer lse_01jcs8qm5t6w8y0a reviewer-2 --report sha256:9f2c", "and the file's version"],
    ],
    run: async (call) => {
      const [leaseId = "", toAgentId = ""] = call.words;
      const input = { lease_id: leaseId, to_agent_id: toAgentId, version: call.text("report") };
      call.out.row(await call.ask("transfer_lease", input, agentToken(call)), leaseColumnsLong);
    },
  },
  {
    name: "revoke",
    summary: "revokes leases: one, all of an agent, or all under a prefix",
    usage: "LEASE | --agent ID | --prefix RES, --reason TEXT",
    about: "For operators and supervisors. The holders are notified at once, with the reason.",
    flags: {
      agent: { sign: "ID", names: "agent", words: "all leases of this agent" },
      prefix: { sign: "RES", words: "all leases under this name" },
      reason: { sign: "TEXT", words: "why, for the holders [revoked by an operator]" },
    },
    examples: [
      ["leasehold revoke lse_01jcs8qm5t6w8y0a --reason 'stuck'", "one lease"],
      ["leasehold revoke --prefix FILE:/shop/legacy --reason 'to be deleted'", "a whole folder"],
      ["leasehold revoke --agent refactorer-7", "all that an agent holds"],
    ],
    run: async (call) => {
      const agent = call.text("agent");
      const prefix = call.text("prefix");
      const targets = {
        ...(call.word !== "" && { lease_id: call.word }),
        ...(agent !== null && { agent_id: agent }),
        ...(prefix !== null && { resource_prefix: call.resource(prefix).replace(/\/\*\*$/, "") }),
      };
      if (Object.keys(targets).length !== 1)
        throw new UsageProblem("name one lease, or give one of --agent and --prefix");
      const answer = await call.ask("revoke", { ...targets, reason: call.text("reason") ?? "revoked by an operator" });
      call.out.show(answer, () =>
        answer.revoked === 1 ? "1 lease was revoked." : `${answer.revoked} leases were revoked.`,
      );
    },
  },
];
