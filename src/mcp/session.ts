/**
 * The session of `leasehold mcp`: one process, one model, one agent unless it registers more. What a model cannot do the
 * process does for it as long as it lives: it registers, beats for what it holds and waits for, and at its end lets go.
 * If it is killed instead, the leases run out by themselves, and soon, because their TTL is the short one.
 */

import { beatShare, Heartbeat } from "../keeper/lease-keeper.ts";
import { acting } from "../protocol/operating/roles.ts";
import type { Input, Operation } from "../protocol/operation.ts";
import type { Client, OperationInput, OperationName } from "../sdk/client.ts";
import { LeaseholdError } from "../sdk/errors.ts";
import { drawKey } from "../sdk/idempotency.ts";
import type { Body, ControlPlane, Credential, Reply } from "./control-plane.ts";
import { Holdings } from "./holdings.ts";
import { limits } from "./limits.ts";

export interface SessionOptions {
  readonly client: Client;
  /** The agent to be; drawn if null. */
  readonly agentId: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Sees to it that a server is there: called before the first call, and when one gets no answer. */
  readonly ensureServer: () => Promise<void>;
  /** How often what is held is kept alive, at most; well under the claim time of a grant (W8). */
  readonly beatMs?: number;
}

const beatMsUsual = 3_000;
const beatMsMin = 30;
/** What is not let go of by then runs out by itself. */
const lettingGoMs = 3_000;

export class Session implements ControlPlane {
  readonly tenant = null;
  /** The process beats, so the TTL is the server's own: if the process dies, others need not wait long. */
  readonly defaults = { ttlMs: null, waitTimeoutMs: limits.waitTimeoutMsDefault };
  private readonly options: SessionOptions;
  private readonly tokens = new Map<string, string>();
  private readonly holdings = new Holdings();
  private readonly heartbeat: Heartbeat;
  private current: string | null = null;
  private registering: Promise<string> | null = null;
  private isActive = false;
  private isEnded = false;

  constructor(options: SessionOptions) {
    this.options = options;
    this.heartbeat = new Heartbeat({
      send: () => this.beatAll(),
      lastsMs: () => this.beatEveryMs(),
      isBackground: true,
    });
    this.heartbeat.within(this.beatEveryMs());
  }

  /** Registered when it is first needed: a client that only looks leaves no agent behind. */
  agentId(): Promise<string> {
    if (this.current !== null) return Promise.resolve(this.current);
    this.registering ??= this.register().finally(() => {
      this.registering = null;
    });
    return this.registering;
  }

  async workerId(): Promise<string> {
    return `mcp.${await this.agentId()}`;
  }

  async ask(
    operation: Operation,
    input: Input,
    { agentId, agentToken }: Credential,
    signal: AbortSignal,
  ): Promise<Reply> {
    const isActing = operation.roles === acting && operation.name !== "register_agent";
    const actor = agentId ?? this.holdings.agentOf(input);
    const token = agentToken ?? (isActing ? this.tokenOf(actor) : null);
    let answered = await this.send(operation, input, token, signal);
    const { error } = answered.body;
    // A key that only registers agents may read, and act on what is not known here, as the present agent.
    const own = this.tokenOf(this.current);
    const mayBeAgent = operation.roles !== "anyone" && operation.roles.includes("agent");
    if (error === "forbidden" && mayBeAgent && token === null && own !== null) {
      answered = await this.send(operation, input, own, signal);
    }
    await this.learn(operation, input, actor, answered);
    this.isActive ||= isActing;
    return answered;
  }

  /** Calls are sent again by the SDK and, when a server had to be started first, by us. */
  keyFor(): string {
    return drawKey("mcp");
  }

  notices(): readonly string[] {
    return this.holdings.notices();
  }

  /** Everything is let go of: tasks go back to the queue, waits end, leases are released. */
  async end(): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    if (this.heartbeat.isUnderWay) await this.heartbeat.now();
    this.heartbeat.stop();
    const { client } = this.options;
    const as = (agentId: string | null) => ({ timeoutMs: lettingGoMs, retries: 1, token: this.tokenOf(agentId) });
    await Promise.allSettled([
      ...this.holdings.taskLeases().map((lease_id) => client.call("release_task", { lease_id }, as(null))),
      ...this.holdings.waits().map(([request_id, agent]) => client.call("cancel_request", { request_id }, as(agent))),
    ]);
    const agents = this.holdings.agents();
    await Promise.allSettled(agents.map((agent_id) => client.call("release_all", { agent_id }, as(agent_id))));
  }

  private tokenOf(agentId: string | null): string | null {
    return agentId === null ? null : (this.tokens.get(agentId) ?? null);
  }

  private async register(): Promise<string> {
    const { agentId, labels } = this.options;
    const input = { agent_id: agentId ?? drawKey("mcp"), labels };
    const { agent_id, agent_token } = await this.withServer(() => this.options.client.call("register_agent", input));
    this.tokens.set(agent_id, agent_token);
    if (agentId !== null) await this.adopt(agent_id);
    this.current ??= agent_id;
    return agent_id;
  }

  private async send(operation: Operation, input: Input, token: string | null, signal: AbortSignal): Promise<Reply> {
    const name = operation.name as OperationName;
    try {
      const typed = input as unknown as OperationInput<"acquire">;
      const body = await this.withServer(() => this.options.client.call(name as "acquire", typed, { signal, token }));
      const isEmpty = name === "poll_tasks" && Object.keys(body).length === 0;
      return { status: isEmpty ? 204 : 200, body: body as unknown as Body };
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      const { status, body, code, detail } = error;
      if (status !== null && isBody(body)) return { status, body };
      return { status: 503, body: { error: code, detail } };
    }
  }

  /** The server may have been in another process, which has ended: then it is started again, and the call repeated. */
  private async withServer<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (this.isEnded || !(error instanceof LeaseholdError) || error.code !== "unreachable") throw error;
      await this.options.ensureServer();
      return call();
    }
  }

  private async learn({ name }: Operation, input: Input, actor: string | null, { status, body }: Reply): Promise<void> {
    const { agent_token: token, agent_id: registered } = body;
    const agentId =
      name === "register_agent" && typeof registered === "string" ? registered : (actor ?? this.current ?? "");
    // A resumption that fails gives a token all the same (A5).
    if (typeof token === "string") this.tokens.set(agentId, token);
    if (status >= 400) {
      if (name === "get_request" && status < 500) this.holdings.stopWaiting(input);
      return;
    }
    if (name === "register_agent") this.current = agentId;
    if (name === "register_agent" || name === "resume_agent") await this.adopt(agentId);
    this.holdings.learn(name, input, agentId, body);
    this.heartbeat.within(this.beatEveryMs());
  }

  /** What the agent held before is this process's to keep from now on (A3). */
  private async adopt(agentId: string): Promise<void> {
    const token = this.tokenOf(agentId);
    const { leases } = await this.options.client.call("verify_all", { agent_id: agentId }, { token });
    this.holdings.adopt(agentId, leases);
  }

  private beatEveryMs(): number {
    const shortestMs = this.holdings.shortestTtlMs() * beatShare;
    return Math.max(beatMsMin, Math.min(this.options.beatMs ?? beatMsUsual, shortestMs));
  }

  private async beatAll(): Promise<number> {
    const { client } = this.options;
    const activity = this.isActive;
    this.isActive = false;
    for (const agent_id of this.holdings.agents()) {
      const lease_ids = this.holdings.leasesOf(agent_id);
      const token = this.tokenOf(agent_id);
      try {
        // Without names, so that the grant of a wait is collected too (W8); what is missing then was lost.
        const all = await this.withServer(() => client.call("heartbeat_all", { agent_id, activity }, { token }));
        const alive = new Set(all.leases.map(({ id }) => id));
        const missing = lease_ids.filter((id) => !alive.has(id));
        if (missing.length === 0) continue;
        const { leases } = await client.call("verify_all", { agent_id, lease_ids: missing }, { token });
        this.holdings.lose(leases);
      } catch (error) {
        if (isRefusal(error)) this.holdings.loseAgent(agent_id, error.code);
      }
    }
    for (const lease_id of this.holdings.taskLeases()) {
      try {
        const { directives } = await this.withServer(() => client.call("heartbeat_task", { lease_id }));
        this.holdings.direct(lease_id, directives);
      } catch (error) {
        if (isRefusal(error)) this.holdings.loseTask(lease_id, error.code);
      }
    }
    return this.beatEveryMs();
  }
}

/** The server's word on what is so, and not on whether it can say. */
function isRefusal(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && error.status !== null && error.status < 500 && !error.retryable;
}

function isBody(body: unknown): body is Body {
  return typeof body === "object" && body !== null && !Array.isArray(body);
}
