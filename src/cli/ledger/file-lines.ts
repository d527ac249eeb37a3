import { closeSync, openSync, readSync } from "node:fs";
import { Failure, messageOf } from "../problem.ts";

const portionBytes = 1024 * 1024;
/** No line of an export is longer. */
const lineLengthMax = 64 * 1024 * 1024;

/** A file line by line, a byte as a character, so that what is not ASCII is kept and found. */
export function* linesOf(file: string): Generator<string> {
  const handle = opened(file);
  try {
    const buffer = Buffer.alloc(portionBytes);
    let rest = "";
    for (let length = readSync(handle, buffer); length > 0; length = readSync(handle, buffer)) {
      const lines = (rest + buffer.toString("latin1", 0, length)).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > lineLengthMax) throw new Failure(`${file} is not an export: it has a line of over 64 MiB`);
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
    throw unreadable(file, cause);
  }
}

export function unreadable(file: string, cause: unknown): Failure {
  return new Failure(`${file} cannot be read: ${messageOf(cause)}`, undefined, { cause });
}
