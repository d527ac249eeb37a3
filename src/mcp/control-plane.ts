/** What carries a tool's call to the control plane: the engine in the same process, or a client over the network. */
import type { Input, Operation } from "../protocol/operation.ts";

export interface Reply {
  readonly status: number;
  readonly body: Body;
}

export type Body = Readonly<Record<string, unknown>>;

export interface Credential {
  /** The agent that the call is for; null where it is for none, or none is named. */
  readonly agentId: string | null;
  /** Its token, where the caller gives one. */
  readonly agentToken: string | null;
}

/** What holds for those who do not say otherwise; null: the server's own default. */
export interface Defaults {
  readonly ttlMs: number | null;
  readonly waitTimeoutMs: number | null;
}

/** What is staged for a task: bytes of the artifact store, with what their sender says of them. */
export interface Staging {
  readonly taskId: string;
  readonly mime: string;
  readonly role: string;
  readonly receiptId: string | null;
}

/** The artifact store, for tools; each call is judged by the credential's role. */
export interface Depot {
  stage(staging: Staging, bytes: Uint8Array, credential: Credential): Promise<Reply>;
  get(artifactId: string, credential: Credential): Promise<Reply>;
  list(taskId: string, role: string | null, credential: Credential): Promise<Reply>;
}

/** One caller's way in. It lives as long as one call over HTTP, and as long as the process over stdio. */
export interface ControlPlane {
  readonly defaults: Defaults;
  /** The credential's own; null where only the server knows it. */
  readonly tenant: string | null;
  /** null: out of reach. */
  readonly depot: Depot | null;
  /** The agent that calls are for where they name none; null where nobody is known. */
  agentId(agentToken: string | null): Promise<string | null>;
  /** The worker that polls where none is named. */
  workerId(): Promise<string | null>;
  ask(operation: Operation, input: Input, credential: Credential, signal: AbortSignal): Promise<Reply>;
  /**
   * An idempotency key for a call that has none, the same one if this is the same call again after an answer that was
   * lost on its way. null: the sender draws one.
   */
  keyFor(tool: string, input: Input): string | null;
  /** What the caller should hear beside the answer, since the last time: leases that were lost meanwhile. */
  notices(): readonly string[];
}
