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
  private totalBytes = 0;
  /** Raised with every change, so that a count that took a while can tell whether it is still right. */
  changes = 0;

  of(tenant: string): ArtifactUse {
    return this.tenants.get(tenant) ?? { files: 0, bytes: 0 };
  }

  get bytes(): number {
    return this.totalBytes;
  }

  add(tenant: string, files: number, bytes: number): void {
    const use = this.of(tenant);
    use.files += files;
    use.bytes += bytes;
    this.totalBytes += bytes;
    this.changes++;
    if (use.files === 0 && use.bytes === 0) this.tenants.delete(tenant);
    else this.tenants.set(tenant, use);
  }

  /** In the place of what there was. */
  set(counted: ReadonlyMap<string, ArtifactUse>): void {
    this.tenants.clear();
    this.totalBytes = 0;
    for (const [tenant, { files, bytes }] of counted) this.add(tenant, files, bytes);
  }

  /** Whether one more, of this size, is too much. */
  whyFull(tenant: string, { artifactsMax, artifactBytesMax }: ArtifactQuotas, more: number): FullQuota | null {
    const { files, bytes } = this.of(tenant);
    if (files >= artifactsMax) return { quota: "artifacts_max", used: files, limit: artifactsMax };
    if (bytes + more <= artifactBytesMax) return null;
    return { quota: "artifact_bytes_max", used: bytes, limit: artifactBytesMax };
  }
}

export function countedBytes(size: number): number {
  return Math.max(size, blockBytes);
}
