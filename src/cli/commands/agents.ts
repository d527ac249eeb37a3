/** Agents: who there is, and what can be done about them. */
import { wireAgentStates } from "../../protocol/schema/vocabulary.ts";
import type { Agent } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<Agent>[] = [
  { title: "AGENT", cell: ({ agent_id: id }) => id, gives: "end" },
  { title: "STATE", cell: ({ state, paused_by_operator: paused }) => (paused ? `${state}, paused` : state) },
  { title: "PRIORITY", cell: ({ priority_timestamp: priority }) => String(priority) },
  { title: "EPOCH", cell: ({ epoch }) => String(epoch) },
  { title: "DIED", cell: ({ attempts }) => String(attempts) },
  { title: "SINCE", cell: ({ registered_at: at }) => at },
  {
    title: "LABELS",
    cell: ({ labels }) =>
      Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
    gives: "end",
  },
];

function show(call: Call, agent: Agent): number {
  call.out.show(agent, () => call.out.table([agent], columns, ""));
  return exitCodes.done;
}

export const agentsCommand: Command = {
  name: "agents",
  summary: "lists agents, or shows one",
  usage: "[ID] [--state STATE]",
  words: [0, 1],
  flags: { state: { sign: "STATE", words: `only in this state: ${wireAgentStates.join(", ")}` }, limit: limitFlag },
  examples: [
    ["leasehold agents", "all of them"],
    ["leasehold agents --state PAUSED", "who is held up?"],
    ["leasehold agents refactorer-7 --json", "one, for a script"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const [id] = words;
    const state = call.choice("state", wireAgentStates);
    const limit = limitOf(call);
    const client = await call.connect();
    if (id !== undefined) return show(call, await client.call("get_agent", { agent_id: id }));
    const { items, hasMore } = await listAll(
      limit,
      (page) => client.call("list_agents", { ...page, ...(state !== null && { state }) }),
      (page) => page.agents,
    );
    out.show(
      { agents: items, has_more: hasMore },
      () => `${out.table(items, columns, "There are no agents.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};

export const agentsRegisterCommand: Command = {
  name: "agents register",
  summary: "registers an agent, or takes one up, and shows its token",
  usage: "[ID] [--label NAME=VALUE]",
  words: [0, 1],
  about:
    "An id that is known already is taken up: its older instance is refused from then on, and its leases get new fences.",
  flags: { label: { sign: "NAME=VALUE", words: "a label", many: true } },
  examples: [
    ["leasehold agents register refactorer-7 --label model=opus --json", "and its token, for LEASEHOLD_AGENT_TOKEN"],
  ],
  run: async (call) => {
    const { words, out } = call;
    const [id] = words;
    const labels = Object.fromEntries(call.texts("label").map(readLabel));
    const client = await call.connect();
    const agent = await client.call("register_agent", {
      ...(id !== undefined && { agent_id: id }),
      ...(Object.keys(labels).length > 0 && { labels }),
    });
    out.show(agent, () => `${agent.agent_id}\n${agent.agent_token}`);
    return exitCodes.done;
  },
};

export const agentsPauseCommand: Command = {
  name: "agents pause",
  summary: "pauses an agent: what it acquires is answered PAUSED",
  usage: "ID",
  words: [1, 1],
  about: "What it holds stays. `leasehold agents unpause` lets it go on.",
  flags: {},
  examples: [["leasehold agents pause refactorer-7", "until somebody has looked at it"]],
  run: async (call) => show(call, await (await call.connect()).call("pause_agent", { agent_id: call.words[0] ?? "" })),
};

export const agentsUnpauseCommand: Command = {
  name: "agents unpause",
  summary: "lets a paused agent go on",
  usage: "ID",
  words: [1, 1],
  flags: {},
  examples: [["leasehold agents unpause refactorer-7", "go on"]],
  run: async (call) =>
    show(call, await (await call.connect()).call("unpause_agent", { agent_id: call.words[0] ?? "" })),
};

function readLabel(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageProblem(`--label is "${text}"; give NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}
