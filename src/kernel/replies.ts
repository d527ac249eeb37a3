/** What a command is answered with. Records in a reply are as they were when the command was decided. */
import type { Agent, Digest, Key, Lease, Millis, Request, Resource, Tenant } from "./records.ts";
import type { Refusal } from "./refusals.ts";

/** Something that stands in the way (W11): a live lease, or a request that waits ahead. */
export type Blocker =
  | { readonly type: "lease"; readonly lease: Lease }
  | { readonly type: "request"; readonly request: Request; readonly resource: string; readonly predicate: string };

/** A4: what the agent must be told of. The engine looks it up in the store's history. */
export interface Observe {
  readonly since: Millis;
  readonly resources: readonly string[];
}

export type PauseReason =
  | "resource_fenced"
  | "resource_withdrawn"
  | "tenant_suspended"
  | "agent_paused"
  | "cell_not_ready";

export type Verdict =
  | {
      readonly type: "granted";
      readonly requestId: string;
      readonly leases: readonly Lease[];
      readonly warnings: readonly string[];
      readonly observe: Observe | null;
    }
  | {
      readonly type: "waiting";
      readonly requestId: string;
      /** 1 for the first in line. */
      readonly position: number;
      readonly blockers: readonly Blocker[];
      readonly blockersTotal: number;
      readonly waitTimeoutMs: number;
      readonly claimWithinMs: number;
      readonly warnings: readonly string[];
    }
  | {
      readonly type: "died";
      readonly retryAfterMs: number;
      readonly attempt: number;
      readonly priority: number;
      readonly blockers: readonly Blocker[];
      readonly blockersTotal: number;
    }
  | {
      readonly type: "paused";
      readonly reason: PauseReason;
      readonly detail: string;
      readonly resource: string | null;
    };

export interface LostLease {
  readonly id: string;
  /** null: not alive; the store's history knows whether and how it ended. */
  readonly lease: Lease | null;
  readonly code: Refusal["code"] | null;
}

export type Reply =
  | Refusal
  | Verdict
  | { readonly type: "agent"; readonly agent: Agent; readonly created: boolean }
  | { readonly type: "lease"; readonly lease: Lease }
  | { readonly type: "leases"; readonly leases: readonly Lease[]; readonly lost: readonly LostLease[] }
  | { readonly type: "digest"; readonly digest: Digest }
  | {
      readonly type: "resumed";
      readonly agent: Agent;
      readonly digest: Digest;
      readonly leases: readonly Lease[];
      readonly observe: Observe;
    }
  | { readonly type: "revoked"; readonly count: number }
  | { readonly type: "resource"; readonly resource: Resource; readonly created: boolean }
  | { readonly type: "tenant"; readonly tenant: Tenant; readonly created: boolean }
  | { readonly type: "key"; readonly key: Key }
  | { readonly type: "done" };
