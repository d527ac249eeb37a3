/** Agents with what each does: working, waiting, standing by, or to come back after DIE. */
import { eventTypes } from "../protocol/schema/vocabulary.ts";
import type { LeaseholdEvent } from "../sdk/events.ts";
import type { Agent, AgentActivity, AgentState } from "../sdk/wire.ts";
import type { Call } from "./command.ts";
import { showDuration } from "./durations.ts";
import { type ListedSince, limitOf, listAll } from "./pages.ts";
import type { Colour } from "./paint.ts";
import type { Column } from "./table.ts";
import { activityWords } from "./top/model.ts";
import type { Effect, Part } from "./watch/part.ts";

/** What it does is unknown for agents that came between two readings. */
export interface Doing {
  readonly agent: Agent;
  readonly activity: AgentActivity | null;
}

export const doingColumns: readonly Column<Doing>[] = [
  { title: "AGENT", cell: ({ agent }) => agent.agent_id, gives: "end", last: true },
  { title: "STATE", cell: ({ agent }) => agent.state },
  { title: "DOES", cell: doesText, colour: doesColour, gives: "end", last: true },
  { title: "HOLDS", cell: ({ activity }) => String(activity?.leases_total ?? "-") },
  { title: "LABELS", cell: ({ agent }) => labelsText(agent), gives: "end" },
];

function labelsText({ labels }: Agent): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

const activityColours: Readonly<Record<AgentActivity["activity"], Colour>> = {
  lost: "red",
  waiting_for_person: "yellow",
  blocked: "cyan",
  working: "green",
  idle: "dim",
};

function doesColour({ activity }: Doing): Colour | null {
  return activity === null ? null : activityColours[activity.activity];
}

const askWords = { WAITING: "waits for", STANDBY: "stands by for", BINDING: "is being given" } as const;

/** The first thing that it asks for, or why it does nothing. */
function doesText({ agent, activity }: Doing): string {
  if (activity === null) return "-";
  const [ask] = activity.requests;
  if (ask !== undefined) {
    const [intent] = ask.intents;
    const more = activity.requests.length + ask.intents.length - 2;
    return `${askWords[ask.state]} ${intent?.resource ?? "-"}${more > 0 ? ` +${more}` : ""}`;
  }
  if (agent.paused_by_operator) return "paused by an operator";
  const { paused_for: why, retry_in_ms: left, attempts } = activity;
  const back = left === undefined || left <= 0 ? "due back" : `back in ${showDuration(left)}`;
  if (why === "die") return `died${attempts > 1 ? ` ${attempts} times` : ""}, ${back}`;
  if (why === "wounded") return `wounded, ${back}`;
  return activityWords[activity.activity];
}

const hasEnded = (state: AgentState) => state === "COMPLETED" || state === "ABORTED";

export function listedAgents(state: AgentState | null, isAll: boolean): (agent: Agent) => boolean {
  return ({ state: now }) => (state === null ? isAll || !hasEnded(now) : now === state);
}

export async function readAgents(
  call: Call,
  state: AgentState | null,
  isListed: (agent: Agent) => boolean,
): Promise<ListedSince<Doing>> {
  const limit = limitOf(call);
  const [agents, activities] = await Promise.all([
    listAll("agents", limit, async (page) => {
      const answer = await call.ask("list_agents", { ...page, state });
      return { ...answer, agents: answer.agents.filter(isListed) };
    }),
    listAll("agents", limit, (page) => call.ask("list_activity", page)),
  ]);
  const doing = new Map(activities.items.map((one) => [one.agent_id, one]));
  const items = agents.items.map((agent) => ({ agent, activity: doing.get(agent.agent_id) ?? null }));
  return { ...agents, items };
}

export function agentsPart(
  call: Call,
  state: AgentState | null,
  isListed: (agent: Agent) => boolean,
  isShort: boolean,
): Part<Doing> {
  return {
    command: "agents",
    name: "agent",
    columns: isShort ? doingColumns : doingColumns.toSpliced(2, 0, { title: "SINCE", cell: sinceOf }),
    none: "There are no agents.",
    count: (length) => `${length} ${length === 1 ? "agent" : "agents"}`,
    keyOf: ({ agent }) => agent.agent_id,
    read: () => readAgents(call, state, isListed),
    types: eventTypes.filter((type) => /^(agent|lease|request)\./.test(type)),
    effectOf: (event, known) => effectOf(event, known, isListed),
    later,
    json: ({ agent, activity }) => ({ agent, activity: activity?.activity ?? null }),
  };
}

function sinceOf({ agent }: Doing): string {
  return agent.registered_at;
}

/** The states themselves are in the events; what an agent does beside that has to be read. */
function effectOf(
  event: LeaseholdEvent,
  known: ReadonlyMap<string, Doing>,
  isListed: (agent: Agent) => boolean,
): Effect<Doing> {
  if (event.type === "agent.forgotten") return { gone: [event.agent?.agent_id ?? ""] };
  const id = event.agent?.agent_id ?? event.agent_id ?? "";
  const before = known.get(id) ?? null;
  const agent =
    event.agent ?? (before !== null && isTransition(event) ? { ...before.agent, state: event["to"] } : null);
  if (agent === null) return { isStale: true };
  const now = { agent, activity: before?.activity ?? null };
  return isListed(agent) ? { put: [now], isStale: true } : { gone: [id], isStale: true };
}

function isTransition(event: LeaseholdEvent): event is LeaseholdEvent & { readonly to: AgentState } {
  return event.type === "agent.transitioned";
}

function later({ agent, activity }: Doing, agoMs: number): Doing {
  const left = activity?.retry_in_ms;
  if (activity === null || left === undefined) return { agent, activity };
  return { agent, activity: { ...activity, retry_in_ms: Math.max(0, left - agoMs) } };
}
