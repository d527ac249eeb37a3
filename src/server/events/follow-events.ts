/**
 * All events of a tenant after a given one, without loss or repetition: first those that are stored, then the live
 * ones. Near the present the follower joins the live ones before it has read the last stored ones, and sets aside what
 * comes meanwhile; so it arrives however fast the others are.
 *
 *   reading ──► joining ──► live ──► (events were missed) ──► reading …
 */
import { DatabaseUnavailable, ShuttingDown } from "../../engine/engine-types.ts";
import { parseResourceName } from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Input } from "../../protocol/operation.ts";
import type { PackedEvents } from "../../store/store.ts";
import type { Service } from "../service.ts";
import { type EventFilter, matches, type StoredEvent, storedSubjectOf } from "./event-filter.ts";
import type { Follower } from "./event-hub.ts";

export interface EventQuery {
  readonly tenant: string;
  /** Only events after this one; null: only those to come. */
  readonly since: number | null;
  readonly types: readonly string[] | null;
  readonly resource: string | null;
  readonly agentId: string | null;
}

/** From the checked input of `events`. */
export function eventQueryOf(input: Input, tenant: string): EventQuery {
  const {
    since,
    types,
    resource,
    agent_id: agentId,
  } = input as {
    readonly since?: number | null;
    readonly types?: readonly string[] | null;
    readonly resource?: string | null;
    readonly agent_id?: string | null;
  };
  return {
    tenant,
    since: since ?? null,
    types: types ?? null,
    resource: resource ?? null,
    agentId: agentId ?? null,
  };
}

export interface FollowHooks {
  /** From here on events come; before, it may still end with an answer. */
  readonly begun?: (seq: number) => void;
  /** Awaited between portions of stored events, so that a reader sets the pace. */
  readonly pace?: () => Promise<void>;
  /** Called with whether all announced events have been delivered, whenever that changes. */
  readonly caughtUp?: (isSo: boolean) => void;
}

export type Deliver = (seq: number, text: string) => void;

/** Events that are read from the store at once. */
const portion = 1_000;
/** So near the present, or nearer, a follower joins the live ones. */
const nearness = 5_000;
/** So much is set aside for it meanwhile; past that it reads on, and joins again later. */
const asideMax = 4 * nearness;

/** Returns how to stop. `ended` is called at most once, and nothing after it. */
export function followEvents(
  service: Service,
  query: EventQuery,
  deliver: Deliver,
  ended: (answer: Answer) => void,
  hooks: FollowHooks = {},
): () => void {
  const resource = query.resource === null ? null : parseResourceName(query.resource);
  if (resource !== null && "problem" in resource) {
    ended(errorAnswer("invalid_resource", resource.problem, { field: "resource" }));
    return () => undefined;
  }
  const { tenant, agentId } = query;
  const filter: EventFilter = { tenant, agentId, resource, types: query.types === null ? null : new Set(query.types) };
  const following = new Following(service, filter, query.since, { ...hooks, deliver, ended });
  following.start();
  return () => following.stop();
}

interface Hooks extends FollowHooks {
  readonly deliver: Deliver;
  readonly ended: (answer: Answer) => void;
}

class Following implements Follower {
  readonly filter: EventFilter;
  private readonly service: Service;
  private readonly hooks: Hooks;
  private position: number | null;
  /** Live events that wait until the stored ones before them were read; null while live. */
  private aside: { readonly seq: number; readonly text: string }[] | null = null;
  /** What came after this one is announced; what came before must be read. */
  private joinedAt = 0;
  /** Raised whenever reading begins again, so that an older reading notices. */
  private round = 0;
  private isOver = false;

  constructor(service: Service, filter: EventFilter, since: number | null, hooks: Hooks) {
    this.service = service;
    this.filter = filter;
    this.position = since;
    this.hooks = hooks;
  }

  start(): void {
    const { engine, events } = this.service;
    if (this.position !== null) {
      this.read(this.position, true);
      return;
    }
    this.position = engine.lastSeq;
    this.hooks.begun?.(this.position);
    this.hooks.caughtUp?.(true);
    events.join(this);
  }

  stop(): void {
    this.isOver = true;
    this.round++;
    this.service.events.leave(this);
  }

  deliver(seq: number, text: string): void {
    if (this.isOver || seq <= (this.position ?? 0)) return;
    if (this.aside === null) this.hooks.deliver(seq, text);
    else if (this.aside.length < asideMax) this.aside.push({ seq, text });
    else {
      this.service.events.leave(this);
      this.aside = null;
      this.read(this.position ?? 0, false);
    }
  }

  /** While it was live, all up to the last announced one has been given. */
  fallBack(lastSeen: number): void {
    const position = this.position ?? 0;
    const wasLive = this.aside === null;
    this.aside = null;
    this.read(wasLive ? Math.max(position, lastSeen) : position, false);
  }

  private read(from: number, isFirst: boolean): void {
    const round = ++this.round;
    this.position = from;
    this.hooks.caughtUp?.(false);
    this.readOn(round, isFirst).catch((fault: unknown) => {
      if (round === this.round) this.end(unavailableAnswer(fault));
    });
  }

  private async readOn(round: number, isFirst: boolean): Promise<void> {
    const { engine, events } = this.service;
    const isStale = (): boolean => round !== this.round;
    if (isFirst) {
      const refusal = await this.findGone(this.position ?? 0);
      if (isStale()) return;
      if (refusal !== null) return this.end(refusal);
      this.hooks.begun?.(this.position ?? 0);
    }
    for (;;) {
      const position = this.position ?? 0;
      if (this.aside === null && engine.lastSeq - position <= nearness) {
        this.aside = [];
        this.joinedAt = events.lastSeq;
        events.join(this);
      }
      if (this.aside !== null && position >= this.joinedAt) return this.goLive();
      const rows = await engine.store.eventsAfter({ seq: position, limit: portion });
      if (isStale()) return;
      for (const row of rows) this.giveRow(row, round);
      if (isStale()) return;
      await this.hooks.pace?.();
      if (isStale()) return;
    }
  }

  private goLive(): void {
    const { aside } = this;
    this.aside = null;
    for (const { seq, text } of aside ?? []) this.deliver(seq, text);
    this.hooks.caughtUp?.(true);
  }

  private giveRow({ firstSeq, count, body }: PackedEvents, round: number): void {
    const packed = JSON.parse(body) as readonly (readonly [tenant: string, event: StoredEvent])[];
    for (const [index, [tenant, event]] of packed.entries()) {
      const seq = firstSeq + index;
      if (seq <= (this.position ?? 0) || tenant !== this.filter.tenant) continue;
      if (round !== this.round) return;
      if (matches(this.filter, storedSubjectOf(event))) this.hooks.deliver(seq, JSON.stringify(event));
    }
    this.position = Math.max(this.position ?? 0, firstSeq + count - 1);
  }

  private async findGone(since: number): Promise<Answer | null> {
    const { engine } = this.service;
    const earliest = await engine.store.earliestSeq();
    if (since + 1 < earliest) {
      const detail = "Events after this one are forgotten; read the present state, and follow from `earliest`.";
      return errorAnswer("history_pruned", detail, { earliest });
    }
    if (since > engine.lastSeq) {
      const detail =
        "There has been no such event, so the data was restored from a backup since; read the present state, and " +
        "follow from `earliest`.";
      return errorAnswer("history_pruned", detail, { earliest });
    }
    return null;
  }

  private end(answer: Answer): void {
    if (this.isOver) return;
    this.stop();
    this.hooks.ended(answer);
  }
}

function unavailableAnswer(fault: unknown): Answer {
  const { message } = fault instanceof ShuttingDown ? fault : new DatabaseUnavailable();
  const code = fault instanceof ShuttingDown ? "shutting_down" : "database_unavailable";
  return errorAnswer(code, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`, { retry_after_ms: 1_000 });
}
