/**
 * An agent of the caller's naming: its registration, its states, its checkpoints, and work under leases in its name. The
 * name outlives the process: another instance that registers it takes it up, and this one is refused from then on (A3).
 */
import type { Manifest } from "./acquiring.ts";
import type { Actor } from "./actor.ts";
import type { CallOptions, Client, OperationInput } from "./client.ts";
import {
  type DigestFile,
  type DigestInput,
  type DigestStore,
  openDigestStore,
  type Resumed,
  type SavedDigest,
  type VerifiedLease,
} from "./digest.ts";
import { LeaseholdError } from "./errors.ts";
import { type Hold, type HoldOptions, holdUntilReleased } from "./hold.ts";
import { drawKey, type OperationName } from "./idempotency.ts";
import type { AgentState, OperationAnswers, RegisteredAgent } from "./wire.ts";
import { type Held, type WithLeaseOptions, workUnder } from "./with-lease.ts";
import { presentWork, Works } from "./works.ts";

export interface AgentOptions {
  /** Drawn if left out; then no other process can take the agent up. */
  readonly id?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Where its checkpoints are kept beside the server. */
  readonly digestFile?: string | undefined;
}

type WithoutAgent<N extends OperationName> = Omit<OperationInput<N>, "agent_id">;

export class Agent implements Actor {
  readonly client: Client;
  readonly agentId: string;
  private readonly digestFile: string | null;
  private readonly works: Works;
  private present: Pick<RegisteredAgent, "agent_token" | "epoch" | "priority_timestamp">;
  private phase: AgentState;
  private digests: DigestStore | null = null;

  private constructor(client: Client, registered: RegisteredAgent, digestFile: string | null, isDrawn: boolean) {
    this.client = client;
    this.agentId = registered.agent_id;
    this.present = registered;
    this.phase = registered.state;
    this.digestFile = digestFile;
    this.works = new Works({ mayHoldMore: !isDrawn });
  }

  static async register(client: Client, { id, labels, digestFile }: AgentOptions): Promise<Agent> {
    const agentId = id ?? drawKey("agt");
    const registered = await client.call("register_agent", { agent_id: agentId, ...(labels && { labels }) });
    return new Agent(client, registered, digestFile ?? null, id === undefined);
  }

  get token(): string {
    return this.present.agent_token;
  }

  get epoch(): number {
    return this.present.epoch;
  }

  get priorityTimestamp(): number {
    return this.present.priority_timestamp;
  }

  /** The last state that the server named here. Acquiring and releasing change it without a word. */
  get state(): AgentState {
    return this.phase;
  }

  /** Any operation about this agent, with its token. */
  call<N extends OperationName>(
    name: N,
    input: WithoutAgent<N>,
    options: CallOptions = {},
  ): Promise<OperationAnswers[N]> {
    const whole = { ...input, agent_id: this.agentId } as unknown as OperationInput<N>;
    return this.client.call(name, whole, { ...options, token: this.token });
  }

  /** As the client's, in this agent's name: its pieces of work do not stand in each other's way (C2). */
  withLease<T>(manifest: Manifest, body: (held: Held) => Promise<T> | T, options: WithLeaseOptions = {}): Promise<T> {
    const outer = presentWork();
    return workUnder(this, this.works, manifest, body, options, outer?.works === this.works ? outer : null);
  }

  /** As the client's, in this agent's name. */
  hold(manifest: Manifest, options: HoldOptions = {}): Promise<Hold> {
    return holdUntilReleased((body) => this.withLease(manifest, body, { ...options, retryLost: "never" }));
  }

  async transition(to: AgentState, options: CallOptions = {}): Promise<AgentState> {
    const { state } = await this.call("transition_agent", { to }, options);
    this.phase = state;
    return state;
  }

  /** Before a restart on purpose: what is held is kept for 15 s past its end, once (L9). */
  async announceRestart(options: CallOptions = {}): Promise<void> {
    const { state } = await this.call("restart_agent", {}, options);
    this.phase = state;
  }

  /** VERIFY_ALL: what of its leases is alive, by the server's word; after a restart a heartbeat then revives them (L8). */
  async verifyAll(leaseIds?: readonly string[], options: CallOptions = {}): Promise<readonly VerifiedLease[]> {
    const { leases } = await this.call("verify_all", leaseIds === undefined ? {} : { lease_ids: leaseIds }, options);
    return leases.filter((lease): lease is VerifiedLease => lease.state !== "UNKNOWN");
  }

  /** On disk first, so that a crash in between leaves the newer one; then on the server. */
  async saveDigest(input: DigestInput, options: CallOptions = {}): Promise<SavedDigest> {
    const digest: SavedDigest = {
      checkpoint_id: input.checkpointId ?? drawKey("ckp"),
      resume_point: input.resumePoint,
      context: input.context ?? null,
      intent_backlog: input.intentBacklog ?? [],
      resolution_strategy: input.resolutionStrategy ?? "RETRY",
    };
    if (this.digestFile !== null) {
      const store = await this.store();
      await store.writeDigestFile(this.digestFile, this.fileOf(digest, input.assumptions ?? []));
    }
    const { context, ...rest } = digest;
    await this.call("save_digest", context === null ? rest : { ...rest, context }, options);
    return digest;
  }

  /** The work is done, and there is nothing to take up. */
  async dropDigestFile(): Promise<void> {
    if (this.digestFile === null) return;
    const store = await this.store();
    await store.removeDigestFile(this.digestFile);
  }

  /**
   * Takes the work up from its checkpoint: null where there is none. Rejects with AssumptionFailed where what it relied
   * on has changed; then the digest is dropped, on disk too, and the agent plans again (A5).
   */
  async resume(
    assumptions?: readonly { readonly resource: string; readonly version: string }[],
    options: CallOptions = {},
  ): Promise<Resumed | null> {
    const file = this.digestFile === null ? null : await (await this.store()).readDigestFile(this.digestFile);
    const mine = file !== null && file.identity.agent_id === this.agentId ? file : null;
    const assumed = assumptions ?? mine?.assumptions ?? [];
    let answer: OperationAnswers["resume_agent"] | null;
    try {
      answer = await this.call("resume_agent", assumed.length === 0 ? {} : { assumptions: assumed }, options);
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (error.code === "assumption_failed") {
        const { epoch, agent_token } = error.body as Pick<RegisteredAgent, "epoch" | "agent_token">;
        this.present = { ...this.present, epoch, agent_token };
        this.phase = "PLANNING";
        await this.dropDigestFile();
      }
      if (error.code !== "digest_unknown") throw error;
      answer = null;
    }
    if (answer !== null) this.present = { ...this.present, epoch: answer.epoch, agent_token: answer.agent_token };
    if (answer === null && mine === null) return null;
    const digest = newerOf(mine, answer);
    const leases = await this.verifyAll(undefined, options);
    return { digest, observationUpdate: answer?.observation_update ?? null, leases };
  }

  private fileOf(digest: SavedDigest, assumptions: DigestFile["assumptions"]): DigestFile {
    const { epoch, priority_timestamp } = this.present;
    return {
      version: "1.0",
      identity: { agent_id: this.agentId, priority_timestamp, epoch },
      recovery: { last_phase: this.phase, pending_intents: digest.intent_backlog },
      digest,
      assumptions,
    };
  }

  private async store(): Promise<DigestStore> {
    this.digests ??= await openDigestStore();
    return this.digests;
  }
}

/**
 * The file is written first, so where the two differ it is the newer one, unless another instance has worked on since,
 * which the epoch tells: each registration and resumption of this one raised it once.
 */
function newerOf(file: DigestFile | null, answer: OperationAnswers["resume_agent"] | null): SavedDigest {
  if (answer === null) {
    if (file === null) throw new TypeError("one of the two is there");
    return file.digest;
  }
  const { digest, epoch } = answer;
  if (file === null || file.digest.checkpoint_id === digest.checkpoint_id) return digest;
  const takenUpSince = epoch - file.identity.epoch;
  return takenUpSince <= ownTakeUps ? file.digest : digest;
}

/** A new process registers, and then resumes; an old one only resumes. */
const ownTakeUps = 2;
