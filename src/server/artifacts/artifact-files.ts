/**
 * Artifacts as files, named by their content: `artifacts/<tenant>/ab/cdef…`. Bytes go into a temporary file first, are
 * made to last, and only then get their name; so a name that is there stands for the whole of it. Their content is never
 * changed. The time of a file says when it was stored last, or, far in the future, that a task or a receipt points to it.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, type ReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ArtifactQuotas, type ArtifactUse, ArtifactUses, countedBytes, type FullQuota } from "./artifact-use.ts";

export interface ArtifactLimits {
  /** Of one artifact, and of all together. */
  readonly bytesMax: number;
  readonly totalBytesMax: number;
  /** Others write into the folder at the same time: what is unfinished may be theirs. */
  readonly isShared?: boolean;
}

export interface StoredArtifact {
  readonly sha256: string;
  readonly size: number;
}

export interface ListedArtifact extends StoredArtifact {
  /** When it was stored last; null where something points to it. */
  readonly storedAt: number | null;
}

export type PutProblem =
  | ("artifact_too_large" | "artifact_mismatch" | "artifact_space_exhausted" | "disk_full")
  | FullQuota;

export function isStored(found: StoredArtifact | PutProblem): found is StoredArtifact {
  return typeof found === "object" && "sha256" in found;
}

/** How a file gets its bytes; tests have their own, which finds no space. */
type Write = (file: FileHandle, chunk: Buffer) => Promise<unknown>;

/** No tenant's id begins with a dot. */
const unfinishedName = ".unfinished";
/** The time of a file that something points to: the year 2100. */
const referredAt = new Date(4_102_444_800_000);
/** An upload that is older than this was cut off by a crash. */
const unfinishedMs = 24 * 3_600_000;
const namePattern = /^[0-9a-f]{62}$/;

export class ArtifactFiles {
  private readonly folder: string;
  private readonly limits: ArtifactLimits;
  private readonly uses = new ArtifactUses();
  /** Settled once what an earlier run has left was counted. */
  private counted: Promise<unknown> | null = null;
  private readonly write: Write;

  constructor(folder: string, limits: ArtifactLimits, write: Write = (file, chunk) => file.write(chunk)) {
    this.folder = folder;
    this.limits = limits;
    this.write = write;
  }

  get bytesMax(): number {
    return this.limits.bytesMax;
  }

  /**
   * Reads to the end, or to the limit. `expected`: the checksum that was announced, if one was. A full disk is a problem
   * to answer with, not a fault: one that is thrown while the bytes are read would end the connection without an answer.
   */
  async put(
    tenant: string,
    bytes: AsyncIterable<Buffer>,
    expected: string | null,
    quotas: ArtifactQuotas,
  ): Promise<StoredArtifact | PutProblem> {
    try {
      await this.count();
      const full = this.uses.whyFull(tenant, quotas, 0);
      return full ?? (await this.store(tenant, bytes, expected, quotas));
    } catch (fault) {
      if (isDiskFull(fault)) return "disk_full";
      throw fault;
    }
  }

  private async store(
    tenant: string,
    bytes: AsyncIterable<Buffer>,
    expected: string | null,
    quotas: ArtifactQuotas,
  ): Promise<StoredArtifact | PutProblem> {
    const unfinished = join(this.folder, unfinishedName);
    await mkdir(unfinished, { recursive: true });
    const partial = join(unfinished, randomBytes(12).toString("hex"));
    const file = await open(partial, "wx", 0o600);
    let size = 0;
    let isKept = false;
    let counted = countedBytes(0);
    this.uses.addComing(tenant, 1, counted);
    try {
      const hash = createHash("sha256");
      const problem = this.whyTooMuch(tenant, size, quotas);
      if (problem !== null) return problem;
      for await (const chunk of bytes) {
        size += chunk.length;
        this.uses.addComing(tenant, 0, countedBytes(size) - counted);
        counted = countedBytes(size);
        const problem = this.whyTooMuch(tenant, size, quotas);
        if (problem !== null) return problem;
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
      if (isKept) this.uses.hasCome(tenant, counted);
      else {
        this.uses.addComing(tenant, -1, -counted);
        await rm(partial, { force: true });
      }
    }
  }

  /** It is counted already. */
  private whyTooMuch(tenant: string, size: number, quotas: ArtifactQuotas): PutProblem | null {
    if (size > this.limits.bytesMax) return "artifact_too_large";
    if (this.uses.bytes > this.limits.totalBytesMax) return "artifact_space_exhausted";
    const { files, bytes } = this.uses.of(tenant);
    const { artifactsMax, artifactBytesMax } = quotas;
    if (files > artifactsMax) return { quota: "artifacts_max", used: files - 1, limit: artifactsMax };
    if (bytes <= artifactBytesMax) return null;
    return { quota: "artifact_bytes_max", used: bytes - countedBytes(size), limit: artifactBytesMax };
  }

  /** False where the same content was there already; it is as good as new then. */
  private async keep(partial: string, path: string): Promise<boolean> {
    const there = await unlessMissing(stat(path));
    if (there !== null) {
      const now = new Date();
      if (!isReferred(there.mtimeMs)) await utimes(path, now, now);
      return false;
    }
    await mkdir(dirname(path), { recursive: true });
    await rename(partial, path);
    await syncFolder(dirname(path));
    return true;
  }

  async find(tenant: string, sha256: string): Promise<{ readonly size: number; open(): ReadStream } | null> {
    const path = this.pathOf(tenant, sha256);
    const found = await unlessMissing(stat(path));
    return found === null ? null : { size: found.size, open: () => createReadStream(path) };
  }

  /** False where there was none. A reader that has begun gets all of it. */
  async delete(tenant: string, sha256: string): Promise<boolean> {
    await this.count();
    const path = this.pathOf(tenant, sha256);
    const found = await unlessMissing(stat(path));
    if (found === null || (await unlessMissing(rm(path))) === null) return false;
    this.uses.remove(tenant, countedBytes(found.size));
    return true;
  }

  /** In the order of their names, after the given one. */
  async list(tenant: string, after: string | null, limit: number): Promise<readonly ListedArtifact[]> {
    const found: ListedArtifact[] = [];
    for (const prefix of (await this.namesIn(join(this.folder, tenant))).filter((name) => name.length === 2)) {
      if (after !== null && prefix < after.slice(0, 2)) continue;
      for (const name of await this.namesIn(join(this.folder, tenant, prefix))) {
        const sha256 = prefix + name;
        if (!namePattern.test(name) || (after !== null && sha256 <= after)) continue;
        const file = await unlessMissing(stat(this.pathOf(tenant, sha256)));
        if (file === null) continue;
        const storedAt = isReferred(file.mtimeMs) ? null : Math.trunc(file.mtimeMs);
        if (found.push({ sha256, size: file.size, storedAt }) === limit) return found;
      }
    }
    return found;
  }

  private async namesIn(folder: string): Promise<readonly string[]> {
    return ((await unlessMissing(readdir(folder))) ?? []).sort();
  }

  /** A task or a receipt points to them, and may as long as there is a ledger; unknown ones are somebody else's. */
  async refer(tenant: string, sha256s: readonly string[]): Promise<void> {
    for (const sha256 of sha256s) await unlessMissing(utimes(this.pathOf(tenant, sha256), referredAt, referredAt));
  }

  async use(tenant: string): Promise<ArtifactUse> {
    await this.count();
    return { ...this.uses.of(tenant) };
  }

  /**
   * Counts what there is, since files may also be deleted by hand, and deletes what nothing points to and was stored
   * before the given time. Returns how many were deleted.
   */
  async sweep(before: number): Promise<number> {
    await this.count();
    await this.sweepUnfinished();
    const { changes } = this.uses;
    const counted = new Map<string, ArtifactUse>();
    const old: { readonly tenant: string; readonly sha256: string }[] = [];
    for await (const { tenant, sha256, size, mtimeMs } of this.all()) {
      addTo(counted, tenant, size);
      if (mtimeMs < before) old.push({ tenant, sha256 });
    }
    // Otherwise the next one is for it.
    if (this.uses.changes === changes) this.uses.set(counted);
    for (const { tenant, sha256 } of old) await this.deleteUnreferred(tenant, sha256, before);
    return old.length;
  }

  /** Looked at again: meanwhile something may point to it. */
  private async deleteUnreferred(tenant: string, sha256: string, before: number): Promise<void> {
    const file = await unlessMissing(stat(this.pathOf(tenant, sha256)));
    if (file !== null && file.mtimeMs < before) await this.delete(tenant, sha256);
  }

  private async sweepUnfinished(): Promise<void> {
    const folder = join(this.folder, unfinishedName);
    for (const name of await this.namesIn(folder)) {
      const file = await unlessMissing(stat(join(folder, name)));
      if (file !== null && file.mtimeMs < Date.now() - unfinishedMs) await rm(join(folder, name), { force: true });
    }
  }

  private pathOf(tenant: string, sha256: string): string {
    return join(this.folder, tenant, sha256.slice(0, 2), sha256.slice(2));
  }

  private async *all() {
    for (const tenant of await this.namesIn(this.folder)) {
      if (tenant === unfinishedName) continue;
      for (const prefix of await this.namesIn(join(this.folder, tenant))) {
        for (const name of await this.namesIn(join(this.folder, tenant, prefix))) {
          const file = await unlessMissing(stat(join(this.folder, tenant, prefix, name)));
          if (file !== null) yield { tenant, sha256: prefix + name, size: file.size, mtimeMs: file.mtimeMs };
        }
      }
    }
  }

  /** Once, when it is first needed; what an earlier run did not finish is removed first. */
  private count(): Promise<unknown> {
    this.counted ??= (async () => {
      if (this.limits.isShared === true) await this.sweepUnfinished();
      else await rm(join(this.folder, unfinishedName), { recursive: true, force: true });
      const counted = new Map<string, ArtifactUse>();
      for await (const { tenant, size } of this.all()) addTo(counted, tenant, size);
      this.uses.set(counted);
    })();
    return this.counted;
  }
}

function addTo(counted: Map<string, ArtifactUse>, tenant: string, size: number): void {
  const { files, bytes } = counted.get(tenant) ?? { files: 0, bytes: 0 };
  counted.set(tenant, { files: files + 1, bytes: bytes + countedBytes(size) });
}

function isReferred(mtimeMs: number): boolean {
  return mtimeMs >= referredAt.getTime();
}

function isDiskFull(fault: unknown): boolean {
  return fault instanceof Error && "code" in fault && (fault.code === "ENOSPC" || fault.code === "EDQUOT");
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
