/** Agents: which there are, their checkpoints, and what can be done about them. */
import { wireAgentStates } from "../../protocol/schema/vocabulary.ts";
import type { Agent } from "../../sdk/wire.ts";
import { agentToken } from "../acting.ts";
import { agentsPart, doingColumns, listedAgents, readAgents } from "../agent-doing.ts";
import type { Command } from "../command.ts";
import { longFlag } from "../lease-words.ts";
import { limitFlag, listText, showList } from "../pages.ts";
import { plain } from "../plain-text.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";
import { PartState } from "../watch/part.ts";
import { watchFlag, watchLists } from "../watch/watch.ts";

const columns: readonly Column<Agent>[] = [
  { title: "AGENT", cell: ({ agent_id: id }) => id, gives: "end", last: true },
  { title: "STATE", cell: ({ state, paused_by_operator: paused }) => (paused ? `${state}, paused` : state) },
  { title: "PRIORITY", cell: ({ priority_timestamp: priority }) => String(priority) },
  { title: "EPOCH", cell: ({ epoch }) => String(epoch) },
  { title: "DIED", cell: ({ attempts }) => String(attempts) },
  { title: "SINCE", cell: ({ registered_at: at }) => at },
  { title: "LABELS", cell: ({ labels }) => labelsText(labels), gives: "end" },
];

function labelsText(labels: Agent["labels"]): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

export const commands: readonly Command[] = [
  {
    name: "agents",
    summary: "lists agents, or shows one",
    names: "agent",
    usage: "[ID] [--state STATE] [--all] [--watch]",
    about: `Agents that have ended are shown with --all, or with their --state. A terminal shows what each does: who holds,
waits, stands by, or got DIE and when it comes back; -l shows priorities, epochs and dates.`,
    flags: {
      state: { sign: "STATE", words: `only in this state: ${wireAgentStates.join(", ")}`, choices: wireAgentStates },
      all: { words: "those that have ended too" },
      long: longFlag,
      watch: watchFlag,
      limit: limitFlag,
    },
    examples: [
      ["leasehold agents", "all of them"],
      ["leasehold agents --state PAUSED", "which are held up?"],
      ["leasehold agents --watch", "who does what, as it changes"],
      ["leasehold agents refactorer-7 --json", "one, for a script"],
    ],
    run: async (call) => {
      const { out } = call;
      const state = call.choice("state", wireAgentStates);
      if (call.word !== "") {
        if (call.isSet("watch"))
          throw new UsageProblem("--watch is of the list; `leasehold events -f --agent ID` follows one");
        return out.row(await call.ask("get_agent", { agent_id: call.word }), columns);
      }
      const isListed = listedAgents(state, state !== null || call.isSet("all"));
      const isShort = out.isTerminal && !call.isSet("long");
      if (call.isSet("watch"))
        return watchLists(call, { lists: [new PartState(agentsPart(call, state, isListed, isShort))] });
      if (isShort) {
        const read = await readAgents(call, state, isListed);
        return void out.print(listText(call, read, doingColumns, "There are no agents."));
      }
      return showList(call, "agents", columns, "There are no agents.", async (page) => {
        const answer = await call.ask("list_agents", { ...page, state });
        return { ...answer, agents: answer.agents.filter(isListed) };
      });
    },
  },
  {
    name: "agents register",
    summary: "registers an agent, or takes one up, and shows its token",
    names: "agent",
    usage: "[ID] [--label NAME=VALUE]",
    about: "A known id is taken up: its older instance is refused from then on, and its leases get new fences.",
    flags: { label: { sign: "NAME=VALUE", words: "a label", many: true } },
    examples: [
      ["leasehold agents register refactorer-7 --label model=opus --json", "and its token, for LEASEHOLD_AGENT_TOKEN"],
    ],
    run: async (call) => {
      const labels = Object.fromEntries(call.texts("label").map(readLabel));
      const agent = await call.ask("register_agent", {
        ...(call.word !== "" && { agent_id: call.word }),
        ...(Object.keys(labels).length > 0 && { labels }),
      });
      call.out.show(agent, () => `${agent.agent_id}\n${agent.agent_token}`);
    },
  },
  {
    name: "agents restart",
    summary: "announces that an agent restarts: leases that it misses meanwhile are held for it",
    usage: "ID",
    names: "agent",
    about:
      "For 15 s after its expiry a missed lease is reserved and not honoured (L9). The agent ends this with verify-all " +
      "(`leasehold verify`), and its next heartbeats or renewals revive what was held.",
    examples: [["leasehold agents restart refactorer-7", "before a supervisor restarts it"]],
    run: async (call) => call.out.row(await call.ask("restart_agent", { agent_id: call.word }), columns),
  },
  {
    name: "agents pause",
    summary: "pauses an agent: what it acquires is answered PAUSED",
    usage: "ID",
    names: "agent",
    about: "What it holds stays. `leasehold agents unpause` ends the pause.",
    examples: [["leasehold agents pause refactorer-7", "until somebody has checked it"]],
    run: async (call) => call.out.row(await call.ask("pause_agent", { agent_id: call.word }), columns),
  },
  {
    name: "agents unpause",
    summary: "ends an agent's pause",
    usage: "ID",
    names: "agent",
    examples: [["leasehold agents unpause refactorer-7", "go on"]],
    run: async (call) => call.out.row(await call.ask("unpause_agent", { agent_id: call.word }), columns),
  },
  {
    name: "digest",
    summary: "shows an agent's checkpoint: where it would resume",
    usage: "AGENT",
    examples: [
      ["leasehold digest refactorer-7", "where did it stop?"],
      ["leasehold digest refactorer-7 --json | jq .context", "what it had saved"],
    ],
    run: async (call) => {
      const digest = await call.ask("get_digest", { agent_id: call.word }, agentToken(call));
      call.out.show(digest, () =>
        [
          `checkpoint  ${plain(digest.checkpoint_id)}, saved ${digest.saved_at}`,
          `resumes at  ${plain(digest.resume_point)}`,
          `on conflict ${digest.resolution_strategy}`,
          `priority    ${digest.priority_timestamp}`,
          ...digest.intent_backlog.map(({ predicate, resource }) => `intends     ${plain(`${predicate} ${resource}`)}`),
          `context     ${plain(JSON.stringify(digest.context))}`,
        ].join("\n"),
      );
    },
  },
];

function readLabel(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageProblem(`--label is "${text}"; give NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}
