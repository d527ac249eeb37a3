/** Bytes from one end to the other, each chunk only as long as the pass allows it. */
import type { EventEmitter } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Pass, Way } from "./binding.ts";
import type { AccessFailure } from "./failure.ts";

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

/** All of it as text, up to a size. */
export async function readAll(from: AsyncIterable<Uint8Array>, bytesMax: number, tooLong: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of from) {
    length += chunk.length;
    if (length > bytesMax) throw new Error(tooLong);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Fails where the service behind a gateway does not answer in time (by one of these events), or breaks off. */
export function watchService(
  service: EventEmitter,
  answers: readonly string[],
  ms: number,
  fail: (failure: AccessFailure) => void,
): void {
  const timer = setTimeout(() => {
    fail({ code: "upstream_timeout", detail: "The service behind the gateway did not answer in time." });
  }, ms);
  service.on("error", () => {
    fail({ code: "upstream_failed", detail: "The service behind the gateway cannot be reached, or broke off." });
  });
  for (const event of answers) service.on(event, () => clearTimeout(timer));
}
