/** The screen of a watched list: its state, its tables, and as much of them as the terminal has room for. */
import { showDuration } from "../durations.ts";
import type { Paint } from "../paint.ts";
import { cut, plain, widthOf } from "../plain-text.ts";
import type { Screen } from "../top/screen.ts";
import type { WatchedList } from "./part.ts";

export interface Seen {
  /** What was typed: "ls src/". */
  readonly title: string;
  readonly url: string;
  readonly lists: readonly WatchedList[];
  /** Why no events come, and for how long; null while they do. */
  readonly trouble: { readonly forMs: number; readonly line: string } | null;
  /** By the clock of the readings. */
  readonly now: number;
  /** Rows that were scrolled past. */
  readonly offset: number;
}

export interface Page {
  readonly lines: readonly string[];
  /** The largest offset that makes sense. */
  readonly offsetMax: number;
}

export function listView(seen: Seen, { columns, rows }: Pick<Screen, "columns" | "rows">, paint: Paint): Page {
  const body = bodyLines(seen, columns, paint);
  const room = Math.max(1, rows - 3);
  const offsetMax = Math.max(0, body.length - room);
  const offset = Math.min(seen.offset, offsetMax);
  const shown = body.slice(offset, offset + room);
  const [above, below] = [offset, body.length - offset - shown.length];
  const filled = Array.from({ length: room }, (_, at) => shown[at] ?? "");
  return { lines: [head(seen, columns, paint), "", ...filled, foot(above, below, columns, paint)], offsetMax };
}

function head({ title, url, lists, trouble }: Seen, columns: number, paint: Paint): string {
  const counts = lists.map(({ countText }) => countText);
  if (trouble === null) {
    const left = `leasehold ${plain(title)}  ${counts.join(", ")}`;
    const right = `live  ${url}`;
    const gap = columns - widthOf(left) - widthOf(right);
    if (gap >= 2) return `${paint.bold(left)}${" ".repeat(gap)}${paint.green("live")}  ${paint.dim(url)}`;
    return `${paint.bold(cut(left, columns - 6))}  ${paint.green("live")}`;
  }
  const text = `NOT LIVE for ${showDuration(trouble.forMs)}: ${trouble.line}; it tries again`;
  return paint.red(cut(text, columns));
}

function bodyLines({ lists, now }: Seen, columns: number, paint: Paint): readonly string[] {
  const tables = lists.map((list) => list.table(now, paint, columns)).filter((text) => text !== "");
  return tables.flatMap((text, at) => [...(at === 0 ? [] : [""]), ...text.split("\n")]);
}

function foot(above: number, below: number, columns: number, paint: Paint): string {
  const hidden = [...(above > 0 ? [`${above} lines above`] : []), ...(below > 0 ? [`${below} below`] : [])];
  const keys = hidden.length === 0 ? "q quits" : `${hidden.join(", ")}; ↑ ↓ scroll, q quits`;
  return paint.dim(cut(keys, columns));
}
