/** What a session holds and waits for, learned from the answers that pass through it, and what it has lost. */
import type { Input } from "../protocol/operation.ts";
import type { Lease, Offer } from "../sdk/wire.ts";
import type { Body } from "./control-plane.ts";
import { listIn, offersIn } from "./sentences.ts";

interface HeldLease {
  readonly agentId: string;
  readonly resource: string;
  readonly ttlMs: number;
}

interface HeldTask {
  readonly taskId: string;
  readonly ttlMs: number;
  directives: string;
}

interface Ended {
  readonly id: string;
  readonly state: string;
}

export class Holdings {
  private readonly leases = new Map<string, HeldLease>();
  private readonly waiting = new Map<string, string>();
  private readonly tasks = new Map<string, HeldTask>();
  private unheard: string[] = [];

  learn(operation: string, input: Input, agentId: string, body: Body): void {
    const { id, agent_id: agent, state, phase, task_id: task } = body;
    switch (operation) {
      case "acquire":
      case "get_request":
        return this.judge(agentId, body);
      case "cancel_request":
        return this.stopWaiting(input);
      case "heartbeat_all":
      case "release_all":
        for (const { id, state } of listIn<Ended>(body, operation === "release_all" ? "leases" : "lost")) {
          if (!isLive(state)) this.leases.delete(id);
        }
        return;
      case "release_lease":
      case "transfer_lease":
        this.leases.delete(String(id));
        return;
      case "restart_agent":
        // What it holds is to outlast this process, which may well be the one that is restarted (L9).
        return this.forget(String(agent));
      case "transition_agent":
        if (endsAll.has(String(state))) this.forget(String(agent));
        return;
      case "poll_tasks":
        for (const { lease_id, expires_in_ms: left, task } of listIn<Offer>(offersIn(body), "offers")) {
          this.tasks.set(lease_id, { taskId: task.task_id, ttlMs: left, directives: "" });
        }
        return;
      case "release_task":
        this.tasks.delete(String(id));
        return;
      case "submit_receipt":
        if (phase !== "complete" && phase !== "escalate") return;
        for (const [id, { taskId }] of this.tasks) if (taskId === task) this.tasks.delete(id);
        return;
    }
  }

  /** Live ones of an agent that was taken up. How long they last is not said; what is left of them is a fair guess. */
  adopt(
    agentId: string,
    leases: readonly (Ended & { readonly resource?: string; readonly expires_in_ms?: number })[],
  ): void {
    for (const { id, state, resource = "", expires_in_ms: left = 0 } of leases) {
      if (isLive(state)) this.leases.set(id, { agentId, resource, ttlMs: left });
    }
  }

  /** Whose lease or request an input names, as far as this session knows. */
  agentOf({ lease_id: lease, request_id: request }: Input): string | null {
    if (typeof lease === "string") return this.leases.get(lease)?.agentId ?? null;
    return typeof request === "string" ? (this.waiting.get(request) ?? null) : null;
  }

  shortestTtlMs(): number {
    const all = [...this.leases.values(), ...this.tasks.values()].map(({ ttlMs }) => ttlMs);
    return Math.min(Number.POSITIVE_INFINITY, ...all);
  }

  /** Those with something to beat for. */
  agents(): readonly string[] {
    return [...new Set([...[...this.leases.values()].map(({ agentId }) => agentId), ...this.waiting.values()])];
  }

  leasesOf(agentId: string): readonly string[] {
    return [...this.leases].filter(([, lease]) => lease.agentId === agentId).map(([id]) => id);
  }

  /** Requests with their agents. */
  waits(): readonly (readonly [requestId: string, agentId: string])[] {
    return [...this.waiting];
  }

  taskLeases(): readonly string[] {
    return [...this.tasks.keys()];
  }

  lose(ended: readonly Ended[]): void {
    for (const { id, state } of ended) {
      if (isLive(state)) continue;
      const lease = this.leases.get(id);
      this.leases.delete(id);
      if (lease !== undefined) this.unheard.push(`LOST: ${lease.resource} (${id}) is ${state}; stop work on it.`);
    }
  }

  /** Another instance has taken the agent up, or it is forgotten: nothing of it is ours any more (A3). */
  loseAgent(agentId: string, code: string): void {
    const held = this.leasesOf(agentId).length;
    this.forget(agentId);
    this.unheard.push(
      `LOST: agent ${agentId} is no longer yours (${code}), nor are its ${held} leases; stop work on them.`,
    );
  }

  /** The request is over, however it ended. */
  stopWaiting({ request_id: requestId }: Input): void {
    this.waiting.delete(String(requestId));
  }

  loseTask(leaseId: string, code: string): void {
    const task = this.tasks.get(leaseId);
    this.tasks.delete(leaseId);
    if (task !== undefined)
      this.unheard.push(`LOST: task ${task.taskId} (${leaseId}), ${code}; stop, and drop the result.`);
  }

  direct(leaseId: string, directives: readonly string[]): void {
    const task = this.tasks.get(leaseId);
    const said = directives.join(" and ");
    if (task === undefined || task.directives === said) return;
    task.directives = said;
    if (said !== "") this.unheard.push(`For task ${task.taskId} you are asked to ${said}.`);
  }

  /** Each is returned once. */
  notices(): readonly string[] {
    const notices = this.unheard;
    this.unheard = [];
    return notices;
  }

  private judge(agentId: string, body: Body): void {
    const { verdict, request_id: request } = body;
    if (typeof request !== "string") return; // A dry run holds nothing.
    if (verdict === "WAIT") return void this.waiting.set(request, agentId);
    this.waiting.delete(request);
    for (const { id, resource, agent_id, ttl } of listIn<Lease>(body, "leases")) {
      this.leases.set(id, { agentId: agent_id, resource, ttlMs: ttl });
    }
  }

  private forget(agentId: string): void {
    for (const [id, lease] of this.leases) if (lease.agentId === agentId) this.leases.delete(id);
    for (const [id, waiter] of this.waiting) if (waiter === agentId) this.waiting.delete(id);
  }
}

const endsAll: ReadonlySet<string> = new Set(["PLANNING", "COMPLETED", "ABORTED"]);

function isLive(state: string): boolean {
  return state === "ACTIVE" || state === "HELD" || state === "BINDING";
}
