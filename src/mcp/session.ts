/**
 * The session of `leasehold mcp`: one process, one model, one agent unless it registers more. What a model cannot do the
 * process does for it as long as it lives: it registers, beats for what it holds and waits for, and at its end lets go.
 * If it is killed instead, the leases run out by themselves, and soon, because their TTL is the short one.
 */

import type { Mark } from "../keeper/clock.ts";
import { beatShare, Heartbeat } from "../keeper/lease-keeper.ts";
import { acting } from "../protocol/operating/roles.ts";
import type { Input, Operation } from "../protocol/operation.ts";
import { AgentToken, type DrawnToken } from "../sdk/agent-token.ts";
import type { Client, OperationInput, OperationName } from "../sdk/client.ts";
import { LeaseholdError } from "../sdk/errors.ts";
import { drawKey } from "../sdk/idempotency.ts";
import { sleep } from "../sdk/timing.ts";
import type { Lease } from "../sdk/wire.ts";
import type { Body, ControlPlane, Credential, Reply } from "./control-plane.ts";
import { Holdings } from "./holdings.ts";
import { limits } from "./limits.ts";
import { listIn } from "./sentences.ts";

export interface SessionOptions {
  readonly client: Client;
  /** The agent to be; drawn if null. */
  readonly agentId: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The agent of the coding session that this process belongs to, for another token than the refused one; null for none. */
  readonly findAgent?: (refused: string | null) => Promise<SharedAgent | null>;
  /** Sees to it that a server is there: called before the first call, and when one gets no answer. */
  readonly ensureServer: () => Promise<void>;
  /** How often what is held is kept alive, at most; well under the claim time of a grant (W8). */
  readonly beatMs?: number;
}

/** Its guard acts as it too, and keeps alive what it holds as long as the session works. */
export interface SharedAgent {
  readonly agentId: string;
  readonly token: string;
  /** A sign of life of the session. */
  alive(): void;
}

const beatMsUsual = 3_000;
const beatMsMin = 30;
/** What is not let go of by then runs out by itself. */
const lettingGoMs = 3_000;

export class Session implements ControlPlane {
  /** The artifact store is for programs of LegiVellum, which speak HTTP. */
  readonly depot = null;
  readonly tenant = null;
  /** The process beats, so the TTL is the server's own: if the process dies, others need not wait long. */
  readonly defaults = { ttlMs: null, waitTimeoutMs: limits.waitTimeoutMsDefault };
  private readonly options: SessionOptions;
  private readonly tokens = new Map<string, AgentToken>();
  private readonly holdings: Holdings;
  /** When an agent may ask again for a resource, after DIE (W5). */
  private readonly hints = new Map<string, number>();
  private readonly heartbeat: Heartbeat;
  private current: string | null = null;
  private shared: SharedAgent | null = null;
  private registering: Promise<string> | null = null;
  private isEnded = false;

  constructor(options: SessionOptions) {
    this.options = options;
    this.holdings = new Holdings(options.client.time);
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
    const claims = operation.name === "acquire" ? hintKeys(actor ?? "", input) : [];
    await this.untilDue(claims, signal);
    this.shared?.alive();
    let answered = await this.send(operation, input, token, signal);
    if (await this.isReplaced(answered, token))
      answered = await this.send(operation, input, this.tokenOf(actor), signal);
    const { error } = answered.body;
    // A key that only registers agents may read, and act on what is not known here, as the present agent.
    const own = this.tokenOf(this.current);
    const mayBeAgent = operation.roles !== "anyone" && operation.roles.includes("agent");
    if (error === "forbidden" && mayBeAgent && token === null && own !== null) {
      answered = await this.send(operation, input, own, signal);
    }
    if (isUncollected(answered.body)) answered = await this.collect(answered);
    await this.learn(operation, input, actor, answered);
    const { retry_after_ms: hintMs } = answered.body;
    if (error === "die" && typeof hintMs === "number") this.remember(claims, hintMs);
    return answered;
  }

  /** Calls are sent again by the SDK and, when a server had to be started first, by us. */
  keyFor(): string {
    return drawKey("mcp");
  }

  notices(): readonly string[] {
    return this.holdings.notices();
  }

  /** A model may ask again too early after DIE; the process does not (W5). */
  private async untilDue(claims: readonly string[], signal: AbortSignal): Promise<void> {
    const now = performance.now();
    for (const [key, at] of this.hints) if (at <= now) this.hints.delete(key);
    const leftMs = Math.max(0, ...claims.map((key) => (this.hints.get(key) ?? now) - now));
    if (leftMs > 0) await sleep(leftMs, signal);
  }

  private remember(claims: readonly string[], hintMs: number): void {
    for (const key of claims) this.hints.set(key, performance.now() + hintMs);
  }

  /**
   * Everything is let go of: tasks go back to the queue, waits end, leases are released. Where the agent has a name, under
   * which it can be taken up again, and the process is only `stopped`, its leases are kept back for that (L9).
   */
  async end(how: "over" | "stopped" = "over"): Promise<void> {
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
    const kept = how === "stopped" ? this.options.agentId : null;
    const letGo = (agent_id: string): Promise<unknown> => {
      if (agent_id === kept) return client.call("restart_agent", { agent_id }, as(agent_id));
      // What the guard of the session leased is the guard's to release.
      const own = agent_id === this.shared?.agentId ? { lease_ids: this.holdings.leasesOf(agent_id) } : {};
      return client.call("release_all", { agent_id, ...own }, as(agent_id));
    };
    await Promise.allSettled(this.holdings.agents().map(letGo));
  }

  /** The session's guard was registered again, with another token than this process knew. */
  private async isReplaced({ status, body }: Reply, token: string | null): Promise<boolean> {
    if (this.shared === null || token !== this.shared.token) return false;
    if (status !== 401 && body["error"] !== "stale_epoch") return false;
    this.shared = (await this.options.findAgent?.(token)) ?? this.shared;
    return this.shared.token !== token;
  }

  private tokenOf(agentId: string | null): string | null {
    if (agentId !== null && agentId === this.shared?.agentId) return this.shared.token;
    return agentId === null ? null : (this.tokens.get(agentId)?.token ?? null);
  }

  /** It is renewed for as long as this process lives. */
  private keepToken(agentId: string, drawn: DrawnToken): void {
    const known = this.tokens.get(agentId);
    if (known === undefined) this.tokens.set(agentId, new AgentToken(this.options.client, agentId, drawn));
    else known.replace(drawn);
  }

  private async register(): Promise<string> {
    const { agentId, labels, findAgent } = this.options;
    this.shared = agentId === null ? ((await findAgent?.(null)) ?? null) : null;
    if (this.shared !== null) {
      this.shared.alive();
      this.current ??= this.shared.agentId;
      return this.shared.agentId;
    }
    const input = { agent_id: agentId ?? drawKey("mcp"), labels };
    const registered = await this.withServer(() => this.options.client.call("register_agent", input));
    const { agent_id } = registered;
    this.keepToken(agent_id, registered);
    if (agentId !== null) await this.adopt(agent_id);
    this.current ??= agent_id;
    return agent_id;
  }

  private async send(
    operation: Operation,
    input: Input,
    token: string | null,
    signal: AbortSignal,
  ): Promise<TimedReply> {
    const name = operation.name as OperationName;
    const { client } = this.options;
    try {
      const isAsking = name === "acquire" || name === "get_request";
      // The answer may be lost on its way to this process, whose heartbeat collects what has arrived (W8).
      const typed = (isAsking ? { collect: false, ...input } : input) as unknown as OperationInput<"acquire">;
      const asked = await this.withServer(() => client.ask(name as "acquire", typed, { signal, token }));
      const { answer: body, sentAt } = asked;
      const isEmpty = name === "poll_tasks" && Object.keys(body).length === 0;
      return { status: isEmpty ? 204 : 200, body: body as unknown as Body, sentAt };
    } catch (error) {
      return this.failure(error);
    }
  }

  private failure(error: unknown): TimedReply {
    if (!(error instanceof LeaseholdError)) throw error;
    const { status, body, code, detail } = error;
    const sentAt = this.options.client.time.mark();
    if (status !== null && isBody(body)) return { status, body, sentAt };
    return { status: 503, body: { error: code, detail }, sentAt };
  }

  /**
   * W8: the answer has arrived here, so its grant is collected. It was held for long, so how long the leases last is the
   * heartbeat's word. Where that fails the request goes on as it was: the model asks for it again, or it lapses.
   */
  private async collect({ status, body: { claim_within_ms: _, ...body } }: TimedReply): Promise<TimedReply> {
    const { client } = this.options;
    const granted = listIn<Lease>(body, "leases");
    const agent_id = granted[0]?.agent_id ?? "";
    const lease_ids = granted.map(({ id }) => id);
    try {
      const { answer, sentAt } = await client.ask(
        "heartbeat_all",
        { agent_id, lease_ids },
        { token: this.tokenOf(agent_id) },
      );
      const kept = new Map(answer.leases.map((lease) => [lease.id, lease]));
      const lapsed = { error: "lease_expired", detail: "The grant lapsed before its answer arrived; acquire again." };
      if (kept.size < granted.length) return { status: 410, body: lapsed, sentAt };
      return { status, body: { ...body, leases: granted.map((one) => ({ ...one, ...kept.get(one.id) })) }, sentAt };
    } catch (error) {
      return this.failure(error);
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

  private async learn(
    { name }: Operation,
    input: Input,
    actor: string | null,
    { status, body, sentAt }: TimedReply,
  ): Promise<void> {
    const { agent_token: token, agent_token_expires_in_ms: lastsMs, agent_id: registered } = body;
    const agentId =
      name === "register_agent" && typeof registered === "string" ? registered : (actor ?? this.current ?? "");
    // A resumption that fails gives a token all the same (A5).
    if (typeof token === "string" && typeof lastsMs === "number")
      this.keepToken(agentId, { agent_token: token, agent_token_expires_in_ms: lastsMs });
    if (status >= 400) {
      if (name === "get_request" && status < 500) this.holdings.stopWaiting(input);
      return;
    }
    if (name === "register_agent") this.current = agentId;
    if (name === "register_agent" || name === "resume_agent") await this.adopt(agentId);
    this.holdings.learn(name, input, agentId, body, sentAt);
    this.heartbeat.within(this.beatEveryMs());
  }

  /** What the agent held before is this process's to keep from now on (A3). */
  private async adopt(agentId: string): Promise<void> {
    const token = this.tokenOf(agentId);
    const { answer, sentAt } = await this.options.client.ask("verify_all", { agent_id: agentId }, { token });
    this.holdings.adopt(agentId, answer.leases, sentAt);
  }

  private beatEveryMs(): number {
    const shortestMs = this.holdings.shortestTtlMs() * beatShare;
    return Math.max(beatMsMin, Math.min(this.options.beatMs ?? beatMsUsual, shortestMs));
  }

  private async beatAll(): Promise<number> {
    const { client } = this.options;
    this.holdings.expire();
    await this.releaseAbandoned();
    for (const agent_id of this.holdings.agents()) {
      const lease_ids = this.holdings.leasesOf(agent_id);
      const token = this.tokenOf(agent_id);
      try {
        if (agent_id === this.shared?.agentId && !this.holdings.isWaiting(agent_id)) {
          // A session that was cancelled must not be kept alive from here.
          const { answer, sentAt } = await client.ask("verify_all", { agent_id, lease_ids }, { token });
          this.holdings.extend(answer.leases, sentAt);
          this.holdings.lose(answer.leases);
          continue;
        }
        // Without names, so that the grant of a wait is collected too (W8); what is missing then was lost.
        const { answer: all, sentAt } = await this.withServer(() =>
          client.ask("heartbeat_all", { agent_id }, { token }),
        );
        this.holdings.extend(all.leases, sentAt);
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
        const { answer, sentAt } = await this.withServer(() => client.ask("heartbeat_task", { lease_id }));
        this.holdings.extendTask(lease_id, answer.expires_in_ms, sentAt);
        this.holdings.direct(lease_id, answer.directives);
      } catch (error) {
        if (isRefusal(error)) this.holdings.loseTask(lease_id, error.code);
      }
    }
    return this.beatEveryMs();
  }

  /** The model knows these as lost; a heartbeat for all would keep them alive for nobody. */
  private async releaseAbandoned(): Promise<void> {
    const { client } = this.options;
    const byAgent = Map.groupBy(this.holdings.takeAbandoned(), ([, agentId]) => agentId);
    for (const [agent_id, entries] of byAgent) {
      const lease_ids = entries.map(([id]) => id);
      try {
        await client.call("release_all", { agent_id, lease_ids }, { token: this.tokenOf(agent_id) });
      } catch (error) {
        if (!isRefusal(error)) this.holdings.putBackAbandoned(lease_ids, agent_id);
      }
    }
  }
}

interface TimedReply extends Reply {
  readonly sentAt: Mark;
}

/** What a hint after DIE is remembered by: the agent and each resource that it asked for. */
function hintKeys(agentId: string, { intents, dry_run: isDry }: Input): readonly string[] {
  if (!Array.isArray(intents) || isDry === true) return [];
  return (intents as readonly { readonly resource?: unknown }[]).map(
    ({ resource }) => `${agentId} ${String(resource)}`,
  );
}

/** W8: a grant that ended a wait, and lapses unless a heartbeat follows. */
function isUncollected({ verdict, claim_within_ms: withinMs }: Body): boolean {
  return verdict === "GRANTED" && withinMs !== undefined;
}

/** The server's word on what is so, and not on whether it can say. */
function isRefusal(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && error.status !== null && error.status < 500 && !error.retryable;
}

function isBody(body: unknown): body is Body {
  return typeof body === "object" && body !== null && !Array.isArray(body);
}
