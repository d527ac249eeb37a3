/**
 * All events of a tenant after a given one, without loss or repetition: first those that are stored, then the live
 * ones. Near the present the follower joins the live ones before it has read the last stored ones, and sets aside what
 * comes meanwhile; so it arrives however fast the others are.
 *
 *   reading ──► joining ──► live ──► (events were missed) ──► reading …
 */
import { DatabaseUnavailable, ShuttingDown } from "../../engine/engine-types.ts";
import { eventsAfter } from "../../engine/history.ts";
import { parseResourceName } from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { above } from "../../protocol/operating/roles.ts";
import type { Input } from "../../protocol/operation.ts";
import type { EventsAfter } from "../../store/store.ts";
import type { Meter } from "../auth/rate-limit.ts";
import type { Caller, Service } from "../service.ts";
import { auditType, type EventFilter, matches, type StoredEvent, storedSubjectOf } from "./event-filter.ts";
import type { Follower } from "./event-hub.ts";

export interface EventQuery {
  readonly tenant: string;
  /** Only events after this one; null: only those to come. */
  readonly since: number | null;
  readonly types: readonly string[] | null;
  readonly resource: string | null;
  readonly agentId: string | null;
  readonly seesAudit: boolean;
  /** What its reading is charged to; null: to nobody. */
  readonly meter: Meter | null;
}

/** From the checked input of `events`. */
export function eventQueryOf(input: Input, { tenant, actor, meter }: Caller): EventQuery {
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
    seesAudit: above.includes(actor.role),
    meter,
  };
}

export interface FollowHooks {
  /** From here on events come; before, it may still end with an answer. */
  readonly begun?: (seq: number) => void;
  /** Called with what gives a portion of events, so that all of it is sent at once. */
  readonly together?: (give: () => void) => void;
  /** Awaited between portions of stored events, so that a reader sets the pace. */
  readonly pace?: () => Promise<void>;
  /** Called with whether all announced events have been delivered, whenever that changes. */
  readonly caughtUp?: (isSo: boolean) => void;
}

export type Deliver = (seq: number, text: string) => void;

/** How the stored text of such an event begins. */
const auditStart = `{"type":"${auditType}"`;
/** Events that are read from the store at once. */
const portion = 250;
/** A follower that lags by no more events than this switches from the store to live delivery. */
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
  const { tenant, agentId, seesAudit } = query;
  const filter: EventFilter = {
    tenant,
    agentId,
    seesAudit,
    resource,
    types: query.types === null ? null : new Set(query.types),
  };
  const following = new Following(service, filter, query, { ...hooks, deliver, ended });
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
  private readonly meter: Meter | null;
  private position: number | null;
  /** Live events that wait until the stored ones before them were read; null while live. */
  private aside: { readonly seq: number; readonly text: string }[] | null = null;
  /** What came after this one is announced; what came before must be read. */
  private joinedAt = 0;
  /** Raised whenever reading begins again, so that an older reading notices. */
  private round = 0;
  private isOver = false;

  constructor(service: Service, filter: EventFilter, { since, meter }: EventQuery, hooks: Hooks) {
    this.service = service;
    this.filter = filter;
    this.position = since;
    this.meter = meter;
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
    const { readers } = this.service.events;
    const leave = await readers.enter(this.filter.tenant);
    try {
      if (round === this.round) await this.readAsReader(round, isFirst);
    } finally {
      leave();
    }
  }

  private async readAsReader(round: number, isFirst: boolean): Promise<void> {
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
      await this.service.limiter.pay(this.meter);
      if (isStale()) return;
      // One portion at a time, of all who read: the loop has other things to do in between (S8).
      await events.readers.turn(this.filter.tenant, async () => {
        if (isStale()) return;
        const { tenant } = this.filter;
        const found = await eventsAfter(engine, { tenant, seq: position, limit: portion, mayLag: true });
        if (isStale()) return;
        // What was to come next is forgotten by now. It gets 410 when it comes back, and reads the present state.
        if (position + 1 < found.earliest) return this.end(forgotten(found.earliest));
        this.giveTogether(() => this.giveStored(found, round));
      });
      if (isStale()) return;
      await this.hooks.pace?.();
      if (isStale()) return;
    }
  }

  private goLive(): void {
    const { aside } = this;
    this.aside = null;
    this.giveTogether(() => {
      for (const { seq, text } of aside ?? []) this.deliver(seq, text);
    });
    this.hooks.caughtUp?.(true);
  }

  private giveTogether(give: () => void): void {
    if (this.hooks.together === undefined) give();
    else this.hooks.together(give);
  }

  private giveStored({ seqs, texts, through }: EventsAfter, round: number): void {
    const { types, agentId, resource, seesAudit } = this.filter;
    const wantsAll = types === null && agentId === null && resource === null;
    for (const [index, seq] of seqs.entries()) {
      if (round !== this.round) return;
      const text = texts[index] ?? "";
      if (!seesAudit && text.startsWith(auditStart)) continue;
      if (wantsAll || matches(this.filter, storedSubjectOf(JSON.parse(text) as StoredEvent)))
        this.hooks.deliver(seq, text);
    }
    this.position = Math.max(this.position ?? 0, through);
  }

  /** S6: a number that is not of this history: it is forgotten, or the data was restored since it was given. */
  private async findGone(since: number): Promise<Answer | null> {
    const { engine } = this.service;
    const found = await eventsAfter(engine, { tenant: this.filter.tenant, seq: since, limit: 1, mayLag: true });
    if (since + 1 < found.earliest) return forgotten(found.earliest);
    if (since <= engine.lastSeq && found.isKnown) return null;
    const detail =
      "There has been no such event, so the data was restored from a backup since; read the present state, and " +
      "follow from `earliest`.";
    return errorAnswer("history_pruned", detail, { earliest: since > engine.lastSeq ? found.earliest : found.next });
  }

  private end(answer: Answer): void {
    if (this.isOver) return;
    this.stop();
    this.hooks.ended(answer);
  }
}

function forgotten(earliest: number): Answer {
  const detail = "Events after this one are forgotten; read the present state, and follow from `earliest`.";
  return errorAnswer("history_pruned", detail, { earliest });
}

function unavailableAnswer(fault: unknown): Answer {
  const { message } = fault instanceof ShuttingDown ? fault : new DatabaseUnavailable();
  const code = fault instanceof ShuttingDown ? "shutting_down" : "database_unavailable";
  return errorAnswer(code, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`, { retry_after_ms: 1_000 });
}
