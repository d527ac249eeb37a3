import { closeSync, openSync, readSync } from "node:fs";
import { CommandFailed } from "./failure.ts";

const portionBytes = 1024 * 1024;
/** No line of an export is longer; what is, is no export. */
const lineLengthMax = 64 * 1024 * 1024;

/** A file line by line, a byte as a character: what is not ASCII shows as such and is never repaired on the way. */
export function* linesOf(file: string): Generator<string> {
  const handle = opened(file);
  try {
    const buffer = Buffer.alloc(portionBytes);
    let rest = "";
    for (let length = readSync(handle, buffer); length > 0; length = readSync(handle, buffer)) {
      const lines = (rest + buffer.toString("latin1", 0, length)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > lineLengthMax) throw new CommandFailed(`${file} has a line that no export has`);
      yield* lines;
    }
    if (rest !== "") yield rest;
  } finally {
    closeSync(handle);
  }
}

function opened(file: string): number {
  try {
    return openSync(file, "r");
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
