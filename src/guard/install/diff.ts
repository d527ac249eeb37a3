/** A change as people read it: lines that go, lines that come, and a little around them. */
import type { Change } from "./changes.ts";

const around = 3;

export function diffText(changes: readonly Change[]): string {
  return changes.map(changeText).join("");
}

function changeText(change: Change): string {
  switch (change.kind) {
    case "move":
      return `rename from ${change.from}\nrename to ${change.to}\n`;
    case "git-setting":
      return `git config ${change.name}: ${change.before ?? "(not set)"} → ${change.after ?? "(not set)"}\n`;
    case "write": {
      const { path, before, after } = change;
      const head = `--- ${before === null ? "/dev/null" : path}\n+++ ${after === null ? "/dev/null" : path}\n`;
      return `${head}${hunks(linesOf(before), linesOf(after))}`;
    }
  }
}

function linesOf(text: string | null): readonly string[] {
  if (text === null || text === "") return [];
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

type Line = readonly [sign: " " | "-" | "+", text: string];

/** Configuration files are short: the longest common run of lines is found by the plain table. */
function hunks(before: readonly string[], after: readonly string[]): string {
  const lines = compared(before, after);
  const shown = new Set<number>();
  for (const [index, [sign]] of lines.entries()) {
    if (sign === " ") continue;
    for (let near = index - around; near <= index + around; near++) shown.add(near);
  }
  let text = "";
  let wasShown = true;
  for (const [index, [sign, line]] of lines.entries()) {
    if (shown.has(index)) text += `${wasShown ? "" : "@@\n"}${sign}${line}\n`;
    wasShown = shown.has(index);
  }
  return text;
}

function compared(before: readonly string[], after: readonly string[]): readonly Line[] {
  const common = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  const of = (row: number, column: number): number => common[row]?.[column] ?? 0;
  for (let row = before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      const table = common[row];
      if (table === undefined) continue;
      table[column] =
        before[row] === after[column]
          ? of(row + 1, column + 1) + 1
          : Math.max(of(row + 1, column), of(row, column + 1));
    }
  }
  const lines: Line[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push([" ", before[row++] ?? ""]);
      column++;
    } else if (row < before.length && (column >= after.length || of(row + 1, column) >= of(row, column + 1))) {
      lines.push(["-", before[row++] ?? ""]);
    } else lines.push(["+", after[column++] ?? ""]);
  }
  return lines;
}
