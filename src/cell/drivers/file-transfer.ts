/** Bytes between a file, a device or memory and a connection, each chunk only as long as the pass allows it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Pass } from "../binding.ts";
import { whenOver } from "../http-listener.ts";

export interface Span {
  readonly from: number;
  readonly length: number;
}

/** What can be read and written at positions; an open file is one. */
export interface Bytes {
  read(into: Buffer, at: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  write(from: Buffer, at: number, length: number, position: number): Promise<{ readonly bytesWritten: number }>;
}

const chunkBytes = 65_536;

export interface AskedFile {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pass: Pass;
  /** Aborted when the pass is cut. */
  readonly signal: AbortSignal;
  readonly query: URLSearchParams;
  readonly segments: readonly string[];
}

/** Writes the request's body from a position on. False if there was more of it than room; that is not written. */
export async function receive(
  { request, pass, signal }: AskedFile,
  bytes: Bytes,
  from: number,
  room = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  let at = from;
  for await (const chunk of until(signal, request)) {
    if (at + chunk.length - from > room) return false;
    if (!pass.take(chunk.length, "in")) return true;
    await writeAll(bytes, chunk, at);
    at += chunk.length;
  }
  return true;
}

/** The chunks until the signal; then the connection is left as it is, because there is an answer to be given on it. */
async function* until(signal: AbortSignal, request: IncomingMessage): AsyncGenerator<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false });
  const stopped = new Promise<{ done: true; value: undefined }>((resolve) => {
    signal.addEventListener("abort", () => resolve({ done: true, value: undefined }), { once: true });
  });
  for (;;) {
    const { done, value } = await Promise.race([chunks.next(), stopped]);
    if (done === true || signal.aborted) break;
    yield value as Buffer;
  }
  // What still comes is dropped, so that the other side can finish sending and read the answer.
  request.resume();
}

export async function send(bytes: Bytes, { response, pass }: AskedFile, span: Span): Promise<void> {
  const buffer = Buffer.alloc(Math.min(chunkBytes, Math.max(span.length, 1)));
  for (let sent = 0; sent < span.length; ) {
    const wanted = Math.min(buffer.length, span.length - sent);
    const { bytesRead } = await bytes.read(buffer, 0, wanted, span.from + sent);
    // A file that became shorter meanwhile cannot be answered as was promised.
    if (bytesRead === 0) return void response.destroy();
    if (response.destroyed || !pass.take(bytesRead, "out")) return;
    sent += bytesRead;
    if (!response.write(Buffer.from(buffer.subarray(0, bytesRead)))) await drained(response);
  }
  response.end();
}

/** The one range of a Range header; null for the whole, which is also the answer to what is not understood. */
export function spanOf(header: string | undefined, size: number): Span | "outside" | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || (first === "" && last === "")) return null;
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(Number(last) + 1, size);
  return from < end ? { from, length: end - from } : "outside";
}

export function wholeNumber(text: string): number | null {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : null;
}

async function writeAll(bytes: Bytes, chunk: Buffer, from: number): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    const { bytesWritten } = await bytes.write(chunk, written, chunk.length - written, from + written);
    written += bytesWritten;
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = whenOver(response, resolve);
  response.once("drain", resolve);
  await promise;
  cancel();
}
