/**
 * What senders say of artifacts: for which task, of which type, in which role. One small file each,
 * `staged/<tenant>/tasks/<SHA-256 of the task's id>/<artifact>.json`, and the last one said of an artifact also under
 * `staged/<tenant>/artifacts/`. The bytes are in the artifact store; where they are gone, so is this.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Staging } from "../../mcp/control-plane.ts";
import { type ArtifactFiles, isStored, type PutProblem, unlessMissing } from "./artifact-files.ts";
import type { ArtifactQuotas } from "./artifact-use.ts";

export interface StagedArtifact extends Staging {
  readonly sha256: string;
  readonly size: number;
  readonly stagedAt: number;
}

/** For one task. */
const perTaskMax = 1_000;

const hex = /^[0-9a-f]{64}$/;

export class StagedArtifacts {
  readonly bytesMax: number;
  private readonly folder: string;
  private readonly files: ArtifactFiles;
  /** Files of each tenant, once they were counted: the same bytes can be staged for any number of tasks. */
  private readonly records = new Map<string, Promise<{ count: number }>>();

  constructor(folder: string, files: ArtifactFiles, bytesMax: number) {
    this.folder = folder;
    this.files = files;
    this.bytesMax = bytesMax;
  }

  async stage(
    tenant: string,
    staging: Staging,
    bytes: Uint8Array,
    { now, quotas }: { readonly now: number; readonly quotas: ArtifactQuotas },
  ): Promise<StagedArtifact | PutProblem> {
    const folder = this.ofTaskIn(tenant, staging.taskId);
    const names = (await unlessMissing(readdir(folder))) ?? [];
    if (names.length >= perTaskMax) return "artifact_space_exhausted";
    const records = await this.recordsOf(tenant);
    const { artifactsMax } = quotas;
    if (records.count >= artifactsMax) return { quota: "artifacts_max", used: records.count, limit: artifactsMax };
    const stored = await this.files.put(tenant, inOnePiece(bytes), null, quotas);
    if (!isStored(stored)) return stored;
    const { sha256, size } = stored;
    const staged = { ...staging, sha256, size, stagedAt: now };
    if (!names.includes(`${sha256}.json`)) records.count++;
    await write(folder, `${sha256}.json`, staged);
    await write(join(this.folder, tenant, "artifacts"), `${sha256}.json`, staged);
    return staged;
  }

  async find(tenant: string, sha256: string): Promise<StagedArtifact | null> {
    if (!hex.test(sha256)) return null;
    return this.read(tenant, join(this.folder, tenant, "artifacts", `${sha256}.json`));
  }

  /** The oldest first. */
  async ofTask(tenant: string, taskId: string): Promise<readonly StagedArtifact[]> {
    const folder = this.ofTaskIn(tenant, taskId);
    const names = (await unlessMissing(readdir(folder))) ?? [];
    const whole = names.filter((name) => name.endsWith(".json"));
    const found = await Promise.all(whole.map((name) => this.read(tenant, join(folder, name))));
    const here = found.filter((one) => one !== null);
    return here.sort((a, b) => a.stagedAt - b.stagedAt || (a.sha256 < b.sha256 ? -1 : 1));
  }

  /** What is said of artifacts that are gone goes too; then they are counted again. */
  async sweep(): Promise<void> {
    for (const tenant of (await unlessMissing(readdir(this.folder))) ?? []) {
      for (const path of await jsonFilesIn(join(this.folder, tenant)))
        if ((await this.read(tenant, path)) === null) await rm(path, { force: true });
    }
    this.records.clear();
  }

  private recordsOf(tenant: string): Promise<{ count: number }> {
    const counted =
      this.records.get(tenant) ??
      jsonFilesIn(join(this.folder, tenant, "tasks")).then((found) => ({ count: found.length }));
    this.records.set(tenant, counted);
    return counted;
  }

  private async read(tenant: string, path: string): Promise<StagedArtifact | null> {
    const text = await unlessMissing(readFile(path, "utf8"));
    if (text === null) return null;
    const staged = JSON.parse(text) as StagedArtifact;
    return (await this.files.find(tenant, staged.sha256)) === null ? null : staged;
  }

  private ofTaskIn(tenant: string, taskId: string): string {
    return join(this.folder, tenant, "tasks", createHash("sha256").update(taskId).digest("hex"));
  }
}

async function jsonFilesIn(folder: string): Promise<readonly string[]> {
  const entries = (await unlessMissing(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".json"))
    .map(({ parentPath, name }) => join(parentPath, name));
}

async function* inOnePiece(bytes: Uint8Array): AsyncIterable<Buffer> {
  yield Buffer.from(bytes);
}

/** Whole or not at all: a name that exists stands for all of it. */
async function write(folder: string, name: string, staged: StagedArtifact): Promise<void> {
  await mkdir(folder, { recursive: true });
  const partial = join(folder, `.${randomBytes(8).toString("hex")}`);
  const file = await open(partial, "wx", 0o600);
  try {
    await file.writeFile(JSON.stringify(staged));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, join(folder, name));
}
