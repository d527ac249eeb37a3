/** Losing a lease: why, and who has the resource now. */
import { type Actor, askAs } from "./actor.ts";
import { LeaseholdError } from "./errors.ts";
import type { Lease } from "./wire.ts";

export type LossReason =
  /** No word from the server in time: the lease may have ended, so the work was stopped before that (A7). */
  | "no_contact"
  /** Time went by that nobody counted: the machine slept, or the program stood still. */
  | "overslept"
  | "expired"
  | "revoked"
  /** Somebody gave it back in this agent's name. */
  | "released"
  /** Another instance has taken the agent up (A3). */
  | "taken_up"
  /** The agent let go of all it held because another of its requests died (W5). */
  | "rolled_back";

export interface Loss {
  readonly reason: LossReason;
  readonly detail: string;
  readonly leases: readonly Lease[];
  readonly cause?: unknown;
}

export class LeaseLost extends LeaseholdError {
  readonly reason: LossReason;
  /** Those that were held. */
  readonly leases: readonly Lease[];
  /** Who holds what overlaps with them now; null where it could not be asked. */
  holders: readonly Lease[] | null = null;

  constructor({ reason, detail, leases, cause }: Loss) {
    super({ code: "lease_lost", detail, ...(cause !== undefined && { cause }) });
    this.reason = reason;
    this.leases = leases;
  }

  tellHolders(holders: readonly Lease[]): void {
    this.holders = holders;
    const names = holders.map(({ agent_id: agent, resource, predicate }) => `${agent} (${predicate} ${resource})`);
    this.message += names.length === 0 ? " Nobody else holds it now." : ` It is held now by ${names.join(", ")}.`;
  }
}

/** So long is asked around, and no longer: whoever lost a lease wants to know that first of all. */
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
