/** Bytes from one end to the other, each chunk only as long as the pass allows it. */
import type { Readable, Writable } from "node:stream";
import type { Pass, Way } from "./binding.ts";

/** What is refused is not written, and nothing after it; the pass has been cut by then. */
export function pump(from: Readable, to: Writable, pass: Pass, way: Way): void {
  from.on("data", (chunk: Buffer) => {
    if (!pass.take(chunk.length, way)) return;
    if (!to.write(chunk)) {
      from.pause();
      to.once("drain", () => from.resume());
    }
  });
  from.on("end", () => {
    if (pass.check()) to.end();
  });
}
