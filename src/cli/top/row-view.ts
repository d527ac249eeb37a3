/** A row in words: who, in which state, for how long, with what; below a wait its edges, one for each in its way. */
import type { Blocker, Lease, Wait } from "../../sdk/wire.ts";
import { showDuration } from "../durations.ts";
import { type Colour, type Paint, shareColour } from "../paint.ts";
import { cut, cutMiddle, padTo, plain, widthOf } from "../plain-text.ts";
import type { Row } from "./rows.ts";

export interface Widths {
  readonly columns: number;
  readonly who: number;
  readonly bar: number;
}

export interface Drawing {
  readonly widths: Widths;
  /** How old the snapshot is. */
  readonly agoMs: number;
  /** The server's clock, about. */
  readonly serverNow: number;
  readonly isSelected: boolean;
  readonly paint: Paint;
}

export const stateColours: Readonly<Record<Row["state"], Colour>> = {
  lost: "red",
  waiting_for_person: "yellow",
  blocked: "cyan",
  working: "green",
  idle: "dim",
  task: "blue",
};

const stateWords: Readonly<Record<Row["state"], string>> = {
  lost: "lost",
  waiting_for_person: "person",
  blocked: "blocked",
  working: "working",
  idle: "idle",
  task: "task",
};

/** What one that waits does; `BACK` stands for the time after which it asks again. */
const reasonWords: Readonly<Record<Wait["reason"], string>> = {
  wait: "wants",
  standby: "stands by for",
  binding: "is being set up:",
  die: "died, BACK:",
  paused: "paused for",
  agent_paused: "paused by an operator",
  wounded: "wounded, BACK:",
  lost: "lost",
  resource: "waits for",
  resource_fenced: "waits for fenced",
  cell_not_ready: "waits for a cell:",
  dependency: "waits for other tasks",
  delay: "is delayed, BACK",
};

const stateWidth = 7;
const leftWidth = 7;
const edgesMax = 2;
const nameWidthMin = 8;
const restWidthMin = 6;

export function widthsFor(rows: readonly Row[], columns: number): Widths {
  const isWide = columns >= 100;
  let who = 5;
  for (const row of rows) who = Math.max(who, widthOf(plain(row.who)));
  return { columns, who: Math.min(isWide ? 24 : 14, who), bar: isWide ? 12 : 4 };
}

export function heading({ who, bar }: Widths): string {
  return `${padTo("AGENT", who)}  ${padTo("STATE", stateWidth)}  ${padTo("TIME", bar + 1 + leftWidth)}  WHAT`;
}

export function heightOf({ item }: Row): number {
  return item?.type === "wait" ? 1 + edgeCount(item.wait) : 1;
}

/** Some line below a wait says what it waits for, or what would end it. */
function edgeCount({ blocked_by: by }: Wait): number {
  return Math.max(1, Math.min(edgesMax, by.length));
}

export function formatRow(row: Row, drawing: Drawing): readonly string[] {
  const { widths, isSelected, paint } = drawing;
  const { columns } = widths;
  const who = padTo(cutMiddle(plain(row.who), widths.who), widths.who);
  const state = padTo(stateWords[row.state], stateWidth);
  const time = timeOf(row, drawing);
  const room = columns - widths.who - stateWidth - widths.bar - leftWidth - 7;
  const what = whatOf(row, drawing, room);
  const edges = row.item?.type === "wait" ? edgeLines(row.item.wait, drawing) : [];
  if (isSelected)
    return [paint.inverse(padTo(cut(`${who}  ${state}  ${time.text}  ${what}`, columns), columns)), ...edges];
  return [`${who}  ${paint[stateColours[row.state]](state)}  ${paint[time.colour](time.text)}  ${what}`, ...edges];
}

/** What is left of a lease, and for how long anything else has lasted. */
function timeOf({ item, since }: Row, { widths, agoMs, serverNow }: Drawing): { text: string; colour: Colour } {
  const width = widths.bar + 1 + leftWidth;
  if (item?.type === "more") return { text: padTo("", width), colour: "dim" };
  if (item?.type !== "lease") {
    const begun = item === null ? since : item.wait.since;
    const forMs = Math.max(0, serverNow - Date.parse(begun));
    return { text: padTo(`for ${showDuration(forMs)}`, width), colour: "dim" };
  }
  const { ttl, expires_in_ms: left } = item.lease;
  const leftMs = Math.max(0, left - agoMs);
  const share = ttl === 0 ? 0 : Math.min(1, leftMs / ttl);
  return { text: `${bar(share, widths.bar)} ${padTo(showDuration(leftMs), leftWidth)}`, colour: shareColour(share) };
}

/** Eighths of a character make it move smoothly. */
function bar(share: number, width: number): string {
  const eighths = Math.round(share * width * 8);
  const part = " ▏▎▍▌▋▊▉"[eighths % 8] ?? " ";
  return padTo("█".repeat(Math.floor(eighths / 8)) + (eighths % 8 === 0 ? "" : part), width);
}

function whatOf({ item }: Row, drawing: Drawing, room: number): string {
  if (item === null) return "";
  switch (item.type) {
    case "lease":
      return leaseWords(item.lease, room);
    case "wait":
      return waitWords(item.wait, drawing, room);
    case "more":
      return cut(`and ${item.leases} more leases`, room);
  }
}

function leaseWords({ predicate, resource, state, purpose }: Lease, room: number): string {
  const after = state === "ACTIVE" ? "" : ` ${state}`;
  return fit({ before: `${predicate} `, name: plain(resource), after, rest: quoted(purpose) }, room);
}

function waitWords(wait: Wait, { agoMs }: Drawing, room: number): string {
  const { reason, intents, resources, ends_in_ms: endsIn, purpose } = wait;
  const isDue = endsIn === undefined || endsIn <= agoMs;
  const words = reasonWords[reason].replace("BACK", isDue ? "due back" : `back in ${showDuration(endsIn - agoMs)}`);
  const [intent] = intents;
  const name = intent?.resource ?? resources[0];
  if (name === undefined) return cut(words, room);
  const before = intent === undefined ? `${words} ` : `${words} ${intent.predicate} `;
  const more = Math.max(intents.length, resources.length) - 1;
  return fit({ before, name: plain(name), after: more > 0 ? ` +${more}` : "", rest: quoted(purpose) }, room);
}

function edgeLines(wait: Wait, { widths, agoMs, paint }: Drawing): readonly string[] {
  const indent = " ".repeat(Math.min(4, widths.who));
  const room = widths.columns - indent.length;
  const { blocked_by: by, blocked_by_total: total, waits_for_tasks: tasks = [], detail } = wait;
  if (by.length === 0) {
    const words = tasks.length > 0 ? `← ${tasks.length > 1 ? "tasks" : "task"} ${tasks.join(", ")}` : detail;
    return [indent + paint.dim(cut(plain(words), room))];
  }
  const shown = by.slice(0, edgesMax);
  return shown.map((blocker, at) => {
    const more = at === shown.length - 1 && total > shown.length ? `, and ${total - shown.length} more` : "";
    return indent + paint.dim(edgeWords(blocker, agoMs, more, room));
  });
}

/** For whom it waits, on what, and how long at most. */
function edgeWords(blocker: Blocker, agoMs: number, more: string, room: number): string {
  const { agent_id: agent, predicate, resource, purpose, lease_id: lease, expires_in_ms: left } = blocker;
  const how = lease === undefined ? "waits ahead for" : "holds";
  const until = left === undefined ? "" : `, ${showDuration(Math.max(0, left - agoMs))} left`;
  const before = `← ${cutMiddle(plain(agent), 24)} ${how} ${predicate} `;
  return fit({ before, name: plain(resource), after: `${until}${more}`, rest: quoted(purpose) }, room);
}

function quoted(purpose: string | null): string {
  return purpose === null || purpose === "" ? "" : `  "${plain(purpose)}"`;
}

/** A line in which `rest` is cut first, and then the name in its middle. */
export function fit(
  { before, name, after, rest = "" }: { before: string; name: string; after: string; rest?: string },
  columns: number,
): string {
  const room = Math.max(nameWidthMin, columns - widthOf(before) - widthOf(after));
  const line = `${before}${cutMiddle(name, room)}${after}`;
  const left = columns - widthOf(line);
  return cut(left >= restWidthMin ? `${line}${cut(rest, left)}` : line, columns);
}
