/** What a coding agent hands to its hook. */
import type { Readable } from "node:stream";

export interface HookInput {
  readonly input: string;
  /** Why it could not be read. */
  readonly problem: string | null;
}

/** A write of a very large file comes with its content. */
const inputBytesMax = 64 * 2 ** 20;
const inputMs = 3_000;

/** All of the input, up to a size and a time: a tool that leaves the pipe open is answered as well. */
export function readInput(stream: Readable): Promise<HookInput> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (problem: string): void => resolve({ input: "", problem });
    const timer = setTimeout(() => fail(`its input did not end within ${inputMs / 1_000} s`), inputMs);
    stream.on("data", (chunk: Buffer) => {
      timer.refresh();
      size += chunk.length;
      if (size <= inputBytesMax) chunks.push(chunk);
      else fail(`its input is larger than ${inputBytesMax / 2 ** 20} MiB`);
    });
    stream.once("end", () => {
      clearTimeout(timer);
      resolve({ input: Buffer.concat(chunks).toString("utf8"), problem: null });
    });
    stream.once("error", (error) => fail(error.message));
  });
}
