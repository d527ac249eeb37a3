/**
 * Agents for work that names none. An agent never conflicts with itself (C2), so pieces of work that run at the same
 * time each have one of their own; it is registered once, and taken again when its work is over.
 */
import type { Actor } from "./actor.ts";
import { AgentToken } from "./agent-token.ts";
import type { Client } from "./client.ts";
import { LeaseholdError } from "./errors.ts";
import { drawKey } from "./idempotency.ts";
import { Works } from "./works.ts";

const spareMax = 64;

export class AgentPool {
  private readonly client: Client;
  private readonly hasKey: boolean;
  private readonly spare: Actor[] = [];

  constructor(client: Client, hasKey: boolean) {
    this.client = client;
    this.hasKey = hasKey;
  }

  /** `hasBegun` tells whether the work itself has: until then an agent that the server has forgotten is replaced. */
  async use<T>(work: (actor: Actor, works: Works) => Promise<T>, hasBegun: () => boolean): Promise<T> {
    const spare = this.spare.pop();
    const actor = spare ?? (await this.register());
    const works = new Works({ mayHoldMore: false });
    try {
      const value = await work(actor, works);
      // Work that was begun inside and not awaited goes on as this agent; until it ends, nobody else may be that agent.
      if (works.isBusy) void works.idle().then(() => this.putBack(actor));
      else this.putBack(actor);
      return value;
    } catch (error) {
      if (spare !== undefined && isForgotten(error) && !hasBegun()) return this.use(work, hasBegun);
      void works.idle().then(() => this.takeBack(actor, error));
      throw error;
    }
  }

  private putBack(actor: Actor): void {
    if (this.spare.length < spareMax) this.spare.push(actor);
  }

  /** Without keys anybody may act for anybody, and all share one connection. */
  private async register(): Promise<Actor> {
    const { client } = this;
    const registered = await client.call("register_agent", { agent_id: drawKey("agt") });
    const { agent_id: agentId } = registered;
    return this.hasKey ? new AgentToken(client, agentId, registered) : { client, agentId, token: null };
  }

  /** Its unit of work ends here, so that the next one does not inherit its age (W1); and with it, all it may hold. */
  private async takeBack(actor: Actor, error: unknown): Promise<void> {
    const { client, agentId, token } = actor;
    if (client.isClosed || isForgotten(error)) return;
    try {
      await client.call("transition_agent", { agent_id: agentId, to: "ABORTED" }, { token });
      this.putBack(actor);
    } catch {
      // It is not used again, and what it has ends by itself.
    }
  }
}

/** Idle for a week, or the server's data was restored from a backup since. */
function isForgotten(error: unknown): boolean {
  if (!(error instanceof LeaseholdError)) return false;
  return error.code === "agent_unknown" || error.code === "stale_epoch" || error.code === "unauthorized";
}
