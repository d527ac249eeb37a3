/** What an agent saves of its work, and what is taken up of it again (A2 to A5). */
import { LeaseholdError } from "./errors.ts";
import type { AgentState, Digest, Intent, Lease, ObservationUpdate } from "./wire.ts";

export interface DigestInput {
  /** Where to go on, in the agent's own words. */
  readonly resumePoint: string;
  /** Whatever the agent needs to go on; any JSON. */
  readonly context?: unknown;
  /** What it still has to acquire. */
  readonly intentBacklog?: readonly Intent[] | undefined;
  readonly resolutionStrategy?: Digest["resolution_strategy"] | undefined;
  /** Drawn if left out. */
  readonly checkpointId?: string | undefined;
  /** What the work relies on; judged when it is taken up, here or elsewhere (A5). */
  readonly assumptions?: readonly { readonly resource: string; readonly version: string }[] | undefined;
}

/** On disk: the shape of KLIS-8's StateDigest, with the digest of A2 in it. */
export interface DigestFile {
  readonly version: "1.0";
  readonly identity: { readonly agent_id: string; readonly priority_timestamp: number; readonly epoch: number };
  readonly recovery: { readonly last_phase: AgentState; readonly pending_intents: readonly Intent[] };
  readonly digest: SavedDigest;
  readonly assumptions: readonly { readonly resource: string; readonly version: string }[];
}

export type SavedDigest = Pick<
  Digest,
  "checkpoint_id" | "resume_point" | "context" | "intent_backlog" | "resolution_strategy"
>;

/** A work that goes on, or that has ended because its digest says so. */
export interface Resumed {
  readonly digest: SavedDigest;
  /** What happened since to the resources that it names or assumed; null where the server knew of no checkpoint. */
  readonly observationUpdate: ObservationUpdate | null;
  /** What the agent still holds, by the server's word (L8). */
  readonly leases: readonly VerifiedLease[];
  /** The digest's strategy is ABORT: the unit of work has ended, and the agent holds nothing (A2). */
  readonly isAborted: boolean;
}

/** Brings the work in line with what others did meanwhile, before it goes on (MERGE). */
export type Merge = (resumed: Resumed) => Promise<void> | void;

export type VerifiedLease = Pick<Lease, "id" | "state" | "resource" | "predicate" | "fence" | "expires_in_ms">;

/** How digests are kept on disk, where there is a disk. */
export type DigestStore = typeof import("./node/digest-file.ts");

export function openDigestStore(): Promise<DigestStore> {
  return import("./node/digest-file.ts").catch((cause: unknown) => {
    const detail = "This platform has no disk for a digest; leave `digestFile` out, and it is kept on the server.";
    throw new LeaseholdError({ code: "closed", detail, cause });
  });
}
