/** A change as people read it: lines that go, lines that come, and a little around them. */
import { diff } from "node:util";
import type { Change } from "./changes.ts";

const around = 3;
/** For what `diff` says of a line: -1 if it is new, 1 if it is gone. */
const signs = ["+", " ", "-"];

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

function hunks(before: readonly string[], after: readonly string[]): string {
  const lines = before.length + after.length === 0 ? [] : diff(before, after);
  const shown = new Set<number>();
  for (const [index, [sign]] of lines.entries()) {
    if (sign === 0) continue;
    for (let near = index - around; near <= index + around; near++) shown.add(near);
  }
  let text = "";
  let wasShown = true;
  for (const [index, [sign, line]] of lines.entries()) {
    if (shown.has(index)) text += `${wasShown ? "" : "@@\n"}${signs[sign + 1]}${line}\n`;
    wasShown = shown.has(index);
  }
  return text;
}
