/** The rows of the screen: one for each thing that an agent waits for or holds, one for an agent without either. */
import type { AgentActivity, Lease, Wait } from "../../sdk/wire.ts";
import { type Activity, activities, activityWords, type Snapshot } from "./model.ts";

export interface Row {
  /** The same from one snapshot to the next. */
  readonly key: string;
  /** An agent's id or a task's. */
  readonly who: string;
  /** A task has none of the five states: those are of agents. */
  readonly state: Activity | "task";
  readonly since: string;
  readonly item:
    | { readonly type: "lease"; readonly lease: Lease }
    | { readonly type: "wait"; readonly wait: Wait }
    /** Leases that the server counted and did not list. */
    | { readonly type: "more"; readonly leases: number }
    | null;
}

export const sorts = ["state", "agent", "resource", "left"] as const;
export type Sort = (typeof sorts)[number];

export function rowsOf({ agents, waits }: Snapshot): readonly Row[] {
  const waitsOf = Map.groupBy(waits, ({ agent_id: agent }) => agent);
  const rows = agents.flatMap((agent) => agentRows(agent, waitsOf.get(agent.agent_id) ?? []));
  for (const wait of waits) {
    const { waiter, task_id: who = "", since } = wait;
    if (waiter === "task") rows.push({ key: `task ${who}`, who, state: "task", since, item: { type: "wait", wait } });
  }
  return rows;
}

function agentRows(agent: AgentActivity, waits: readonly Wait[]): Row[] {
  const { agent_id: who, activity: state, since, leases, leases_total: total } = agent;
  const row = (name: string, item: Row["item"]): Row => ({ key: `agent ${who} ${name}`, who, state, since, item });
  const rows = [
    ...waits.map((wait) => row(wait.request_id ?? "", { type: "wait", wait })),
    ...leases.map((lease) => row(lease.id, { type: "lease", lease })),
  ];
  if (total > leases.length) rows.push(row("more", { type: "more", leases: total - leases.length }));
  return rows.length > 0 ? rows : [row("", null)];
}

/** Filtered and sorted. */
export function arrange(rows: readonly Row[], sort: Sort, filter: string): readonly Row[] {
  const wanted = filter.toLowerCase();
  const kept = wanted === "" ? rows : rows.filter((row) => textOf(row).includes(wanted));
  return kept.toSorted(orders[sort]);
}

/** What a filter finds: every word of a row, those of its edges among them. */
function textOf(row: Row): string {
  const words = [row.who, row.state === "task" ? "task" : activityWords[row.state]];
  const { item } = row;
  if (item?.type === "lease") words.push(item.lease.predicate, item.lease.resource, item.lease.purpose ?? "");
  if (item?.type === "wait") {
    const { reason, resources, purpose, blocked_by: by } = item.wait;
    words.push(reason, ...resources, purpose ?? "", ...by.flatMap((one) => [one.agent_id, one.resource]));
  }
  return words.join(" ").toLowerCase();
}

/** What the row is about; empty where nothing is named. */
export function resourceOf({ item }: Row): string {
  if (item?.type === "lease") return item.lease.resource;
  return item?.type === "wait" ? (item.wait.resources[0] ?? "") : "";
}

function leftOf({ item }: Row): number {
  if (item?.type === "lease") return item.lease.expires_in_ms;
  return (item?.type === "wait" ? item.wait.ends_in_ms : undefined) ?? Number.MAX_VALUE;
}

function rankOf({ state }: Row): number {
  return state === "task" ? activities.indexOf("blocked") + 0.5 : activities.indexOf(state);
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const byAgent = (a: Row, b: Row) => byText(a.who, b.who);

/** Sorting is stable: an agent's waits stay before its leases. Rows without a resource come last. */
const orders: Readonly<Record<Sort, (a: Row, b: Row) => number>> = {
  state: (a, b) => rankOf(a) - rankOf(b) || byAgent(a, b),
  agent: byAgent,
  resource: (a, b) => byText(resourceOf(a) || "\u{10ffff}", resourceOf(b) || "\u{10ffff}") || byAgent(a, b),
  left: (a, b) => leftOf(a) - leftOf(b) || byAgent(a, b),
};
