/**
 * Artifacts as files, named by their content: `artifacts/<tenant>/ab/cdef…`. Bytes go into a temporary file first, are
 * made to last, and only then get their name; so a name that is there stands for the whole of it. Nothing is ever
 * changed; the operator may delete old ones.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, type ReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

export interface ArtifactLimits {
  /** Of one artifact, and of all together. */
  readonly bytesMax: number;
  readonly totalBytesMax: number;
}

export interface StoredArtifact {
  readonly sha256: string;
  readonly size: number;
}

export type PutProblem = "artifact_too_large" | "artifact_mismatch" | "artifact_space_exhausted" | "disk_full";

/** How a file gets its bytes; tests have their own, which finds no space. */
type Write = (file: FileHandle, chunk: Buffer) => Promise<unknown>;

/** No tenant's id begins with a dot. */
const unfinishedName = ".unfinished";

export class ArtifactFiles {
  private readonly folder: string;
  private readonly limits: ArtifactLimits;
  /** What there is and what is being written, once it was counted. */
  private used: Promise<{ bytes: number }> | null = null;

  private readonly write: Write;

  constructor(folder: string, limits: ArtifactLimits, write: Write = (file, chunk) => file.write(chunk)) {
    this.folder = folder;
    this.limits = limits;
    this.write = write;
  }

  /**
   * Reads to the end, or to the limit. `expected`: the checksum that was announced, if one was. A full disk is a problem
   * to answer with, not a fault: one that is thrown while the bytes are read would end the connection without an answer.
   */
  async put(
    tenant: string,
    bytes: AsyncIterable<Buffer>,
    expected: string | null,
  ): Promise<StoredArtifact | PutProblem> {
    try {
      return await this.store(tenant, bytes, expected);
    } catch (fault) {
      if (isDiskFull(fault)) return "disk_full";
      throw fault;
    }
  }

  private async store(
    tenant: string,
    bytes: AsyncIterable<Buffer>,
    expected: string | null,
  ): Promise<StoredArtifact | PutProblem> {
    const used = await this.count();
    const unfinished = join(this.folder, unfinishedName);
    await mkdir(unfinished, { recursive: true });
    const partial = join(unfinished, randomBytes(12).toString("hex"));
    const file = await open(partial, "wx", 0o600);
    let size = 0;
    let isKept = false;
    try {
      const hash = createHash("sha256");
      for await (const chunk of bytes) {
        size += chunk.length;
        used.bytes += chunk.length;
        if (size > this.limits.bytesMax) return "artifact_too_large";
        if (used.bytes > this.limits.totalBytesMax) return "artifact_space_exhausted";
        hash.update(chunk);
        try {
          await this.write(file, chunk);
        } catch (fault) {
          if (isDiskFull(fault)) return "disk_full";
          throw fault;
        }
      }
      const sha256 = hash.digest("hex");
      if (expected !== null && expected !== sha256) return "artifact_mismatch";
      await file.sync();
      isKept = await this.keep(partial, this.pathOf(tenant, sha256));
      return { sha256, size };
    } finally {
      await file.close();
      if (!isKept) {
        used.bytes -= size;
        await rm(partial, { force: true });
      }
    }
  }

  /** False where the same content was there already. */
  private async keep(partial: string, path: string): Promise<boolean> {
    if ((await sizeOf(path)) !== null) return false;
    await mkdir(dirname(path), { recursive: true });
    await rename(partial, path);
    await syncFolder(dirname(path));
    return true;
  }

  async find(tenant: string, sha256: string): Promise<{ readonly size: number; open(): ReadStream } | null> {
    const path = this.pathOf(tenant, sha256);
    const size = await sizeOf(path);
    return size === null ? null : { size, open: () => createReadStream(path) };
  }

  private pathOf(tenant: string, sha256: string): string {
    return join(this.folder, tenant, sha256.slice(0, 2), sha256.slice(2));
  }

  /** Once, when it is first needed; what an earlier run did not finish is removed first. */
  private count(): Promise<{ bytes: number }> {
    this.used ??= (async () => {
      await rm(join(this.folder, unfinishedName), { recursive: true, force: true });
      let bytes = 0;
      const entries = await unlessMissing(readdir(this.folder, { recursive: true, withFileTypes: true }));
      for (const entry of entries ?? []) {
        if (entry.isFile()) bytes += (await sizeOf(join(entry.parentPath, entry.name))) ?? 0;
      }
      return { bytes };
    })();
    return this.used;
  }
}

function isDiskFull(fault: unknown): boolean {
  return fault instanceof Error && "code" in fault && (fault.code === "ENOSPC" || fault.code === "EDQUOT");
}

async function sizeOf(path: string): Promise<number | null> {
  return (await unlessMissing(stat(path)))?.size ?? null;
}

export async function unlessMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (fault) {
    if (fault instanceof Error && "code" in fault && (fault.code === "ENOENT" || fault.code === "ENOTDIR")) return null;
    throw fault;
  }
}

/** A new name lasts through a loss of power only when its folder was written too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
