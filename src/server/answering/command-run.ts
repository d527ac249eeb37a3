/**
 * A command on its way through the engine and back: what all of them share, what most of them consist of, and answers that
 * are held until a request has been decided (`hold_ms`).
 */
import type { NumberedEvent } from "../../engine/batch.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { completeReply, endedRequests, needsHistory } from "../../engine/history.ts";
import { type Command, unstamped } from "../../kernel/contract/commands.ts";
import type { EndedRequest, Millis } from "../../kernel/contract/records.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import { answerForStoredKey } from "../../kernel/kernel.ts";
import type { Answer, AnswerContext } from "../../protocol/answers/answer.ts";
import type { QueryReply } from "../../protocol/answers/queries.ts";
import type { CommandOperation, Decoded, Input } from "../../protocol/operation.ts";
import type { AgentKey } from "../../store/store.ts";
import type { Caller, Service } from "../service.ts";
import { answerForFault } from "./faults.ts";
import { KeyLookup } from "./key-lookup.ts";
import { isPlace } from "./tenant-use.ts";

export type Respond = (answer: Answer) => void;

/** What a `run` of an operation's own gets. */
export interface RunRequest<C extends Decoded = Decoded> {
  readonly service: Service;
  readonly operation: CommandOperation;
  readonly input: Input;
  readonly command: C;
  readonly caller: Caller;
  readonly respond: Respond;
}

/** Answers once. Returns how to drop a held answer when its client goes away, or null where nothing is held. */
export type Run = (request: RunRequest) => (() => void) | null;

/** Submits, asks history where the kernel has to, and encodes. */
export class CommandRun<C extends Command = Command> implements Outlet {
  readonly encode: null;
  protected readonly service: Service;
  protected readonly operation: CommandOperation;
  protected readonly command: C;
  protected readonly respond: Respond;

  constructor(service: Service, operation: CommandOperation, command: C, respond: Respond) {
    this.encode = null;
    this.service = service;
    this.operation = operation;
    this.command = command;
    this.respond = respond;
  }

  send({ reply, now }: Decision): void {
    const { service, command } = this;
    service.counts.note(reply);
    // Not asked of a grant: it is what most answers are, and leaves nothing open.
    if (reply.type === "granted") return this.answer(reply, now);
    if (reply.type === "request_key_unknown") return this.lookUp(reply);
    if (!needsHistory(reply)) return this.answer(reply, now);
    completeReply(service.engine.store, command, reply).then(
      (completed) => this.answer(completed, now),
      (fault: unknown) => this.fail(fault),
    );
  }

  fail(fault: unknown): void {
    this.respond(answerForFault(this.service, fault));
  }

  /** W10: memory does not know the key. The request is decided if the store does not know it either. */
  private lookUp(unknown: KeyUnknown): void {
    const { service, command } = this;
    const { engine, requestKeys, counts } = service;
    if (command.type !== "acquire") throw new Error(`${command.type} has no key to look up.`);
    const { tenant, agentId } = command;
    const name = JSON.stringify([agentId, unknown.key]);
    requestKeys.hold(tenant, name, (release) => {
      const decide = (): void =>
        engine.submit({ ...command, keyLookedUp: true }, new Releasing(this, release) as Outlet);
      requestKeys.find(tenant, name).then(
        (found) => {
          if (found === null) return decide();
          release();
          const reply = answerForStoredKey(unknown, found);
          counts.note(reply);
          this.answer(reply, engine.now());
        },
        (fault: unknown) => {
          release();
          this.fail(fault);
        },
      );
    });
  }

  protected answer(reply: QueryReply, now: Millis, more?: Partial<AnswerContext>): void {
    const shown = showTokens.has(this.operation.name) ? { now, tokenOf: this.service.tokens.tokenOf } : { now };
    this.respond(this.operation.encode(reply, more === undefined ? shown : { ...shown, ...more }));
  }
}

type KeyUnknown = Extract<Reply, { readonly type: "request_key_unknown" }>;

/** Lets a key go once what was submitted under it is answered. */
class Releasing implements Outlet {
  readonly encode: null = null;
  private readonly outlet: Pick<Outlet, "send" | "fail">;
  private readonly release: () => void;

  constructor(outlet: Pick<Outlet, "send" | "fail">, release: () => void) {
    this.outlet = outlet;
    this.release = release;
  }

  send(decided: Decision): void {
    this.release();
    this.outlet.send(decided);
  }

  fail(fault: Error): void {
    this.release();
    this.outlet.fail(fault);
  }
}

/** W10: what the keys of requests were used for, where memory has forgotten them. */
export type RequestKeys = KeyLookup<EndedRequest>;

export function requestKeysOf(engine: Engine): RequestKeys {
  return new KeyLookup((tenant, names) =>
    endedRequests(
      engine.store,
      tenant,
      Array.from(names, (name) => JSON.parse(name) as AgentKey),
    ),
  );
}

/** Operations whose reply carries the holder's tokens. Transfer is not among them: the giver no longer holds the lease. */
const showTokens: ReadonlySet<string> = new Set([
  "acquire",
  "get_request",
  "heartbeat",
  "heartbeat_all",
  "renew_lease",
  "downgrade_lease",
  "heartbeat_task",
]);

/**
 * Callers that wait for the end of a request. While nothing happens a held answer costs an entry in a map: no timer in the
 * kernel, no polling. The engine announces each end once it is durable.
 */
export class RequestWatch {
  private readonly engine: Engine;
  private readonly watchers = new Map<string, Set<(isLast: boolean) => void>>();
  private unsubscribe: (() => void) | null = null;

  constructor(engine: Engine) {
    this.engine = engine;
    // Events of a commit with unknown outcome are never announced (S2), so all ask again.
    engine.onRecovery(() => this.wakeAll(false));
  }

  get size(): number {
    return this.watchers.size;
  }

  /**
   * Calls back when the request was granted or has ended, or when that may have happened unseen. `isLast`: the server is
   * shutting down, so waiting is over. Returns how to stop watching.
   */
  watch(requestId: string, ended: (isLast: boolean) => void): () => void {
    this.unsubscribe ??= this.engine.subscribe((events) => this.follow(events));
    const waiting = this.watchers.get(requestId) ?? new Set();
    this.watchers.set(requestId, waiting.add(ended));
    return () => {
      waiting.delete(ended);
      if (waiting.size === 0 && this.watchers.get(requestId) === waiting) this.watchers.delete(requestId);
    };
  }

  /** `isLast`: the server is shutting down, and they answer with the present state. */
  wakeAll(isLast: boolean): void {
    for (const requestId of [...this.watchers.keys()]) this.wake(requestId, isLast);
  }

  private wake(requestId: string, isLast: boolean): void {
    const waiting = this.watchers.get(requestId);
    this.watchers.delete(requestId);
    for (const ended of waiting ?? []) ended(isLast);
  }

  private follow(events: readonly NumberedEvent[]): void {
    if (this.watchers.size === 0) {
      this.unsubscribe?.();
      this.unsubscribe = null;
      return;
    }
    for (const { event } of events) {
      switch (event.type) {
        case "request.granted":
        case "request.timed_out":
        case "request.canceled":
        case "request.paused":
          this.wake(event.request.id, false);
          break;
        case "request.died":
          if (event.requestId !== null) this.wake(event.requestId, false);
      }
    }
  }
}

/** An acquire, or the question about its request: `hold_ms` is how long its answer may be held while it waits. */
export function runHeld({ service, operation, command, input, respond }: RunRequest<Command>): (() => void) | null {
  const { hold_ms: holdMs, collect } = input;
  if (typeof holdMs !== "number" || holdMs <= 0) {
    service.engine.submit(command, new CommandRun(service, operation, command, respond));
    return null;
  }
  const place = service.uses.enter(command.tenant, "heldMax");
  if (!isPlace(place)) {
    service.counts.refuse(place.code);
    respond(place);
    return null;
  }
  const run = new HeldRun(service, operation, command, (answer) => {
    place.leave();
    respond(answer);
  });
  // A caller that acquires is there to collect; one that asks for a request says so, or is its agent (W8).
  run.collect = typeof collect === "boolean" ? collect : command.type === "acquire" ? true : null;
  run.heldUntil = service.engine.now() + holdMs;
  service.engine.submit(command, run);
  return () => {
    place.leave();
    run.drop();
  };
}

class HeldRun extends CommandRun {
  /** By the engine's clock; 0: not any more. */
  heldUntil: Millis = 0;
  collect: boolean | null = null;
  private stopWaiting: (() => void) | null = null;

  override send(decided: Decision): void {
    const { reply } = decided;
    if ((reply.type === "waiting" || reply.type === "standby") && this.heldUntil > 0) this.hold(reply.requestId);
    else super.send(decided);
  }

  /** The client is gone: nothing is collected any more. */
  drop(): void {
    this.heldUntil = 0;
    this.stopWaiting?.();
  }

  /**
   * Waits for the request's end or the end of the hold, and then asks for the request: only that collects a grant (W8), so a
   * client that went away in between loses it to the next in line. A frozen client looks the same as
   * one that is there: it can ask with `collect: false`, and send a heartbeat once it has the answer.
   */
  private hold(requestId: string): void {
    const { engine, requests } = this.service;
    const { tenant, actor } = this.command;
    const collect = (isLast: boolean): void => {
      this.stopWaiting?.();
      // After the end of the hold the answer leaves even if the request still waits; before it, it is held again.
      if (isLast) this.heldUntil = 0;
      engine.submit(
        { type: "collect_request", collect: this.collect, tenant, actor, requestId, entropy: unstamped },
        this,
      );
    };
    const timer = setTimeout(() => collect(true), Math.max(this.heldUntil - engine.now(), 0));
    const unwatch = requests.watch(requestId, collect);
    this.stopWaiting = () => {
      this.stopWaiting = null;
      clearTimeout(timer);
      unwatch();
    };
  }
}

/** Counts of what was decided, kept as plain numbers because every request counts. */
export class Counts {
  /** Answers to an acquire, or to the question about its request. */
  readonly verdicts = { granted: 0, waiting: 0, standby: 0, died: 0, paused: 0 };
  /** By code: the kernel's refusals, and those of the edge itself. */
  readonly refusals = new Map<string, number>();
  /** Called with each answer; null: nobody counts them. */
  onAnswered: ((operation: string, status: number, ms: number) => void) | null = null;

  note(reply: Reply): void {
    switch (reply.type) {
      case "granted":
      case "waiting":
      case "standby":
      case "died":
      case "paused":
        this.verdicts[reply.type]++;
        break;
      case "refused":
        this.refuse(reply.code);
    }
  }

  /** Null is an answer that is not an error. */
  refuse(code: string | null): void {
    if (code !== null) this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
  }
}
