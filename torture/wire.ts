/**
 * The part of the wire protocol that torture uses, written independently: it must not share a mistake with the
 * server.
 */

export type Op =
  | "register_agent"
  | "verify_all"
  | "acquire"
  | "get_request"
  | "cancel_request"
  | "heartbeat"
  | "renew_lease"
  | "release_lease"
  | "get_lease"
  | "create_task"
  | "poll_tasks"
  | "submit_receipt";

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** Names in braces are taken from the input; the rest goes into the query or the body. */
  readonly path: string;
}

export const routes: Readonly<Record<Op, Route>> = {
  register_agent: { method: "POST", path: "/v1/agents" },
  verify_all: { method: "POST", path: "/v1/agents/{agent_id}/verify-all" },
  acquire: { method: "POST", path: "/v1/acquire" },
  get_request: { method: "GET", path: "/v1/requests/{request_id}" },
  cancel_request: { method: "DELETE", path: "/v1/requests/{request_id}" },
  heartbeat: { method: "POST", path: "/v1/leases/{lease_id}/heartbeat" },
  renew_lease: { method: "POST", path: "/v1/leases/{lease_id}/renew" },
  release_lease: { method: "POST", path: "/v1/leases/{lease_id}/release" },
  get_lease: { method: "GET", path: "/v1/leases/{lease_id}" },
  create_task: { method: "POST", path: "/v1/tasks" },
  poll_tasks: { method: "POST", path: "/v1/lease" },
  submit_receipt: { method: "POST", path: "/v1/receipts" },
};

export type LeaseState = "ACTIVE" | "RELEASED" | "EXPIRED" | "REVOKED" | "UNKNOWN";

export interface WireLease {
  readonly id: string;
  readonly resource: string;
  readonly predicate: string;
  readonly agent_id: string;
  readonly state: LeaseState;
  readonly fence: number;
  readonly generation: number;
  readonly acquired_at: string;
  readonly expires_at: string;
  readonly expires_in_ms: number;
  readonly ttl: number;
}

/** All fields that a reply to these operations can have; which are present depends on the status. */
export interface Body extends Partial<WireLease> {
  readonly verdict?: string;
  readonly error?: string;
  readonly detail?: string;
  readonly request_id?: string;
  readonly retry_after_ms?: number;
  readonly now?: string;
  readonly leases?: readonly WireLease[];
  readonly lease_id?: string;
}

export interface Answer {
  readonly status: number;
  readonly body: Body;
}

export type Input = Readonly<Record<string, unknown>>;

export interface Intent {
  readonly predicate: string;
  readonly resource: string;
}

export interface AcquireInput {
  readonly agent_id: string;
  readonly intents: readonly Intent[];
  readonly ttl_ms: number;
  readonly wait_timeout_ms: number;
  readonly hold_ms: number;
  readonly request_id: string;
}

export const millisOf = (time: string | undefined): number => Date.parse(time ?? "");

/** MUTATES conflicts with everything; CONSUMES only with MUTATES (C1). Torture uses no other predicates. */
export function conflict(a: string, b: string): boolean {
  return a === "MUTATES" || b === "MUTATES";
}
