/** An edge of the graph of waits: a waiter and one that is in its way, with the reason and the time left. */
import type { Blocker, Wait } from "../../../src/sdk/wire.ts";

export interface Edge {
  readonly id: string;
  readonly wait: Wait;
  /** Null: nobody in particular. */
  readonly blocker: Blocker | null;
  readonly task: string | null;
}

export function edgesOf(wait: Wait): readonly Edge[] {
  const id = wait.request_id ?? wait.task_id ?? wait.agent_id ?? "";
  const blockers = wait.blocked_by;
  const tasks = wait.waits_for_tasks ?? [];
  if (blockers.length + tasks.length === 0) return [{ id, wait, blocker: null, task: null }];
  return [
    ...blockers.map((blocker, at) => ({ id: `${id} ${at}`, wait, blocker, task: null })),
    ...tasks.map((task) => ({ id: `${id} ${task}`, wait, blocker: null, task })),
  ];
}

export function nameOf({ agent_id, task_id }: Wait): string {
  return task_id ?? agent_id ?? "";
}

export function targetOf({ blocker, task, wait }: Edge): string {
  if (blocker !== null) return blocker.agent_id;
  if (task !== null) return task;
  switch (wait.reason) {
    case "delay":
      return "a time";
    case "die":
    case "wait":
    case "standby":
    case "wounded":
      return "its turn";
    case "binding":
    case "cell_not_ready":
      return "a cell";
    default:
      return "a person";
  }
}

const reasons: Readonly<Record<Wait["reason"], string>> = {
  wait: "waits in line",
  standby: "stands by",
  binding: "being set up",
  die: "gave way",
  paused: "not available",
  agent_paused: "paused",
  wounded: "was preempted",
  lost: "lost its lease",
  resource: "needs it free",
  resource_fenced: "fenced",
  cell_not_ready: "cell is gone",
  dependency: "comes after",
  delay: "not before",
};

export function reasonWords(reason: Wait["reason"]): string {
  return reasons[reason];
}

/** What the time left leads to. */
export function endWords(reason: Wait["reason"]): string {
  if (reason === "die" || reason === "wounded") return "asks again in";
  return reason === "delay" ? "begins in" : "gives up in";
}

export function toneOf(reason: Wait["reason"]): string {
  if (["paused", "agent_paused", "resource_fenced", "cell_not_ready"].includes(reason)) return "waiting_for_person";
  if (reason === "lost") return "lost";
  return reason === "dependency" || reason === "delay" ? "idle" : "blocked";
}

/** When it is over at the latest: the wait's own end, else the end of the lease in its way. */
export function endOf({ wait, blocker }: Edge, at: number): number | null {
  const left = wait.ends_in_ms ?? blocker?.expires_in_ms;
  return left === undefined ? null : at + left;
}
