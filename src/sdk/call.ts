/**
 * One call of the client, from its first attempt to its answer. The object itself waits in the wire, and the timer that ends
 * late attempts is the client's: a call that is answered at once costs one promise and no timer.
 *
 *   begin ──► under way ──► answered with a success ──────────────────► resolved
 *     ▲          │  └────── answered otherwise ──┐
 *     │          └─ cut, late, given up, closed ─┴─► may it be sent again? ──► rejected
 *     ├──────────────────── a pause ◄─────────────────────┤
 *     └──────── the next server, where there is one ◄─────┘
 */
import type { Mark } from "../keeper/clock.ts";
import { backOffMs } from "../keeper/lease-keeper.ts";
import type { CallOptions, Client } from "./client.ts";
import { aborted, errorOf, type LeaseholdCode, LeaseholdError } from "./errors.ts";
import { holdMsOf, isRepeatable, type OperationName, takesLong } from "./idempotency.ts";
import type { Lane, LaneCall } from "./lane.ts";
import type { Server, Servers } from "./servers.ts";
import type { Stream } from "./stream.ts";
import { onAbort, sleep } from "./timing.ts";
import { WireBroken, type WireReply } from "./transport.ts";

/** What a call needs of its client. */
export interface CallHost {
  readonly time: Client["time"];
  readonly servers: Servers;
  readonly isClosed: boolean;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly deadlines: Deadlines;
  /** Before a call is sent to a server whose owner is not sure. */
  prepare(server: Server, signal: AbortSignal): Promise<void>;
  laneFor(token: string | null | undefined, server: Server): Lane;
  /** After a 401: whether there is another credential by now. */
  findsOwner(token: string | null | undefined, server: Server): boolean;
}

/**
 * One attempt that gets no answer in this time is made again, if it may be: on another connection, since after a
 * partition the old ones often stay dead. Twice as long each time, for a server that is only slow.
 */
const attemptMsFirst = 3_000;
const attemptMsMax = 10_000;
const backOffMsBase = 50;
const backOffMsCap = 2_000;

const unsent: Mark = { monotonic: 0, sleptMs: 0 };

type EndOfAttempt = "late" | "aborted" | "closed";

/** Where a call that was not successful may go: nowhere, to the same server, or to another one. */
type Next = "nowhere" | "here" | "elsewhere";

export class Call implements LaneCall {
  readonly name: OperationName;
  readonly input: object;
  // The wire's own; see Outgoing.
  frameId = 0;
  heardBefore = 0;
  isSent = false;
  giveUp: (() => void) | null = null;
  stream: Stream | null = null;
  /** When this attempt is given up, by performance.now(). */
  dueAt = 0;
  /** Just before the attempt that was answered was sent (A7). */
  sentAt: Mark;
  private readonly host: CallHost;
  private readonly options: CallOptions;
  private readonly resolve: (call: Call) => void;
  private readonly reject: (error: unknown) => void;
  private readonly endAt: number;
  /** How often all servers were tried. */
  private attempt = 0;
  /** How many servers of this round were. */
  private tried = 0;
  private server: Server;
  /** For a credential that appeared since. */
  private hasLooked = false;
  private lane: Lane | null = null;
  private letGo: (() => void) | null = null;
  private preparing: AbortController | null = null;
  /** What was answered in the end. */
  body: unknown = undefined;

  constructor(
    host: CallHost,
    name: OperationName,
    input: object,
    options: CallOptions,
    resolve: (call: Call) => void,
    reject: (error: unknown) => void,
  ) {
    this.host = host;
    this.name = name;
    this.input = input;
    this.options = options;
    this.resolve = resolve;
    this.reject = reject;
    this.sentAt = unsent;
    this.server = host.servers.present;
    this.endAt = performance.now() + (options.timeoutMs ?? host.timeoutMs) + holdMsOf(input);
  }

  begin(): void {
    const { host, options, attempt, name } = this;
    const { signal } = options;
    if (host.isClosed) return this.reject(closed());
    if (signal?.aborted === true) return this.reject(aborted(signal, false));
    this.server = host.servers.present;
    this.sentAt = host.time.mark();
    this.isSent = false;
    const now = performance.now();
    const isLast = attempt >= this.retries || !isRepeatable(name);
    const attemptMs = isLast ? attemptMsMax : Math.min(attemptMsFirst * 2 ** attempt, attemptMsMax);
    const limitMs = takesLong(name) ? Number.POSITIVE_INFINITY : attemptMs + holdMsOf(this.input);
    this.dueAt = Math.max(Math.min(this.endAt, now + limitMs), now + 1);
    host.deadlines.add(this);
    if (signal !== undefined) this.letGo = onAbort(signal, () => this.end("aborted"));
    const { owner } = this.server;
    if (owner === null || owner.isReady) this.send();
    else this.prepare();
  }

  answered({ status, body, retryAfterMs }: WireReply): void {
    this.leave();
    this.server.owner?.heard();
    if (status < 300) {
      this.body = body;
      return this.resolve(this);
    }
    const failure = errorOf(status, body, retryAfterMs);
    if (failure.code === "unauthorized" && !this.hasLooked) {
      this.hasLooked = true;
      if (this.host.findsOwner(this.options.token, this.server)) return this.begin();
    }
    this.judge(failure, nextAfter(failure));
  }

  broken(error: unknown): void {
    this.leave();
    // A mistake of the caller's, or a server that is not the one it should be.
    if (error instanceof LeaseholdError || error instanceof TypeError) return this.reject(error);
    const mayHaveActed = !(error instanceof WireBroken) || error.mayHaveActed;
    this.server.owner?.lost();
    this.judge(unreachable(this.server.url, error, mayHaveActed), "elsewhere");
  }

  /** Gives up the attempt that is under way. */
  end(why: EndOfAttempt): void {
    const { host, lane } = this;
    this.preparing?.abort();
    if (lane !== null) lane.drop(this, why === "late");
    const mayHaveActed = this.isSent;
    this.leave();
    if (host.isClosed) return this.reject(closed());
    const { signal } = this.options;
    if (why !== "late" && signal !== undefined) return this.reject(aborted(signal, mayHaveActed));
    this.server.owner?.lost();
    const detail = `${this.server.url} has not answered in time; is it reachable, and is the time enough?`;
    this.judge(new LeaseholdError({ code: "timeout", detail, outcomeUnknown: mayHaveActed }), "elsewhere");
  }

  private prepare(): void {
    const controller = new AbortController();
    this.preparing = controller;
    this.host.prepare(this.server, controller.signal).then(
      () => {
        if (this.preparing !== controller) return;
        this.preparing = null;
        this.send();
      },
      (error: unknown) => {
        if (this.preparing === controller) this.broken(error);
      },
    );
  }

  private send(): void {
    let lane: Lane;
    try {
      lane = this.host.laneFor(this.options.token, this.server);
    } catch (error) {
      return this.broken(error);
    }
    this.lane = lane;
    lane.send(this);
  }

  /** The attempt is over. */
  private leave(): void {
    this.host.deadlines.delete(this);
    this.preparing = null;
    this.letGo?.();
    this.letGo = null;
    this.lane?.left();
    this.lane = null;
  }

  private get retries(): number {
    return this.options.retries ?? this.host.retries;
  }

  private judge(failure: LeaseholdError, next: Next): void {
    const { servers } = this.host;
    if (next === "elsewhere") servers.leave(this.server);
    if (next === "nowhere" || (failure.outcomeUnknown && !isRepeatable(this.name))) return this.reject(failure);
    if (next === "elsewhere" && ++this.tried < servers.all.length && performance.now() < this.endAt)
      return this.begin();
    if (this.attempt >= this.retries) return this.reject(failure);
    const pauseMs = Math.max(backOffMs(this.attempt, backOffMsBase, backOffMsCap), failure.retryAfterMs ?? 0);
    if (performance.now() + pauseMs >= this.endAt) return this.reject(failure);
    this.tried = 0;
    this.again(pauseMs, failure.code === "timeout").catch((error: unknown) => this.reject(error));
  }

  private async again(pauseMs: number, wasLate: boolean): Promise<void> {
    const { signal, token } = this.options;
    await sleep(pauseMs, signal);
    const { present } = this.host.servers;
    // Another server has connections of its own.
    if (wasLate && present === this.server) {
      const lane = this.host.laneFor(token, present);
      if (!lane.isStreaming) await lane.clear(signal);
    }
    this.attempt++;
    this.begin();
  }
}

/** Ends late attempts of a client's calls, with one timer for all. */
export class Deadlines {
  private readonly calls = new Set<Call>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer fires, by performance.now(). */
  private firesAt = Number.POSITIVE_INFINITY;

  add(call: Call): void {
    this.calls.add(call);
    if (call.dueAt < this.firesAt) this.set(call.dueAt);
  }

  delete(call: Call): void {
    this.calls.delete(call);
    if (this.calls.size > 0) return;
    clearTimeout(this.timer);
    this.firesAt = Number.POSITIVE_INFINITY;
  }

  endAll(why: EndOfAttempt): void {
    for (const call of [...this.calls]) call.end(why);
  }

  private set(at: number): void {
    clearTimeout(this.timer);
    this.firesAt = at;
    this.timer = setTimeout(() => this.fire(), Math.max(at - performance.now(), 1));
    // What is under way keeps the process alive by its connection.
    (this.timer as { unref?: () => void }).unref?.();
  }

  private fire(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    const late: Call[] = [];
    for (const call of this.calls) {
      if (call.dueAt <= now) late.push(call);
      else next = Math.min(next, call.dueAt);
    }
    this.firesAt = Number.POSITIVE_INFINITY;
    if (Number.isFinite(next)) this.set(next);
    for (const call of late) call.end("late");
  }
}

/** The server is there, and says to come back. */
const passing: readonly LeaseholdCode[] = [
  "rate_limited",
  "too_many_in_flight",
  "memory_exhausted",
  "database_unavailable",
  "request_timeout",
];

/** What this server says of itself, and another one need not. */
const ofThisServer: readonly LeaseholdCode[] = ["no_leader", "shutting_down", "too_many_connections"];

function nextAfter({ code, status }: LeaseholdError): Next {
  // A proxy has its own words for the same.
  const isProxy = code === "bad_answer" && (status === 502 || status === 503 || status === 504);
  if (isProxy || ofThisServer.includes(code)) return "elsewhere";
  return passing.includes(code) ? "here" : "nowhere";
}

export function unreachable(url: string, error: unknown, mayHaveActed: boolean): LeaseholdError {
  const why = error instanceof Error ? error.message : String(error);
  const detail = `No answer from ${url} (${why}); is the server running, and is this its address?`;
  return new LeaseholdError({ code: "unreachable", detail, outcomeUnknown: mayHaveActed, cause: error });
}

export function closed(): LeaseholdError {
  return new LeaseholdError({ code: "closed", detail: "The client was closed.", outcomeUnknown: true });
}
