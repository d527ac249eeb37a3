/** A client's commands and replies in order: the only evidence of what the server acknowledged. */
import type { AcquireInput, Answer } from "./wire.ts";

interface Call {
  readonly agentId: string;
  /** null: no reply, or one that says the outcome is unknown (S2). */
  readonly answer: Answer | null;
  readonly answeredAt: number;
}

export type Entry = Call &
  (
    | { readonly op: "acquire"; readonly input: AcquireInput }
    /** `key` is the request_id of the acquire whose outcome is asked for. */
    | { readonly op: "get_request"; readonly requestId: string; readonly input: AcquireInput }
    | { readonly op: "heartbeat" | "renew_lease" | "release_lease"; readonly leaseId: string }
  );

/** A lease with which its agent may continue. */
export interface HeldLease {
  readonly id: string;
  readonly resource: string;
  readonly ttl: number;
}

/** Messages between the main thread and the client threads. */
export type ToClients =
  | { readonly type: "go"; readonly port: number; readonly held: Readonly<Record<string, readonly HeldLease[]>> }
  | { readonly type: "stop" };

export interface FromClients {
  readonly entries: readonly Entry[];
}

export interface ClientsOptions {
  readonly agentIds: readonly string[];
  readonly seed: number;
}
