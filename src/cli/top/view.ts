/** The screen's lines, of what is known, what was chosen and what time it is; nothing else. */
import type { OpenRequest } from "../../sdk/wire.ts";
import { showDuration } from "../durations.ts";
import { blockerLine } from "../lease-words.ts";
import { type Paint, shareColour } from "../paint.ts";
import { cut, cutFront, padTo, plain, widthOf } from "../plain-text.ts";
import { rateOf, type Snapshot } from "./model.ts";
import type { Screen } from "./screen.ts";
import { arrange, type Choice } from "./state.ts";

export interface Seen {
  readonly url: string;
  readonly snapshot: Snapshot;
  readonly before: Snapshot | null;
  /** Why the last poll failed; null if it succeeded. */
  readonly trouble: string | null;
  /** By the clock of the snapshots. */
  readonly now: number;
}

const barWidth = 12;
const help = [
  "↑ ↓  choose a lease          s  sort: time left, resource, agent, age",
  "/    filter                  r  revoke the chosen one (asks first)",
  "p    pause, and go on        q  quit",
];

export function view(
  seen: Seen,
  choice: Choice,
  { columns, rows }: Pick<Screen, "columns" | "rows">,
  paint: Paint,
): readonly string[] {
  const head = [paint.bold(cut(title(seen, choice), columns)), paint.dim(cut(figures(seen), columns)), ""];
  const foot = [footer(seen, choice, columns, paint)];
  if (choice.showsHelp) return [...head, ...help.map((line) => cut(line, columns)), "", ...foot];
  const waiting = waiterLines(seen.snapshot, Math.max(3, Math.floor((rows - 6) / 3)), columns, paint);
  const room = Math.max(1, rows - head.length - foot.length - waiting.length - 1);
  const leases = leaseLines(seen, choice, room, columns, paint);
  const gap = Math.max(0, rows - head.length - leases.length - waiting.length - foot.length);
  return [...head, ...leases, ...waiting, ...Array.from({ length: gap }, () => ""), ...foot];
}

function title({ url, snapshot }: Seen, { sort, filter, isPaused }: Choice): string {
  const leases = snapshot.counts?.get("leases") ?? snapshot.leases.length;
  const waiters = snapshot.counts?.get("waiters") ?? snapshot.waiters.length;
  const shown = `sorted by ${sort}${filter === "" ? "" : `, only "${plain(filter)}"`}${isPaused ? ", PAUSED" : ""}`;
  return `Leasehold ${url}  ${leases} leases, ${waiters} waiting  (${shown})`;
}

function figures({ snapshot, before }: Seen): string {
  const rate = (type: string, words: string) => {
    const figure = rateOf(type, before, snapshot);
    return figure === null ? [] : [`${words} ${figure < 10 ? figure.toFixed(1) : Math.round(figure)}/s`];
  };
  const rates = [
    ...rate("lease.granted", "granted"),
    ...rate("lease.released", "released"),
    ...rate("lease.expired", "expired"),
    ...rate("request.died", "died"),
    ...rate("task.completed", "tasks done"),
  ];
  const { tasks, counts } = snapshot;
  const agents = counts === null ? [] : [`${counts.get("agents") ?? 0} agents`];
  const statuses = Object.entries(tasks ?? {}).map(([status, count]) => `${count} ${status}`);
  const taskCounts = tasks === null ? [] : [`tasks: ${statuses.join(", ")}`];
  return [...agents, ...rates, ...taskCounts].join("   ");
}

function leaseLines({ snapshot, now }: Seen, choice: Choice, room: number, columns: number, paint: Paint) {
  const all = arrange(snapshot.leases, choice);
  const at = all.findIndex(({ id }) => id === choice.selected);
  const rows = Math.max(0, room - 1);
  const first = Math.min(Math.max(0, at - Math.floor(rows / 2)), Math.max(0, all.length - rows));
  const agentWidth = Math.min(24, Math.max(5, ...all.map(({ agent_id: agent }) => widthOf(agent))));
  const nameWidth = Math.max(10, Math.floor((columns - barWidth - 8 - 12 - agentWidth - 8) * 0.65));
  const heading = paint.dim(
    cut(
      `${padTo("LEFT", barWidth + 8)}  ${padTo("PREDICATE", 10)}  ${padTo("RESOURCE", nameWidth)}  ${padTo("AGENT", agentWidth)}  PURPOSE`,
      columns,
    ),
  );
  if (all.length === 0)
    return [heading, paint.dim(snapshot.leases.length === 0 ? "nothing is leased" : "nothing fits the filter")];
  const lines = all.slice(first, first + rows).map((lease) => {
    const leftMs = Math.max(0, lease.expires_in_ms - (now - snapshot.at));
    const share = lease.ttl === 0 ? 0 : Math.min(1, leftMs / lease.ttl);
    const left = lease.state === "ACTIVE" ? showDuration(leftMs) : lease.state;
    const rest = cut(
      ` ${padTo(left, 7)}  ${padTo(lease.predicate, 10)}  ${padTo(cutFront(plain(lease.resource), nameWidth), nameWidth)}  ` +
        `${padTo(cut(plain(lease.agent_id), agentWidth), agentWidth)}  ${plain(lease.purpose ?? "")}`,
      columns - barWidth,
    );
    if (lease.id === choice.selected) return paint.inverse(padTo(`${bar(share)}${rest}`, columns));
    return `${paint[shareColour(share)](bar(share))}${rest}`;
  });
  return [heading, ...lines];
}

/** Eighths of a character make it move smoothly. */
function bar(share: number): string {
  const eighths = Math.round(share * barWidth * 8);
  const part = " ▏▎▍▌▋▊▉"[eighths % 8] ?? " ";
  return padTo("█".repeat(Math.floor(eighths / 8)) + (eighths % 8 === 0 ? "" : part), barWidth);
}

/** Waiters, and the holders in their way. */
function waiterLines({ waiters }: Snapshot, room: number, columns: number, paint: Paint): readonly string[] {
  if (waiters.length === 0) return ["", paint.dim("nobody waits")];
  const lines = waiters.slice(0, room).map((waiter) => cut(waiterLine(waiter), columns));
  const more = waiters.length - lines.length;
  return ["", paint.dim("WHO WAITS FOR WHOM"), ...lines, ...(more > 0 ? [paint.dim(`and ${more} more`)] : [])];
}

function waiterLine(waiter: OpenRequest): string {
  const { agent_id: agent, intents, position, blocked_by: by, blocked_by_total: total } = waiter;
  const wants = intents.map(({ predicate, resource }) => `${predicate} ${resource}`).join(", ");
  const first = by[0] === undefined ? "" : blockerLine(by[0]);
  const more = total > 1 ? ` and ${total - 1} more` : "";
  return `${position}. ${plain(`${agent} wants ${wants}`)}  ←  ${first}${more}`;
}

function footer({ snapshot, trouble }: Seen, choice: Choice, columns: number, paint: Paint): string {
  if (choice.typing !== null) return cut(`filter: ${plain(choice.typing)}▏ (Enter takes it, Esc leaves it)`, columns);
  if (choice.asks !== null) return paint.yellow(cut(`revoke ${describe(snapshot, choice.asks)}? y/n`, columns));
  if (trouble !== null) return paint.red(cut(trouble, columns));
  if (choice.message !== "") return paint.yellow(cut(plain(choice.message), columns));
  return paint.dim(cut("↑↓ choose  s sort  / filter  r revoke  p pause  ? help  q quit", columns));
}

function describe({ leases }: Snapshot, id: string): string {
  const lease = leases.find((one) => one.id === id);
  return lease === undefined ? id : plain(`${lease.predicate} ${lease.resource} of ${lease.agent_id}`);
}
