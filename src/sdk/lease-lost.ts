/** Losing a lease: how it ended, why, and who has the resource now. */
import { type Actor, askAs } from "./actor.ts";
import { LeaseFailure, LeaseholdError } from "./errors.ts";
import type { Lease, LeaseEnd } from "./wire.ts";

/** How a lease ends, in the codes that cells use too (G9). A closed list. */
export type LeaseEndCode = "lease_expired" | "lease_revoked" | "lease_released" | "stale_token" | "resource_fenced";

/** Why leases were lost, and the code of such an end. */
const ends = {
  /** No word from the server in time: the lease may have ended, so the work was stopped before that (A7). */
  no_contact: "lease_expired",
  /** Time went by that nobody counted: the machine slept, or the program stood still. */
  overslept: "lease_expired",
  expired: "lease_expired",
  /** The cell that has the resource could not be reached to issue the lease again (G8). */
  cell_not_ready: "lease_expired",
  revoked: "lease_revoked",
  /** Older work needed the resource, under Wound-Wait (W7). */
  wounded: "lease_revoked",
  /** The keeper's budget is spent, so the leases were not extended any more. */
  budget: "lease_expired",
  /** Somebody gave it back in this agent's name. */
  released: "lease_released",
  /** The agent let go of all it held because another of its requests died (W5). */
  rolled_back: "lease_released",
  /** Another instance has taken the agent up (A3). */
  taken_up: "stale_token",
  /** The lease was issued to another: transferred, or renewed by another instance, whose token is not known here. */
  stale: "stale_token",
  /** The resource was fenced, and all that was live on it ended (G7). */
  fenced: "resource_fenced",
} as const satisfies Readonly<Record<string, LeaseEndCode>>;

export type LossReason = keyof typeof ends;

export interface Loss {
  readonly reason: LossReason;
  readonly detail: string;
  readonly leases: readonly Lease[];
  /** The reason on the server, such as the text of a revocation. */
  readonly said?: string | null;
  readonly cause?: unknown;
}

export class LeaseLost extends LeaseFailure {
  reason: LossReason;
  readonly end: LeaseEndCode;
  /** The server's own reason, where it has one: "maintenance", "idle", "cell_lost_binding". */
  said: string | null;
  /** Those that were held. */
  readonly leases: readonly Lease[];
  /** Holders of what overlaps with them now; null where it could not be asked. */
  holders: readonly Lease[] | null = null;

  constructor({ reason, detail, leases, said = null, cause }: Loss) {
    super({ code: "lease_lost", detail, ...(cause !== undefined && { cause }) });
    this.reason = reason;
    this.end = ends[reason];
    this.said = said;
    this.leases = leases;
  }

  tellReason(said: string): void {
    this.said = said;
    this.reason = revokedBy(said);
  }

  tellHolders(holders: readonly Lease[]): void {
    this.holders = holders;
    const names = holders.map(({ agent_id: agent, resource, predicate }) => `${agent} (${predicate} ${resource})`);
    this.message += names.length === 0 ? " Nobody else holds it now." : ` It is held now by ${names.join(", ")}.`;
  }
}

/** What a refusal means for the caller's leases: how they ended, and words for it where the server's say less. */
const losses: Readonly<Record<string, readonly [reason: LossReason, words?: string]>> = {
  lease_expired: ["expired"],
  lease_released: ["released"],
  stale_epoch: ["taken_up", "Another instance has taken this agent up; its leases are that one's now."],
  not_lease_holder: ["stale", "The lease is another agent's now."],
  lease_unknown: ["revoked", "The server knows this lease no longer."],
  agent_unknown: ["revoked", "The server knows this agent no longer."],
  tenant_unknown: ["revoked", "The server knows this agent no longer."],
};

/** null where it may pass. */
export function lossIn(error: unknown): Omit<Loss, "leases"> | null {
  if (!(error instanceof LeaseholdError)) return null;
  const { code, detail, reasonSaid: said } = error;
  if (code === "lease_revoked") return { reason: revokedBy(said), detail, said, cause: error };
  const isFenced = said === "resource_fenced" && code === "paused";
  const [reason, words = detail] = isFenced ? (["fenced"] as const) : (losses[code] ?? []);
  return reason === undefined ? null : { reason, detail: words, said, cause: error };
}

export function reasonOfEnd(state: LeaseEnd["state"]): LossReason {
  return state === "EXPIRED" ? "expired" : state === "RELEASED" ? "released" : "revoked";
}

/** Fencing revokes what is live, and so does an older request under Wound-Wait; the reason says which (G7, W7). */
export function revokedBy(said: string | null | undefined): LossReason {
  return said === "resource_fenced" ? "fenced" : said === "wounded" ? "wounded" : "revoked";
}

/** A heartbeat or a release of many says that a lease was revoked, but not why; one for the lease alone does. */
export async function lookUpReason(actor: Actor, lost: LeaseLost): Promise<void> {
  if (lost.reason !== "revoked" || lost.said !== null) return;
  for (const { id } of lost.leases) {
    const asked = askAs(actor, "heartbeat", { lease_id: id }, { timeoutMs: lookUpMs, retries: 1 });
    const refusal = await asked.catch((error: unknown) => error);
    if (!(refusal instanceof LeaseholdError) || refusal.code !== "lease_revoked") continue;
    if (refusal.reasonSaid !== null) return lost.tellReason(refusal.reasonSaid);
  }
}

/** The look-up is short: the loss itself must be reported first. */
const lookUpMs = 1_000;
const resourcesMax = 8;

export async function lookUpHolders(actor: Actor, lost: LeaseLost): Promise<void> {
  const resources = [...new Set(lost.leases.map(({ resource }) => resource))].slice(0, resourcesMax);
  const pages = await Promise.allSettled(
    resources.map((resource) =>
      askAs(actor, "list_leases", { resource, limit: 16 }, { timeoutMs: lookUpMs, retries: 1 }),
    ),
  );
  if (pages.every(({ status }) => status === "rejected")) return;
  const found = pages.flatMap((page) => (page.status === "fulfilled" ? page.value.answer.leases : []));
  const others = new Map(found.map((lease) => [lease.id, lease]));
  lost.tellHolders([...others.values()].filter((lease) => lease.agent_id !== actor.agentId));
}
