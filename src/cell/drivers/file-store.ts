/** A file or a block device, of which a range is leased. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Store } from "./file-areas.ts";
import type { Bytes } from "./file-transfer.ts";

/** Follows no link, and does not wait for a writer if there is a pipe in its place. */
export async function openStore(file: string, mode: "read" | "write"): Promise<Store> {
  const access = mode === "read" ? constants.O_RDONLY : constants.O_RDWR;
  const handle = await open(file, access | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (stats.isFile()) return new FileStore(handle, true);
    if (stats.isBlockDevice()) return new FileStore(handle, false);
    throw Object.assign(new Error("it is neither a file nor a block device"), { code: "ENOTFILE" });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

class FileStore implements Store {
  readonly mayGrow: boolean;
  private readonly handle: FileHandle;

  constructor(handle: FileHandle, mayGrow: boolean) {
    this.handle = handle;
    this.mayGrow = mayGrow;
  }

  async sizeUpTo(end: number): Promise<number> {
    return this.mayGrow ? Math.min((await this.handle.stat()).size, end) : await readableUpTo(this.handle, end);
  }

  read(into: Buffer, at: number, length: number, position: number): Promise<{ bytesRead: number }> {
    return this.handle.read(into, at, length, position);
  }

  write(from: Buffer, at: number, length: number, position: number): Promise<{ bytesWritten: number }> {
    return this.handle.write(from, at, length, position);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.handle.close();
  }
}

/**
 * How many bytes can be read, at most `end`. Of a device stat says 0, and Node can neither seek to its end nor ask the
 * system for its size; a read beyond the end returns nothing. Usually the first read is enough: all of it exists.
 */
export async function readableUpTo(bytes: Pick<Bytes, "read">, end: number): Promise<number> {
  const one = Buffer.alloc(1);
  const exists = async (position: number): Promise<boolean> => (await bytes.read(one, 0, 1, position)).bytesRead === 1;
  if (end === 0 || (await exists(end - 1))) return end;
  // Binary search: everything before `low` exists, nothing from `high` on does.
  let [low, high] = [0, end - 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await exists(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
