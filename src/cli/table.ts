/** Rows in columns: aligned and cut to the terminal's width for people, with tabs between for programs. */
import type { Colour, Paint } from "./paint.ts";
import { cut, cutMiddle, padTo, plain, widthOf } from "./plain-text.ts";

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  readonly colour?: (row: T) => Colour | null;
  /** Gives way where the terminal is narrow: its end, or, of names, its middle is cut. */
  readonly gives?: "end" | "middle";
  /** Gives way after all others: what the row is about. */
  readonly last?: true;
  /** What it keeps as long as others have more to give. */
  readonly least?: number;
}

const gap = 2;
/** As narrow as columns get; on a terminal that is too narrow even so, the second holds. */
const narrowest = [8, 3] as const;

export function tableText<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  paint: Paint,
  terminalWidth: number,
): string {
  const cells = rows.map((row) => columns.map(({ cell }) => plain(cell(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((row) => widthOf(row[index] ?? ""))),
  );
  narrow(widths, columns, terminalWidth);
  const line = (texts: readonly string[], painted: (text: string, index: number) => string) =>
    texts
      .map((text, index) => {
        const width = widths[index] ?? 0;
        const fitted = columns[index]?.gives === "middle" ? cutMiddle(text, width) : cut(text, width);
        return painted(index === texts.length - 1 ? fitted : padTo(fitted, width), index);
      })
      .join(" ".repeat(gap))
      .trimEnd();
  const head = line(
    columns.map(({ title }) => title),
    (text) => paint.dim(text),
  );
  const body = cells.map((texts, at) =>
    line(texts, (text, index) => {
      const row = rows[at];
      const colour = row === undefined ? null : (columns[index]?.colour?.(row) ?? null);
      return colour === null ? text : paint[colour](text);
    }),
  );
  return `${[head, ...body].join("\n")}\n`;
}

/** No heads, no padding: `cut -f2` and `awk` read it. */
export function tabbedText<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  return rows.map((row) => `${columns.map(({ cell }) => plain(cell(row))).join("\t")}\n`).join("");
}

/** Takes from the widest of those that give way until the whole fits, or none has anything left to give. */
function narrow<T>(widths: number[], columns: readonly Column<T>[], terminalWidth: number): void {
  const total = () => widths.reduce((sum, width) => sum + width + gap, -gap);
  for (const least of narrowest) {
    const giving = [...columns.keys()].filter((index) => columns[index]?.gives !== undefined);
    const first = giving.filter((index) => columns[index]?.last !== true);
    while (total() > terminalWidth) {
      const spare = (among: readonly number[]) =>
        among.filter(
          (index) => (widths[index] ?? 0) > Math.max(least, least === narrowest[0] ? (columns[index]?.least ?? 0) : 0),
        );
      const widest = widestOf(widths, spare(first)) ?? widestOf(widths, spare(giving));
      if (widest === null) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
  }
}

function widestOf(widths: readonly number[], among: readonly number[]): number | null {
  const [widest] = among.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
  return widest ?? null;
}
