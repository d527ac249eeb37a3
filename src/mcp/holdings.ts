/**
 * What a session holds and waits for, learned from the answers that pass through it, and what it has lost. How long a lease
 * lasts counts from before the request that was answered, so a lease is lost here, for want of contact, before it can have
 * ended at the server (A7).
 */
import type { Mark, Timekeeper } from "../keeper/clock.ts";
import { marginMsOf } from "../keeper/lease-keeper.ts";
import type { Input } from "../protocol/operation.ts";
import type { Lease, Offer } from "../sdk/wire.ts";
import type { Body } from "./control-plane.ts";
import { listIn, offersIn } from "./sentences.ts";

interface Lasting {
  readonly ttlMs: number;
  /** How long it lasts, from then on, without another answer. */
  lifeMs: number;
  since: Mark;
}

interface HeldLease extends Lasting {
  readonly agentId: string;
  readonly resource: string;
}

interface HeldTask extends Lasting {
  readonly taskId: string;
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
  private readonly time: Timekeeper;
  /** Leases that were lost here and may live at the server, with their agents. */
  private readonly abandoned = new Map<string, string>();
  private unheard: string[] = [];

  constructor(time: Timekeeper) {
    this.time = time;
  }

  learn(operation: string, input: Input, agentId: string, body: Body, sentAt: Mark): void {
    const { id, agent_id: agent, state, phase, task_id: task, expires_in_ms: left } = body;
    const { lease_id: leaseId } = input;
    switch (operation) {
      case "acquire":
      case "get_request":
        return this.judge(body, agentId, sentAt);
      case "cancel_request":
        return this.stopWaiting(input);
      case "heartbeat":
      case "renew_lease":
        return this.extend([body as unknown as Lease], sentAt);
      case "heartbeat_task":
        return this.extendTask(String(leaseId), Number(left), sentAt);
      case "heartbeat_all":
      case "release_all":
        if (operation === "heartbeat_all") this.extend(listIn<Lease>(body, "leases"), sentAt);
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
        for (const { lease_id, expires_in_ms: lifeMs, task } of listIn<Offer>(offersIn(body), "offers")) {
          const lasting = { ttlMs: lifeMs, lifeMs, since: sentAt };
          this.tasks.set(lease_id, { taskId: task.task_id, directives: "", ...lasting });
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
    sentAt: Mark,
  ): void {
    for (const { id, state, resource = "", expires_in_ms: left = 0 } of leases) {
      // One that is HELD has run out, and lasts for the next heartbeat to revive it (L9).
      const lifeMs = state === "HELD" ? Number.POSITIVE_INFINITY : left;
      if (isLive(state)) this.leases.set(id, { agentId, resource, ttlMs: left, lifeMs, since: sentAt });
    }
  }

  extend(leases: readonly { readonly id: string; readonly expires_in_ms?: number }[], sentAt: Mark): void {
    for (const { id, expires_in_ms: lifeMs = Number.NaN } of leases) prolong(this.leases.get(id), lifeMs, sentAt);
  }

  extendTask(leaseId: string, lifeMs: number, sentAt: Mark): void {
    prolong(this.tasks.get(leaseId), lifeMs, sentAt);
  }

  /** Reads the clocks: what may have ended is lost, whatever the server will say of it. */
  expire(): void {
    const why = "the server could not be reached before its end";
    for (const [id, lease] of this.leases) {
      if (!this.isOver(lease)) continue;
      this.leases.delete(id);
      this.abandoned.set(id, lease.agentId);
      this.unheard.push(`LOST: ${lease.resource} (${id}), ${why}; stop work on it, and acquire it again.`);
    }
    for (const [id, task] of this.tasks) if (this.isOver(task)) this.loseTask(id, why);
  }

  private isOver({ lifeMs, since }: Lasting): boolean {
    return this.time.elapsedMs(since) > lifeMs - marginMsOf(lifeMs);
  }

  /** To be released, so that a heartbeat for all of an agent's leases does not keep them. */
  takeAbandoned(): readonly (readonly [leaseId: string, agentId: string])[] {
    const all = [...this.abandoned];
    this.abandoned.clear();
    return all;
  }

  /** The release got no answer. */
  putBackAbandoned(leaseIds: readonly string[], agentId: string): void {
    for (const id of leaseIds) this.abandoned.set(id, agentId);
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

  isWaiting(agentId: string): boolean {
    return [...this.waiting.values()].includes(agentId);
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
    this.expire();
    const notices = this.unheard;
    this.unheard = [];
    return notices;
  }

  private judge(body: Body, agentId: string, sentAt: Mark): void {
    const { verdict, request_id: request } = body;
    if (typeof request !== "string") return; // A dry run holds nothing.
    if (verdict === "WAIT" || verdict === "STANDBY") return void this.waiting.set(request, agentId);
    this.waiting.delete(request);
    for (const { id, resource, agent_id, ttl, expires_in_ms: lifeMs } of listIn<Lease>(body, "leases")) {
      this.leases.set(id, { agentId: agent_id, resource, ttlMs: ttl, lifeMs, since: sentAt });
    }
  }

  private forget(agentId: string): void {
    for (const [id, lease] of this.leases) if (lease.agentId === agentId) this.leases.delete(id);
    for (const [id, waiter] of this.waiting) if (waiter === agentId) this.waiting.delete(id);
  }
}

function prolong(one: Lasting | undefined, lifeMs: number, sentAt: Mark): void {
  if (one === undefined || !Number.isFinite(lifeMs)) return;
  one.lifeMs = lifeMs;
  one.since = sentAt;
}

const endsAll: ReadonlySet<string> = new Set(["PLANNING", "COMPLETED", "ABORTED"]);

function isLive(state: string): boolean {
  return state === "ACTIVE" || state === "HELD" || state === "BINDING";
}
