/** What a client did and was told, in order: the only witness of what the server has acknowledged. */
import type { AcquireInput, Answer } from "./wire.ts";

interface Call {
  readonly agentId: string;
  /** null: no answer came, or one that says the outcome is unknown (S2). */
  readonly answer: Answer | null;
  readonly answeredAt: number;
}

export type Entry = Call &
  (
    | { readonly op: "acquire"; readonly input: AcquireInput }
    /** `key` is the request_id of the acquire whose fate is asked for. */
    | { readonly op: "get_request"; readonly requestId: string; readonly input: AcquireInput }
    | { readonly op: "heartbeat" | "renew_lease" | "release_lease"; readonly leaseId: string }
  );

/** A lease that its agent may go on with. */
export interface Held {
  readonly id: string;
  readonly resource: string;
  readonly ttl: number;
}

/** What the main thread and the threads of clients tell each other. */
export type ToClients =
  | { readonly type: "go"; readonly port: number; readonly held: Readonly<Record<string, readonly Held[]>> }
  | { readonly type: "stop" };

export interface FromClients {
  readonly entries: readonly Entry[];
}

export interface ClientsOptions {
  readonly agentIds: readonly string[];
  readonly seed: number;
}
