/** The screen's lines, of what is known, what was chosen and what time it is; nothing else. */
import type { Paint } from "../paint.ts";
import { cut, plain, widthOf } from "../plain-text.ts";
import { type Activity, activityWords, type Rated, type Rates, rated, type Snapshot } from "./model.ts";
import { fit, formatRow, heading, heightOf, stateColours, widthsFor } from "./row-view.ts";
import type { Row } from "./rows.ts";
import type { Screen } from "./screen.ts";
import type { Choice } from "./state.ts";

export interface Seen {
  readonly url: string;
  readonly snapshot: Snapshot;
  /** Filtered and sorted as chosen. */
  readonly rows: readonly Row[];
  /** Null where this key may not read events. */
  readonly rates: Rates | null;
  /** Why the last poll failed; null if it succeeded. */
  readonly trouble: string | null;
  /** By the clock of the snapshots. */
  readonly now: number;
}

const help = [
  "↑ ↓  choose a row            s  sort: state, agent, resource, time left",
  "/    filter, by any word     r  revoke the chosen lease (asks first)",
  "p    pause, and go on        q  quit",
  "",
  "An agent is in one of five states:",
  "  working  holds a lease and waits for nothing",
  "  blocked  waits, stands by, or died and will ask again; ← is who is in its way",
  "  person   waits for a person: it was paused, or something is fenced or withdrawn",
  "  idle     has nothing and wants nothing",
  "  lost     lost its leases, or did not come back in time",
];

export function view(
  seen: Seen,
  choice: Choice,
  { columns, rows }: Pick<Screen, "columns" | "rows">,
  paint: Paint,
): readonly string[] {
  const head = [
    paint.bold(cut(title(seen, choice), columns)),
    states(seen, columns, paint),
    paint.dim(cut(figures(seen), columns)),
    "",
  ];
  const foot = footer(seen, choice, columns, paint);
  const room = Math.max(1, rows - head.length - 1);
  const body = choice.showsHelp ? help.map((line) => cut(line, columns)) : list(seen, choice, room, columns, paint);
  const lines = Array.from({ length: room }, (_, at) => body[at] ?? "");
  return [...head, ...lines, foot];
}

function title({ url, snapshot }: Seen, { sort, filter, isPaused }: Choice): string {
  const only = filter === "" ? "" : `, only "${plain(filter)}"`;
  const more = snapshot.hasMore ? ", not all are listed" : "";
  return `Leasehold ${url}  sorted by ${sort}${only}${more}${isPaused ? ", PAUSED" : ""}`;
}

/** As the documentation lists them. */
const shownOrder = ["working", "blocked", "waiting_for_person", "idle", "lost"] as const satisfies readonly Activity[];

function states({ snapshot }: Seen, columns: number, paint: Paint): string {
  const { agents } = snapshot.overview;
  const counts = shownOrder.map((name) => ({ name, text: `${agents[name]} ${activityWords[name]}` }));
  const whole = counts.map(({ text }) => text).join("  ");
  if (widthOf(whole) > columns) return cut(whole, columns);
  return counts.map(({ name, text }) => paint[agents[name] === 0 ? "dim" : stateColours[name]](text)).join("  ");
}

function figures({ snapshot, rates }: Seen): string {
  const { leases, tasks } = snapshot.overview;
  const perSecond = (figure: number) => `${figure > 0 && figure < 10 ? figure.toFixed(1) : Math.round(figure)}/s`;
  const shown =
    rates === null ? [] : Object.entries(rated).map(([type, word]) => `${word} ${perSecond(rates[type as Rated])}`);
  const statuses = Object.entries(tasks).filter(([, count]) => count > 0);
  const taskCounts =
    statuses.length === 0 ? [] : [`tasks: ${statuses.map(([status, count]) => `${count} ${status}`).join(", ")}`];
  return [`${leases} ${leases === 1 ? "lease" : "leases"}`, ...shown, ...taskCounts].join("  ");
}

function list({ snapshot, rows, now }: Seen, choice: Choice, room: number, columns: number, paint: Paint) {
  const widths = widthsFor(rows, columns);
  const top = paint.dim(cut(heading(widths), columns));
  if (rows.length === 0)
    return [top, paint.dim(snapshot.agents.length === 0 ? "there are no agents" : "nothing fits the filter")];
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === choice.selected),
  );
  const lines: string[] = [];
  const agoMs = now - snapshot.at;
  const serverNow = Date.parse(snapshot.overview.at) + agoMs;
  for (const row of rows.slice(firstShown(rows, at, room - 1))) {
    if (lines.length >= room - 1) break;
    lines.push(...formatRow(row, { widths, agoMs, serverNow, isSelected: row.key === choice.selected, paint }));
  }
  return [top, ...lines].slice(0, room);
}

/** The first row to show so that the one at `at` is about in the middle, and the list's end at the screen's. */
function firstShown(rows: readonly Row[], at: number, room: number): number {
  const back = (from: number, lines: number) => {
    let first = from;
    let used = 0;
    while (first >= 0) {
      const row = rows[first];
      used += row === undefined ? 0 : heightOf(row);
      if (used > lines) break;
      first--;
    }
    return Math.min(from, first + 1);
  };
  return Math.min(back(at, Math.ceil(room / 2)), back(rows.length - 1, room));
}

function footer({ snapshot, trouble }: Seen, choice: Choice, columns: number, paint: Paint): string {
  if (choice.typing !== null) return cut(`filter: ${plain(choice.typing)}▏ (Enter takes it, Esc leaves it)`, columns);
  if (choice.asks !== null) return paint.yellow(question(snapshot, choice.asks, columns));
  if (trouble !== null) return paint.red(cut(trouble, columns));
  if (choice.message !== "") return paint.yellow(cut(plain(choice.message), columns));
  return paint.dim(cut("↑↓ choose  s sort  / filter  r revoke  p pause  ? help  q quit", columns));
}

function question({ agents }: Snapshot, id: string, columns: number): string {
  const lease = agents.flatMap(({ leases }) => leases).find((one) => one.id === id);
  if (lease === undefined) return cut("this lease has ended; press n", columns);
  const before = `revoke ${lease.predicate} `;
  const after = ` of ${plain(lease.agent_id)}, which loses it at once? y/n`;
  return fit({ before, name: plain(lease.resource), after }, columns);
}
