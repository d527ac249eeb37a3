/**
 * An agent's checkpoints (A2): one at a time, on disk first, so that a crash in between leaves the newer one; then on the
 * server. With a source they are saved by themselves whenever the agent is stopped.
 */
import type { CallOptions } from "./client.ts";
import { type DigestFile, type DigestInput, type DigestStore, openDigestStore, type SavedDigest } from "./digest.ts";
import { drawKey } from "./idempotency.ts";
import type { Intent, OperationInputs } from "./wire.ts";

/** What a checkpoint is made of when the agent is stopped: after WAIT, DIE or PAUSED, or without its leases. */
export type DigestSource = () => Promise<DigestInput | null> | DigestInput | null;

type SaveInput = Omit<OperationInputs["save_digest"], "agent_id">;

export interface CheckpointOptions {
  /** null: only the server keeps them. */
  readonly file: string | null;
  /** null: they are saved by hand only. */
  readonly source: DigestSource | null;
  /** Who saves it, and where the work is. */
  readonly identify: () => Pick<DigestFile, "identity"> & { readonly phase: DigestFile["recovery"]["last_phase"] };
  readonly send: (digest: SaveInput, options: CallOptions) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

export class Checkpoints {
  private readonly options: CheckpointOptions;
  private last: Promise<unknown> = Promise.resolve();
  private store: Promise<DigestStore> | null = null;

  constructor(options: CheckpointOptions) {
    this.options = options;
  }

  /** In the order of the calls, so that the last one stays, on disk and on the server. */
  save(input: DigestInput, options: CallOptions = {}): Promise<SavedDigest> {
    const digest: SavedDigest = {
      checkpoint_id: input.checkpointId ?? drawKey("ckp"),
      resume_point: input.resumePoint,
      context: input.context ?? null,
      intent_backlog: input.intentBacklog ?? [],
      resolution_strategy: input.resolutionStrategy ?? "RETRY",
    };
    const { assumptions = [] } = input;
    return this.inTurn(async () => {
      await this.write(digest, assumptions);
      await this.send(digest, assumptions, options);
      return digest;
    });
  }

  /** From the source, if there is one. What it leaves out of the backlog is what could not be had. Never rejects. */
  async saveFromSource(wanted: readonly Intent[]): Promise<void> {
    const { source, onError } = this.options;
    if (source === null) return;
    try {
      const input = await source();
      if (input !== null) await this.save({ ...input, intentBacklog: input.intentBacklog ?? wanted });
    } catch (error) {
      onError(error);
    }
  }

  async send(
    { context, ...rest }: SavedDigest,
    assumptions: DigestFile["assumptions"],
    options: CallOptions,
  ): Promise<void> {
    const more = assumptions.length === 0 ? rest : { ...rest, assumptions };
    await this.options.send(context === null ? more : { ...more, context }, options);
  }

  async read(agentId: string): Promise<DigestFile | null> {
    const { file: path } = this.options;
    const file = path === null ? null : await (await this.files()).readDigestFile(path);
    return file?.identity.agent_id === agentId ? file : null;
  }

  drop(): Promise<void> {
    const { file: path } = this.options;
    if (path === null) return Promise.resolve();
    return this.inTurn(async () => (await this.files()).removeDigestFile(path));
  }

  private async write(digest: SavedDigest, assumptions: DigestFile["assumptions"]): Promise<void> {
    const { file: path, identify } = this.options;
    if (path === null) return;
    const { identity, phase } = identify();
    const recovery = { last_phase: phase, pending_intents: digest.intent_backlog };
    await (await this.files()).writeDigestFile(path, { version: "1.0", identity, recovery, digest, assumptions });
  }

  private inTurn<T>(step: () => Promise<T>): Promise<T> {
    const done = this.last.then(step);
    this.last = done.catch(() => undefined);
    return done;
  }

  private files(): Promise<DigestStore> {
    this.store ??= openDigestStore();
    return this.store;
  }
}
