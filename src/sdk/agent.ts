/**
 * An agent of the caller's naming: its registration, its states, its checkpoints, and work under leases in its name. The
 * name outlives the process: another instance that registers it takes it up, and this one is refused from then on (A3).
 */
import type { Manifest } from "./acquiring.ts";
import type { Actor } from "./actor.ts";
import { AgentToken, type DrawnToken } from "./agent-token.ts";
import { Checkpoints, type DigestSource } from "./checkpoints.ts";
import type { CallOptions, Client, OperationInput } from "./client.ts";
import type { DigestFile, DigestInput, Merge, Resumed, SavedDigest, VerifiedLease } from "./digest.ts";
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
  /**
   * What to save whenever the agent gets WAIT, DIE or PAUSED, or loses its leases (A2); null: nothing this time. Left
   * out: checkpoints are saved by `saveDigest` only.
   */
  readonly digest?: DigestSource | undefined;
  /** Called for checkpoints that could not be saved by themselves. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface ResumeOptions extends CallOptions {
  /** Called before the work goes on where the digest's strategy is MERGE. */
  readonly merge?: Merge | undefined;
}

export interface ResumeWorkOptions extends WithLeaseOptions, Pick<ResumeOptions, "merge"> {
  readonly assumptions?: DigestInput["assumptions"];
}

type WithoutAgent<N extends OperationName> = Omit<OperationInput<N>, "agent_id">;

export class Agent implements Actor {
  readonly client: Client;
  readonly agentId: string;
  private readonly checkpoints: Checkpoints;
  private readonly works: Works;
  private readonly credential: AgentToken;
  private present: Pick<RegisteredAgent, "epoch" | "priority_timestamp">;
  private phase: AgentState;
  private found: readonly VerifiedLease[] = [];

  private constructor(client: Client, registered: RegisteredAgent, options: AgentOptions) {
    this.client = client;
    this.agentId = registered.agent_id;
    this.credential = new AgentToken(client, this.agentId, registered);
    this.present = registered;
    this.phase = registered.state;
    const { id, digestFile, digest, onError } = options;
    this.checkpoints = new Checkpoints({
      file: digestFile ?? null,
      source: digest ?? null,
      identify: () => ({ identity: this.identity(), phase: this.phase }),
      send: (saved, call) => this.call("save_digest", saved, call),
      onError: onError ?? (() => undefined),
    });
    this.works = new Works({
      mayHoldMore: id !== undefined,
      ...(digest !== undefined && { checkpoint: (wanted) => this.checkpoints.saveFromSource(wanted) }),
    });
  }

  /** One with a name may exist, and hold leases: what is true of them is asked before it works (L8). */
  static async register(client: Client, options: AgentOptions): Promise<Agent> {
    const { id, labels } = options;
    const agentId = id ?? drawKey("agt");
    const registered = await client.call("register_agent", { agent_id: agentId, ...(labels && { labels }) });
    const agent = new Agent(client, registered, options);
    if (id !== undefined) agent.found = await agent.verifyAll();
    return agent;
  }

  /** What it held when it was taken up here, by the server's word (L8). */
  get takenUp(): readonly VerifiedLease[] {
    return this.found;
  }

  get token(): string {
    return this.credential.token;
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

  /** On disk and on the server, after those that were saved before. */
  saveDigest(input: DigestInput, options: CallOptions = {}): Promise<SavedDigest> {
    return this.checkpoints.save(input, options);
  }

  /** The work is done, and there is nothing to take up. */
  dropDigestFile(): Promise<void> {
    return this.checkpoints.drop();
  }

  /**
   * Takes the work up from its checkpoint: null where there is none. Rejects with AssumptionFailed where what it relied
   * on has changed; then the digest is dropped, on disk too, and the agent plans again (A5). A strategy of ABORT ends the
   * unit of work; with MERGE, `merge` is called first (A2).
   */
  async resume(
    assumptions?: readonly { readonly resource: string; readonly version: string }[],
    { merge, ...options }: ResumeOptions = {},
  ): Promise<Resumed | null> {
    const file = await this.checkpoints.read(this.agentId);
    // The server knows those that were saved with its own digest.
    const isNewest = file !== null && this.epoch - file.identity.epoch < ownTakeUps;
    const assumed = assumptions ?? (isNewest ? file.assumptions : []);
    let answer = await this.takeUp(assumed, options);
    const isOnDiskOnly = answer === null;
    if (answer === null) {
      if (file === null) return null;
      // Only the disk has it: what it assumes is judged like that of any other.
      await this.checkpoints.send(file.digest, file.assumptions, options);
      answer = await this.takeUp(assumed, options);
      if (answer === null) throw new TypeError("a digest that was just saved is there");
    }
    const digest = newerOf(file, answer);
    const isAborted = digest.resolution_strategy === "ABORT";
    if (isAborted) {
      await this.transition("ABORTED", options);
      await this.dropDigestFile();
    }
    const observationUpdate = isOnDiskOnly ? null : answer.observation_update;
    const leases = isAborted ? [] : await this.verifyAll(undefined, options);
    const resumed = { digest, observationUpdate, leases, isAborted };
    if (digest.resolution_strategy === "MERGE") await merge?.(resumed);
    return resumed;
  }

  /**
   * `resume`, and then the work under the leases of the digest's backlog, acquired again (A2). null where there was nothing
   * to take up, or its strategy is ABORT. `held` is null where the backlog is empty.
   */
  async resumeWork<T>(
    body: (held: Held | null, resumed: Resumed) => Promise<T> | T,
    { merge, assumptions, ...options }: ResumeWorkOptions = {},
  ): Promise<T | null> {
    const { signal } = options;
    const resumed = await this.resume(assumptions, { signal, ...(merge !== undefined && { merge }) });
    if (resumed === null || resumed.isAborted) return null;
    const { resolution_strategy: strategy, intent_backlog: backlog } = resumed.digest;
    if (strategy === "MERGE" && merge === undefined)
      throw new TypeError("The digest's strategy is MERGE: give resumeWork a `merge` function.");
    if (backlog.length === 0) return body(null, resumed);
    return this.withLease(backlog, (held) => body(held, resumed), options);
  }

  /** null: the server has no checkpoint of it. */
  private async takeUp(
    assumptions: DigestFile["assumptions"],
    options: CallOptions,
  ): Promise<OperationAnswers["resume_agent"] | null> {
    try {
      const answer = await this.call("resume_agent", assumptions.length === 0 ? {} : { assumptions }, options);
      this.present = { ...this.present, epoch: answer.epoch };
      this.credential.replace(answer);
      return answer;
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (error.code === "digest_unknown") return null;
      if (error.code === "assumption_failed") {
        const drawn = error.body as Pick<RegisteredAgent, "epoch"> & DrawnToken;
        this.present = { ...this.present, epoch: drawn.epoch };
        this.credential.replace(drawn);
        this.phase = "PLANNING";
        await this.dropDigestFile();
      }
      throw error;
    }
  }

  private identity(): DigestFile["identity"] {
    const { epoch, priority_timestamp } = this.present;
    return { agent_id: this.agentId, priority_timestamp, epoch };
  }
}

/**
 * The file is written first, so where the two differ it is the newer one, unless another instance has worked on since,
 * which the epoch tells: each registration and resumption of this one raised it once.
 */
function newerOf(file: DigestFile | null, { digest, epoch }: OperationAnswers["resume_agent"]): SavedDigest {
  if (file === null || file.digest.checkpoint_id === digest.checkpoint_id) return digest;
  const takenUpSince = epoch - file.identity.epoch;
  return takenUpSince <= ownTakeUps ? file.digest : digest;
}

/** A new process registers, and then resumes; an old one only resumes. */
const ownTakeUps = 2;
