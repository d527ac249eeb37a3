/**
 * How much of the artifact store each tenant uses (S4), in files and bytes. An artifact counts at least a block of the
 * disk, however small it is: many of one byte would otherwise fill a disk that the count says is empty.
 */

export const blockBytes = 4_096;

export interface ArtifactUse {
  files: number;
  bytes: number;
}

/** A quota that is full, by its name on the wire. */
export interface FullQuota {
  readonly quota: "artifacts_max" | "artifact_bytes_max";
  readonly used: number;
  readonly limit: number;
}

export interface ArtifactQuotas {
  readonly artifactsMax: number;
  readonly artifactBytesMax: number;
}

export class ArtifactUses {
  private readonly tenants = new Map<string, ArtifactUse>();
  /** Of these, what is on its way: a count of files does not see it. */
  private readonly coming = new Map<string, ArtifactUse>();
  private totalBytes = 0;
  /**
   * Raised with every file that came or went, so that a count that took a while can tell whether it is still right. An
   * upload that is refused changes no file: clients that try again and again would otherwise keep a count from being used.
   */
  changes = 0;

  of(tenant: string): ArtifactUse {
    return this.tenants.get(tenant) ?? { files: 0, bytes: 0 };
  }

  get bytes(): number {
    return this.totalBytes;
  }

  private add(tenant: string, files: number, bytes: number): void {
    addIn(this.tenants, tenant, files, bytes);
    this.totalBytes += bytes;
  }

  /** Of an upload: it counts while it comes, so that many at once are no way around the limits. */
  addComing(tenant: string, files: number, bytes: number): void {
    addIn(this.coming, tenant, files, bytes);
    this.add(tenant, files, bytes);
  }

  /** An upload has become a file, and counts as one. */
  hasCome(tenant: string, bytes: number): void {
    addIn(this.coming, tenant, -1, -bytes);
    this.changes++;
  }

  /** Of a file that was deleted. */
  remove(tenant: string, bytes: number): void {
    this.add(tenant, -1, -bytes);
    this.changes++;
  }

  /** In the place of what there was, but for what is on its way. */
  set(counted: ReadonlyMap<string, ArtifactUse>): void {
    this.tenants.clear();
    this.totalBytes = 0;
    for (const uses of [counted, this.coming]) {
      for (const [tenant, { files, bytes }] of uses) this.add(tenant, files, bytes);
    }
  }

  /** Whether one more, of this size, is too much. */
  whyFull(tenant: string, { artifactsMax, artifactBytesMax }: ArtifactQuotas, more: number): FullQuota | null {
    const { files, bytes } = this.of(tenant);
    if (files >= artifactsMax) return { quota: "artifacts_max", used: files, limit: artifactsMax };
    if (bytes + more <= artifactBytesMax) return null;
    return { quota: "artifact_bytes_max", used: bytes, limit: artifactBytesMax };
  }
}

function addIn(uses: Map<string, ArtifactUse>, tenant: string, files: number, bytes: number): void {
  const use = uses.get(tenant) ?? { files: 0, bytes: 0 };
  use.files += files;
  use.bytes += bytes;
  if (use.files === 0 && use.bytes === 0) uses.delete(tenant);
  else uses.set(tenant, use);
}

export function countedBytes(size: number): number {
  return Math.max(size, blockBytes);
}
