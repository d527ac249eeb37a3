/**
 * A small world for the kernel's tests: one state, one clock, a tenant with agents, and terse verbs. A verb expects to
 * succeed and throws if it does not; `refused` expects a refusal, and that it changed nothing.
 */
import type { Acquire, Actor, Assumption, Command, DigestInput, Entropy } from "../contract/commands.ts";
import type { KernelEvent } from "../contract/events.ts";
import type { IntentInput } from "../contract/inputs.ts";
import { defaultPolicyId } from "../contract/policy-records.ts";
import type {
  Agent,
  AgentState,
  Digest,
  Lease,
  Millis,
  Request,
  Resource,
  Role,
  TenantQuotas,
  TenantSettings,
} from "../contract/records.ts";
import type { Refusal, RefusalCode } from "../contract/refusals.ts";
import type { Reply } from "../contract/replies.ts";
import type { EndedTask, Receipt } from "../contract/task-records.ts";
import {
  advance,
  answerLater,
  apply,
  applySlice,
  createState,
  hasJobs,
  type ReadyTask,
  restore,
  type State,
  type Step,
  settle,
  snapshot,
} from "../kernel.ts";
import { TestHistory } from "./test-history.ts";

export const beginning: Millis = 1_700_000_000_000;
export const operator: Actor = { role: "operator", agentId: null, epoch: null };
export const supervisor: Actor = { role: "supervisor", agentId: null, epoch: null };

/** Takes the place of the built-in policy, so that agents may lease any pattern. */
export const openPolicy = {
  type: "set_policy",
  policyId: defaultPolicyId,
  policy: { description: null, tenants: [], roles: [], keyIds: [], rules: [] },
} as const;

/** A command without what the world fills in. */
export type Ask = AskOf<Command>;
export type AskOf<C> = C extends Command
  ? Omit<C, "tenant" | "actor" | "entropy"> & { tenant?: string; actor?: Actor; entropy?: Entropy }
  : never;

export type ReplyOf<T extends Reply["type"]> = Extract<Reply, { readonly type: T }>;

export interface Terms {
  readonly ttlMs?: number;
  readonly waitTimeoutMs?: number;
  readonly standbyMs?: number;
  readonly idleTimeoutMs?: number;
  readonly purpose?: string;
  readonly tokens?: boolean;
  readonly dryRun?: boolean;
  readonly key?: string;
  readonly actor?: Actor;
  readonly entropy?: Entropy;
}

/** A command whose work is done in slices. */
export interface SlicedCommand {
  readonly isAnswered: () => boolean;
  /** True: more is to be done. */
  readonly slice: () => boolean;
  /** Does all that is left. */
  readonly finish: () => Reply;
}

/** One or more intents, as text: "MUTATES FILE:/a", "CONSUMES GPU:/0 x3", "RENAMES FILE:/a > FILE:/b", "MUTATES GPU:/* any". */
export type Intents = string | readonly string[];

export type World = ReturnType<typeof createWorld>;

/** The state and the clock; worlds of several tenants may share them. */
export interface Base {
  state: State;
  now: Millis;
  drawn: number;
}

/** A world whose agents are registered in this order: the first is the oldest. */
export function createWorld(...agents: readonly string[]) {
  return openWorld({ state: createState(), now: beginning, drawn: 0 }, "t1", agents);
}

function openWorld(base: Base, tenant: string, agents: readonly string[]) {
  let events: readonly KernelEvent[] = [];
  let changes: Step["changes"] = [];
  let ready: readonly ReadyTask[] = [];
  const history = new TestHistory();
  const receipts: Receipt[] = [];

  const take = (step: Step): void => {
    ({ changes, ready } = step);
    // What operators change is in the audit log too, which its own tests check (S7).
    events = step.events.filter(({ type }) => type !== "audit.recorded");
    receipts.push(...step.receipts);
    history.take(step.changes, base.now);
  };
  const draw = (): Entropy => {
    base.drawn++;
    return [Math.imul(base.drawn, 2_654_435_761) >>> 0, 0];
  };
  const complete = (ask: Ask): Command => ({ tenant, actor: operator, entropy: draw(), ...ask }) as Command;
  const perform = (ask: Ask): Reply => {
    const outcome = apply(base.state, complete(ask), base.now);
    take(outcome);
    return outcome.reply;
  };
  const expect = <T extends Reply["type"]>(type: T, reply: Reply): ReplyOf<T> => {
    if (reply.type !== type) throw new Error(`Expected ${type}, got ${JSON.stringify(reply)}`);
    return reply as ReplyOf<T>;
  };
  const entry = () => base.state.tenants.get(tenant);
  const agentRecord = (agentId: string): Agent => found(entry()?.agents.get(agentId), agentId).record;
  const as = (agentId: string, epoch = entry()?.agents.get(agentId)?.record.epoch ?? 1): Actor => ({
    role: "agent",
    agentId,
    epoch,
  });
  const holderOf = (leaseId: string): Actor => as(found(entry()?.leases.get(leaseId), leaseId).record.agentId);
  const acquire = (agentId: string, intents: Intents, terms: Terms = {}): AskOf<Acquire> => ({
    type: "acquire",
    actor: terms.actor ?? as(agentId),
    ...(terms.entropy === undefined ? {} : { entropy: terms.entropy }),
    agentId,
    intents: (typeof intents === "string" ? [intents] : intents).map(intentOf),
    ttlMs: terms.ttlMs ?? null,
    waitTimeoutMs: terms.waitTimeoutMs ?? null,
    standbyMs: terms.standbyMs ?? 0,
    idleTimeoutMs: terms.idleTimeoutMs ?? null,
    purpose: terms.purpose ?? null,
    tokens: terms.tokens ?? false,
    dryRun: terms.dryRun ?? false,
    requestKey: terms.key ?? null,
  });
  const settleAll = (): readonly KernelEvent[] => {
    take(settle(base.state, base.now, Number.POSITIVE_INFINITY));
    return events;
  };
  const report = (
    type: "bind_confirmed" | "bind_failed" | "teardown_confirmed" | "teardown_failed",
    { id, generation }: Lease,
    words: { readonly coordinate?: string; readonly reason?: string } = {},
  ): Lease => {
    const now = entry()?.leases.get(id)?.record.generation ?? generation;
    const coordinate = words.coordinate ?? null;
    const ask: Ask = { type, cellId: null, leaseId: id, generation: now, coordinate, reason: words.reason ?? null };
    return expect("lease", perform(ask)).lease;
  };
  const transition = (agentId: string, to: AgentState | "DIE_RESTART"): Agent =>
    expect("agent", perform({ type: "transition_agent", actor: as(agentId), agentId, to })).agent;

  const world = {
    base,
    tenant,
    as,
    acquire,
    expect,
    get now(): Millis {
      return base.now;
    },
    /** Events of the last step. */
    get events(): readonly KernelEvent[] {
      return events;
    },
    /** Their types alone, agents' transitions left out: what happened to leases, requests and resources. */
    get happened(): readonly string[] {
      return events.filter(({ type }) => !type.startsWith("agent.")).map(({ type }) => type);
    },
    /** What can be offered since the last step. */
    get ready(): readonly ReadyTask[] {
      return ready;
    },
    /** The whole ledger. */
    receipts: receipts as readonly Receipt[],
    endedTask: (taskId: string): EndedTask => found(history.tasks.get(taskId), taskId),
    /** A world of another tenant in the same kernel, under the same clock. */
    beside: (tenantId: string, ...others: readonly string[]) => openWorld(base, tenantId, others),
    /** Whatever it is answered with. */
    ask: perform,
    /** Ends at most `limit` records in a step; what is more goes on slice by slice (L14). */
    begin(ask: Ask, limit: number): SlicedCommand {
      const begun = applySlice(base.state, complete(ask), base.now, limit);
      take(begun);
      let { reply } = begun;
      const slice = (): boolean => {
        const { done, ...step } = advance(base.state, base.now, limit);
        take(step);
        if (reply.type !== "later" || done !== reply.job) return hasJobs(base.state);
        const answered = answerLater(base.state, reply, base.now);
        take(answered);
        reply = answered.reply;
        return hasJobs(base.state);
      };
      const finish = (): Reply => {
        while (hasJobs(base.state)) slice();
        if (reply.type === "later") throw new Error("It is not answered, and nothing is left to do.");
        return reply;
      };
      return { isAnswered: () => reply.type !== "later", slice, finish };
    },
    /** The kernel is dropped and restored from its records. */
    crash(): void {
      base.state = restore(snapshot(base.state));
    },
    /** As an engine asks: what the kernel no longer knows is looked up among the ended. */
    askHistory(ask: Ask): Reply {
      const reply = perform(ask);
      const completed = history.complete(complete(ask), reply, base.now);
      return completed ?? perform({ ...ask, keyLookedUp: true } as Ask);
    },
    refused(code: RefusalCode, ask: Ask): Refusal {
      settleAll();
      const before = records(base.state);
      const refusal = expect("refused", perform(ask));
      if (refusal.code !== code) throw new Error(`Expected ${code}, got ${JSON.stringify(refusal)}`);
      if (refusal.detail.length < 10) throw new Error(`The refusal says nothing: ${JSON.stringify(refusal)}`);
      if (events.length > 0) throw new Error(`A refusal must not emit events: ${JSON.stringify(events)}`);
      if (changes.length > 0 || records(base.state) !== before)
        throw new Error(`The refusal ${code} changed something.`);
      return refusal;
    },
    /** Time goes by, and nobody has looked yet. */
    later(ms: number): void {
      base.now += ms;
    },
    /** Time goes by, and what is due is settled. */
    pass(ms: number): readonly KernelEvent[] {
      base.now += ms;
      return settleAll();
    },

    // What is there.
    agent: agentRecord,
    lease: (leaseId: string): Lease | undefined => entry()?.leases.get(leaseId)?.record,
    ended: (leaseId: string): Lease => found(history.leases.get(leaseId), leaseId),
    leases: (): Lease[] => Array.from(entry()?.leases.values() ?? [], ({ record }) => record),
    request: (requestId: string): Request | undefined => entry()?.requests.get(requestId)?.record,
    requests: (): Request[] => Array.from(entry()?.requests.values() ?? [], ({ record }) => record),
    resource: (name: string): Resource | undefined => entry()?.resources.get(name)?.record,
    digest: (agentId: string): Digest | null => entry()?.agents.get(agentId)?.digest?.record ?? null,

    // Acquiring, by its four verdicts.
    grant: (agentId: string, intents: Intents, terms?: Terms): Lease => {
      const [lease] = expect("granted", perform(acquire(agentId, intents, terms))).leases;
      return found(lease, "a lease");
    },
    grants: (agentId: string, intents: Intents, terms?: Terms): ReplyOf<"granted"> =>
      expect("granted", perform(acquire(agentId, intents, terms))),
    waits: (agentId: string, intents: Intents, terms?: Terms): ReplyOf<"waiting"> =>
      expect("waiting", perform(acquire(agentId, intents, terms))),
    /** For 20 s where the terms name no time. */
    standsBy: (agentId: string, intents: Intents, terms: Terms = {}): ReplyOf<"standby"> =>
      expect("standby", perform(acquire(agentId, intents, { standbyMs: 20_000, ...terms }))),
    dies: (agentId: string, intents: Intents, terms?: Terms): ReplyOf<"died"> =>
      expect("died", perform(acquire(agentId, intents, terms))),
    pauses: (agentId: string, intents: Intents, terms?: Terms): ReplyOf<"paused"> =>
      expect("paused", perform(acquire(agentId, intents, terms))),
    /** Whatever became of it. */
    asks: (requestId: string): Reply => perform({ type: "collect_request", collect: null, requestId }),
    collect: (requestId: string): ReplyOf<"granted"> =>
      expect("granted", perform({ type: "collect_request", collect: null, requestId })),
    cancel: (requestId: string): void => void expect("done", perform({ type: "cancel_request", requestId })),

    // Holding.
    heartbeat: (leaseId: string, activity = false): Lease =>
      expect("lease", perform({ type: "heartbeat", actor: holderOf(leaseId), leaseId, activity })).lease,
    heartbeatAll: (agentId: string, leaseIds: readonly string[] | null = null): ReplyOf<"leases"> =>
      expect("leases", perform({ type: "heartbeat_all", actor: as(agentId), agentId, leaseIds, activity: false })),
    renew: (leaseId: string, generation: number | null = null): Lease =>
      expect("lease", perform({ type: "renew_lease", activity: false, actor: holderOf(leaseId), leaseId, generation }))
        .lease,
    release: (leaseId: string, version: string | null = null): Lease =>
      expect("lease", perform({ type: "release_lease", actor: holderOf(leaseId), leaseId, version })).lease,
    releaseAll: (agentId: string, leaseIds: readonly string[] | null = null): ReplyOf<"leases"> =>
      expect("leases", perform({ type: "release_all", actor: as(agentId), agentId, leaseIds, versions: null })),
    transfer: (leaseId: string, toAgentId: string, version: string | null = null): Lease =>
      expect("lease", perform({ type: "transfer_lease", actor: holderOf(leaseId), leaseId, toAgentId, version })).lease,
    downgrade: (leaseId: string, predicate: string, version: string | null = null): Lease =>
      expect("lease", perform({ type: "downgrade_lease", actor: holderOf(leaseId), leaseId, predicate, version }))
        .lease,
    revoke: (target: Extract<Ask, { type: "revoke" }>["target"], reason = "test"): number =>
      expect("revoked", perform({ type: "revoke", target, reason })).count,

    // Agents.
    register: (agentId: string): Agent =>
      expect("agent", perform({ type: "register_agent", agentId, labels: null })).agent,
    transition,
    restart: (agentId: string): Agent =>
      expect("agent", perform({ type: "restart_agent", actor: as(agentId), agentId })).agent,
    verify: (agentId: string, leaseIds: readonly string[] | null = null): ReplyOf<"leases"> =>
      expect("leases", perform({ type: "verify_all", actor: as(agentId), agentId, leaseIds })),
    pauseAgent: (agentId: string): Agent => expect("agent", perform({ type: "pause_agent", agentId })).agent,
    unpauseAgent: (agentId: string): Agent => expect("agent", perform({ type: "unpause_agent", agentId })).agent,
    save: (agentId: string, digest: Partial<DigestInput> = {}): Digest =>
      expect(
        "digest",
        perform({ type: "save_digest", actor: as(agentId), agentId, digest: { ...plainDigest, ...digest } }),
      ).digest,
    resume: (agentId: string, assumptions: readonly Assumption[] = []): ReplyOf<"resumed"> =>
      expect("resumed", perform({ type: "resume_agent", actor: as(agentId), agentId, assumptions })),

    // Resources and their cells.
    declare: (resource: string, capacity: number | null = null, cell: string | null = null): Resource =>
      expect("resource", perform({ type: "declare_resource", refillMs: null, resource, capacity, cell })).resource,
    limit: (resource: string, capacity: number, refillMs: number): Resource =>
      expect("resource", perform({ type: "declare_resource", resource, capacity, refillMs, cell: null })).resource,
    fence: (resource: string, reason = "test"): Resource =>
      expect("resource", perform({ type: "fence_resource", resource, reason })).resource,
    reset: (resource: string): Resource =>
      expect("resource", perform({ type: "reset_resource", resource, probed: true })).resource,
    withdraw: (resource: string, revoke = false): Resource =>
      expect("resource", perform({ type: "withdraw_resource", resource, revoke })).resource,
    bound: (lease: Lease, coordinate = "here:1"): Lease => report("bind_confirmed", lease, { coordinate }),
    bindFails: (lease: Lease, reason?: string): Lease =>
      report("bind_failed", lease, reason === undefined ? {} : { reason }),
    tornDown: (lease: Lease): Lease => report("teardown_confirmed", lease),
    teardownFails: (lease: Lease, reason?: string): Lease =>
      report("teardown_failed", lease, reason === undefined ? {} : { reason }),

    // The tenant.
    settings: (settings: Partial<TenantSettings>): void =>
      void expect("tenant", perform({ type: "set_tenant_settings", tenantId: tenant, settings })),
    quotas: (quotas: Partial<TenantQuotas>): void =>
      void expect("tenant", perform({ type: "set_tenant_quotas", tenantId: tenant, quotas })),
    suspend: (reason = "test"): void =>
      void expect("tenant", perform({ type: "suspend_tenant", tenantId: tenant, reason })),
    unsuspend: (): void => void expect("tenant", perform({ type: "resume_tenant", tenantId: tenant, reason: null })),
  };

  expect("tenant", perform({ type: "create_tenant", tenantId: tenant }));
  expect("policy", perform(openPolicy));
  for (const agentId of agents) world.register(agentId);
  return world;
}

/** A dead task's handle still has what it carried. */
export const plainDigest: DigestInput = {
  checkpointId: "cp-1",
  resumePoint: "step 1",
  context: null,
  intentBacklog: [],
  resolutionStrategy: "RETRY",
  assumptions: [],
};

export function actor(role: Role): Actor {
  return { role, agentId: null, epoch: null };
}

export function intentOf(text: string): IntentInput {
  const [predicate = "", resource = "", ...rest] = text.split(" ");
  const units = rest.find((word) => /^x\d+$/.test(word));
  const to = rest[rest.indexOf(">") + 1];
  return {
    predicate,
    resource,
    ...(rest.includes("any") ? { pick: "any" } : {}),
    ...(units === undefined ? {} : { units: Number(units.slice(1)) }),
    ...(rest.includes(">") && to !== undefined ? { to } : {}),
  };
}

/** Everything that is alive, in an order that does not depend on how it came about. */
export function records(state: State): string {
  return snapshot(state)
    .map((record) => JSON.stringify(record))
    .sort()
    .join("\n");
}

export function found<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`There is no ${what}.`);
  return value;
}
