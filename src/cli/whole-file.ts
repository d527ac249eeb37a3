/** A file that appears whole and durable, or not at all. */
import { rename, rm, stat, writeFile } from "node:fs/promises";

/** Returns the size. `check` may throw: then there is no file. */
export async function writeWhole(
  file: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  check?: (size: number) => void,
): Promise<number> {
  const partial = `${file}.part`;
  try {
    // A link that somebody has put there is not followed.
    await rm(partial, { force: true });
    await writeFile(partial, content, { flag: "wx", mode: 0o600, flush: true });
    const { size } = await stat(partial);
    check?.(size);
    await rename(partial, file);
    return size;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
