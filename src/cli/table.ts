/** Rows in columns: aligned and cut to the terminal's width for people, with tabs between for programs. */
import type { Colour, Paint } from "./paint.ts";
import { cut, cutFront, padTo, plain, widthOf } from "./plain-text.ts";

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  readonly colour?: (row: T) => Colour | null;
  /** Gives way where the terminal is narrow: its end or its front is cut. */
  readonly gives?: "end" | "front";
  /** Gives way after all others: what the row is about. */
  readonly last?: true;
}

const gap = 2;
const narrowest = 8;

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
        const fitted = columns[index]?.gives === "front" ? cutFront(text, width) : cut(text, width);
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
  while (total() > terminalWidth) {
    const giving = [...columns.keys()].filter(
      (index) => columns[index]?.gives !== undefined && (widths[index] ?? 0) > narrowest,
    );
    const first = giving.filter((index) => columns[index]?.last !== true);
    let widest = -1;
    for (const index of first.length > 0 ? first : giving) {
      if ((widths[index] ?? 0) > (widths[widest] ?? 0)) widest = index;
    }
    if (widest === -1) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}
