/**
 * A digest on disk, always whole: written to a file beside it, synced, renamed over it, and the folder synced, so that
 * neither a crash of the program nor one of the machine leaves half of it (A2). For Node, Bun and Deno.
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { DigestFile } from "../digest.ts";

export async function writeDigestFile(path: string, file: DigestFile): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  // A name that no other save has, of this process or of one with the same id in another container.
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    const handle = await open(beside, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(file, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** null: there is none. A file that does not hold a digest is an error, and is not overwritten. */
export async function readDigestFile(path: string): Promise<DigestFile | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === "ENOENT") return null;
    throw error;
  }
  const file = JSON.parse(text) as Partial<DigestFile>;
  if (file.version !== "1.0" || file.identity === undefined || file.digest === undefined)
    throw new TypeError(`${path} is not a digest of Leasehold's SDK.`);
  return file as DigestFile;
}

export async function removeDigestFile(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncFolder(dirname(path));
}

/** Not every system can sync a folder; those that cannot keep renames in order without it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => null);
  try {
    await handle?.sync().catch(() => undefined);
  } finally {
    await handle?.close();
  }
}
