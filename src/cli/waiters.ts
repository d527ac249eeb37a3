/** Waiters, each as what it is: in line, standing by, being set up, or to come back after DIE. */
import type { OpenRequest, Wait } from "../sdk/wire.ts";
import { showDuration } from "./durations.ts";
import { blockedWords } from "./lease-words.ts";
import type { Column } from "./table.ts";

/** An open request, or an agent that has none and is to ask again. */
export type Waiter =
  | { readonly kind: "request"; readonly request: OpenRequest }
  | { readonly kind: "agent"; readonly wait: Wait };

export function waiterKey(waiter: Waiter): string {
  return waiter.kind === "request" ? waiter.request.request_id : `agent ${waiter.wait.agent_id ?? ""}`;
}

/** Short ones are for a terminal: the first of what it wants, and the first in its way. */
export function waiterColumns(isLong: boolean): readonly Column<Waiter>[] {
  if (isLong) return [...columns, { title: "REQUEST", cell: requestId }];
  return [{ title: "WANTS", cell: firstWanted, gives: "middle", last: true }, ...columns.slice(1)];
}

function firstWanted(waiter: Waiter): string {
  const { intents } = waiter.kind === "request" ? waiter.request : waiter.wait;
  const resources = waiter.kind === "agent" && intents.length === 0 ? waiter.wait.resources : [];
  const [first = "-", ...more] = [
    ...intents.map(({ predicate, resource }) => `${predicate} ${resource}`),
    ...resources,
  ];
  return more.length === 0 ? first : `${first} +${more.length}`;
}

/** As much of two agents' names as tells them apart. */
const agentWidth = 14;

const columns: readonly Column<Waiter>[] = [
  { title: "WANTS", cell: wantsText, gives: "end", last: true },
  { title: "AGENT", cell: agentOf, gives: "middle", least: agentWidth },
  { title: "PLACE", cell: placeText },
  { title: "LEFT", cell: leftText },
  { title: "BEHIND", cell: behindText, gives: "end", last: true },
];

function wantsText(waiter: Waiter): string {
  const { intents } = waiter.kind === "request" ? waiter.request : waiter.wait;
  if (intents.length > 0) return intents.map(({ predicate, resource }) => `${predicate} ${resource}`).join(", ");
  return waiter.kind === "agent" ? waiter.wait.resources.join(", ") || "-" : "-";
}

function agentOf(waiter: Waiter): string {
  return (waiter.kind === "request" ? waiter.request.agent_id : waiter.wait.agent_id) ?? "";
}

/** One that stands by has no place in line: it is asked again when its turn may have come (W14). */
function placeText(waiter: Waiter): string {
  if (waiter.kind === "agent") return returningWords[waiter.wait.reason] ?? waiter.wait.reason;
  const { state, position } = waiter.request;
  if (state === "BINDING") return "being set up";
  return position === undefined ? "stands by" : String(position);
}

const returningWords: Partial<Readonly<Record<Wait["reason"], string>>> = {
  die: "comes back",
  wounded: "wounded",
  agent_paused: "paused",
};

function leftText(waiter: Waiter): string {
  if (waiter.kind === "request") return showDuration(waiter.request.times_out_in_ms);
  const { ends_in_ms: left } = waiter.wait;
  if (left === undefined) return "-";
  return left > 0 ? showDuration(left) : "due";
}

function behindText(waiter: Waiter): string {
  const { blocked_by: by, blocked_by_total: total } = waiter.kind === "request" ? waiter.request : waiter.wait;
  const died = waiter.kind === "agent" && waiter.wait.reason === "die" ? (waiter.wait.attempt ?? 0) : 0;
  const behind = blockedWords(by, total);
  return died > 1 ? `died ${died} times${behind === "" ? "" : `; ${behind}`}` : behind;
}

function requestId(waiter: Waiter): string {
  return waiter.kind === "request" ? waiter.request.request_id : "-";
}

/** Requests at the name or below it, or with a pattern over it, judged by the names: the server has no such filter. */
export function wants({ intents }: OpenRequest, resource: string): boolean {
  const base = (name: string) => name.replace(/\/?[^/]*[*?].*$/, "");
  const wanted = base(resource);
  return intents.some(({ resource: name }) => base(name).startsWith(wanted) || wanted.startsWith(base(name)));
}

export function waiterLater(waiter: Waiter, agoMs: number): Waiter {
  if (waiter.kind === "request") {
    const { request } = waiter;
    return { kind: "request", request: { ...request, times_out_in_ms: Math.max(0, request.times_out_in_ms - agoMs) } };
  }
  const { ends_in_ms: left } = waiter.wait;
  return left === undefined
    ? waiter
    : { kind: "agent", wait: { ...waiter.wait, ends_in_ms: Math.max(0, left - agoMs) } };
}
