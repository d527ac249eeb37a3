/**
 * A client of one server: every operation by its name, typed. A call is answered, or rejects with a LeaseholdError. What
 * is safe to send again is sent again when a connection breaks or the server is away for a moment.
 */

import { type Clock, type Mark, systemClock, Timekeeper } from "../keeper/clock.ts";
import { backOffMs } from "../keeper/lease-keeper.ts";
import { defaultUrl } from "../names/defaults.ts";
import type { ClientTls } from "../trust/client-tls.ts";
import { readKeyFile } from "../trust/key-file.ts";
import { insecureWords, mayCarrySecret } from "../trust/loopback.ts";
import type { Manifest } from "./acquiring.ts";
import { addressOf, isInsecureEnvironment, mayHaveOwner, tlsOfEnvironment } from "./address.ts";
import { Agent, type AgentOptions } from "./agent.ts";
import { AgentPool } from "./agent-pool.ts";
import { aborted, errorOf, type LeaseholdCode, LeaseholdError } from "./errors.ts";
import { type EventsOptions, followEvents, type LeaseholdEvent } from "./events.ts";
import { type Hold, type HoldOptions, holdUntilReleased } from "./hold.ts";
import type { Fetch } from "./http.ts";
import { holdMsOf, isRepeatable, keyed, type OperationName, takesLong } from "./idempotency.ts";
import { Lane, type Transport } from "./lane.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { OwnerLogin } from "./owner-login.ts";
import { createDispatcher, type Dispatcher, fetchThrough } from "./platform-tls.ts";
import { openTaskKeeper } from "./task-keeper.ts";
import { type Limited, limited, sleep } from "./timing.ts";
import { type Credentials, headersFor, WireBroken, type WireReply } from "./transport.ts";
import type { OperationAnswers, OperationInputs } from "./wire.ts";
import { type Held, type WithLeaseOptions, workUnder } from "./with-lease.ts";
import { Worker, type WorkerOptions } from "./worker.ts";
import { presentWork, type Work } from "./works.ts";

export type { ClientTls } from "../trust/client-tls.ts";
export type { OperationName } from "./idempotency.ts";
export type { Transport } from "./lane.ts";
export type OperationInput<N extends OperationName> = OperationInputs[N];
export type OperationAnswer<N extends OperationName> = OperationAnswers[N];

export interface ClientOptions {
  /** Of the server; http://127.0.0.1:7117 if left out. */
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  /** On Node: a file with the key, its owner's alone (mode 0600), where no key is given. */
  readonly keyFile?: string | undefined;
  /** For an operator, who has several. */
  readonly tenant?: string | undefined;
  /** How long a call may take, its retries included and a hold on top; 30 s if left out. */
  readonly timeoutMs?: number | undefined;
  /** How often a call that may be sent again is; 8 if left out, which is about seven seconds. */
  readonly retries?: number | undefined;
  /** One connection for many calls (the stream), plain HTTP, or whichever suits; the last if left out. */
  readonly transport?: Transport | undefined;
  readonly fetch?: Fetch | undefined;
  /**
   * For https on Node, in PEM, of the server and of cells: the authority to trust, and the certificate to show. Left out: the files that
   * LEASEHOLD_CA (or LEASEHOLD_TLS_CA), LEASEHOLD_TLS_CERT and LEASEHOLD_TLS_KEY name, or the platform's authorities.
   */
  readonly tls?: ClientTls | undefined;
  /** Lets keys and tokens be sent over plain http to another machine, where others can read them. */
  readonly insecure?: boolean | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

export interface ClientLeaseOptions extends WithLeaseOptions {
  /**
   * Inside the work of another: as an agent of its own all the same, so that it excludes that work and its siblings (W13).
   * Two programs that do so in opposite order can wait for each other until `timeoutMs`.
   */
  readonly separate?: boolean | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly retries?: number | undefined;
  /** An agent's token instead of the client's key. */
  readonly token?: string | null | undefined;
}

/** An answer, and the moment just before the request that it answers was sent (A7). */
export interface Timed<T> {
  readonly answer: T;
  readonly sentAt: Mark;
}

/** What the SDK's own parts may say beside; `cleansUp`: see Lane. */
export interface AskOptions extends CallOptions {
  readonly cleansUp?: boolean;
}

const timeoutMsDefault = 30_000;
const retriesDefault = 8;
/**
 * One attempt that gets no answer in this time is made again, if it may be: on another connection, since after a
 * partition the old ones often stay dead. Twice as long each time, for a server that is only slow.
 */
const attemptMsFirst = 3_000;
const attemptMsMax = 10_000;
const backOffMsBase = 50;
const backOffMsCap = 2_000;

export class Client {
  readonly time: Timekeeper;
  readonly watch = new LeaseWatch();
  private readonly options: ClientOptions;
  private readonly lanes = new Map<string, Lane>();
  private readonly closing = new AbortController();
  /** Calls under way. They are not hung onto `closing`, which would have as many listeners as there are calls. */
  private readonly open = new Set<Limited>();
  private readonly agents: AgentPool;
  private readonly address: string;
  private readonly tls: ClientTls | null;
  private readonly dispatcher: Dispatcher | null;
  /** Which its requests go with, where no key was given and the server is on this machine. */
  private readonly owner: OwnerLogin | null;
  private readonly maySendSecrets: boolean;
  private readonly platformFetch: Fetch;

  constructor(options: ClientOptions = {}) {
    const key = options.key ?? (options.keyFile === undefined ? undefined : readKeyFile(options.keyFile));
    this.options = { ...options, key };
    this.address = addressOf(options.url ?? defaultUrl);
    this.tls = options.tls ?? tlsOfEnvironment();
    this.dispatcher = this.tls === null || options.fetch !== undefined ? null : createDispatcher(this.tls);
    this.platformFetch = this.dispatcher === null ? fetch : fetchThrough(this.dispatcher);
    this.owner = key === undefined && mayHaveOwner(this.address) ? new OwnerLogin(this.address) : null;
    this.maySendSecrets = mayCarrySecret(this.address) || (options.insecure ?? isInsecureEnvironment());
    if (key !== undefined) this.assertMaySend();
    this.time = new Timekeeper(options.clock ?? systemClock);
    this.agents = new AgentPool(this, key !== undefined);
  }

  /** Any operation of the wire. WAIT and GRANTED are answers; DIE, PAUSED and refusals are LeaseholdErrors. */
  async call<N extends OperationName>(
    name: N,
    input: OperationInput<N>,
    options: CallOptions = {},
  ): Promise<OperationAnswer<N>> {
    const { answer } = await this.ask(name, input, options);
    return answer;
  }

  /** As `call`, with the moment from which the answer's durations count. */
  async ask<N extends OperationName>(
    name: N,
    input: OperationInput<N>,
    options: AskOptions = {},
  ): Promise<Timed<OperationAnswer<N>>> {
    const request = keyed(name, input);
    const holdMs = holdMsOf(request);
    const { timeoutMs = this.options.timeoutMs ?? timeoutMsDefault } = options;
    const { retries = this.options.retries ?? retriesDefault } = options;
    const mayRepeat = isRepeatable(name);
    const endAt = performance.now() + timeoutMs + holdMs;
    for (let attempt = 0; ; attempt++) {
      const sentAt = this.time.mark();
      const leftMs = endAt - performance.now();
      const send = (signal: AbortSignal) => this.send(name, request, signal, options);
      const isLast = !mayRepeat || attempt >= retries;
      const attemptMs = isLast ? attemptMsMax : Math.min(attemptMsFirst * 2 ** attempt, attemptMsMax);
      const limitMs = takesLong(name) ? leftMs : Math.min(leftMs, attemptMs + holdMs);
      const outcome = await this.attempt(send, Math.max(limitMs, 1), options.signal);
      const isBroken = outcome instanceof LeaseholdError;
      if (!isBroken && outcome.status < 300) return { answer: outcome.body as OperationAnswer<N>, sentAt };
      const failure = isBroken ? outcome : errorOf(outcome.status, outcome.body, outcome.retryAfterMs);
      if (isBroken) this.owner?.lost();
      if (failure.code === "unauthorized" && attempt === 0 && this.findsOwner(options)) continue;
      const isFinal = isBroken ? failure.code === "aborted" || failure.code === "closed" : !isPassing(failure);
      if (isFinal || attempt >= retries || (failure.outcomeUnknown && !mayRepeat)) throw failure;
      const pauseMs = Math.max(backOffMs(attempt, backOffMsBase, backOffMsCap), failure.retryAfterMs ?? 0);
      if (performance.now() + pauseMs >= endAt) throw failure;
      await sleep(pauseMs, options.signal);
      const lane = this.laneFor(this.credentials(options.token));
      if (isBroken && failure.code === "timeout" && !lane.isStreaming) await lane.clear(options.signal);
    }
  }

  /**
   * Runs `body` while the manifest's leases are held: waits for them, keeps them, fires the signal before they can have
   * ended, and gives them back. Each piece of work has an agent of its own; inside the work of another it is that one's
   * (W13). `agent.withLease` works as a given one.
   */
  withLease<T>(manifest: Manifest, body: (held: Held) => Promise<T> | T, options: ClientLeaseOptions = {}): Promise<T> {
    const outer = options.separate === true ? null : this.outerWork();
    if (outer !== null) return workUnder(outer.actor, outer.works, manifest, body, options, outer);
    let hasBegun = false;
    const begin = (held: Held): Promise<T> | T => {
      hasBegun = true;
      return body(held);
    };
    return this.agents.use(
      (actor, works) => workUnder(actor, works, manifest, begin, options),
      () => hasBegun,
    );
  }

  /** As `withLease`, for leases that outlive a function: they are kept until they are released, or lost. */
  hold(manifest: Manifest, options: HoldOptions & ClientLeaseOptions = {}): Promise<Hold> {
    return holdUntilReleased((body) => this.withLease(manifest, body, { ...options, retryLost: "never" }));
  }

  /** Registers an agent, or takes one up that another process has left (A3). */
  agent(options: AgentOptions = {}): Promise<Agent> {
    return Agent.register(this, options);
  }

  /** Begins to work on tasks at once, until it is drained. */
  worker(options: WorkerOptions): Worker {
    const { time, tls, fetcher } = this;
    const hasOwn = this.options.fetch !== undefined;
    return new Worker(this, options, async (maxBusyMs) => {
      await this.owner?.ready(fetcher, this.closing.signal);
      const credentials = this.credentials(null);
      return openTaskKeeper({ url: this.url, credentials, fetch: fetcher, tls, time, maxBusyMs }, hasOwn);
    });
  }

  /** What happens, from now on or since a given event, without gaps or repetition, until the loop or the signal ends. */
  events(options: EventsOptions = {}): AsyncGenerator<LeaseholdEvent, void> {
    return followEvents(this, options);
  }

  /** What is not an operation with a JSON answer: a backup, metrics, another's page. Sent once. */
  async fetch(
    path: string,
    init: {
      readonly method?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Uint8Array<ArrayBuffer>;
    } = {},
    options: CallOptions = {},
  ): Promise<Response> {
    const { fetcher } = this; // A browser's fetch refuses to be called as a method.
    const signal = AbortSignal.any([this.closing.signal, options.signal ?? []].flat());
    try {
      await this.owner?.ready(fetcher, signal);
      const headers = { ...headersFor(this.credentials(options.token)), ...init.headers };
      return await fetcher(`${this.url}${path}`, { ...init, headers, signal });
    } catch (error) {
      if (options.signal?.aborted === true) throw aborted(options.signal, true);
      if (this.closing.signal.aborted) throw closed();
      if (error instanceof LeaseholdError) throw error;
      throw this.unreachable(error, true);
    }
  }

  /** Open calls reject with `closed`; leases that are held are not released by it. */
  close(): Promise<void> {
    this.closing.abort();
    for (const limit of this.open) limit.abort();
    for (const lane of this.lanes.values()) lane.close();
    this.lanes.clear();
    return Promise.resolve();
  }

  /** What carries requests, also those to cells. */
  get fetcher(): Fetch {
    return this.options.fetch ?? this.platformFetch;
  }

  /** The server's address. */
  get url(): string {
    return this.owner?.url ?? this.address;
  }

  /** What connections to cells use too. */
  get certificates(): ClientTls | null {
    return this.tls;
  }

  get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  /** The work that this code runs in, if it is held at the same server by the same credential. */
  private outerWork(): Work | null {
    const work = presentWork();
    return work?.actor.client.isLike(this) === true ? work : null;
  }

  private isLike({ url, options: { key, tenant } }: Client): boolean {
    return this.url === url && this.options.key === key && this.options.tenant === tenant;
  }

  private async send(
    name: OperationName,
    request: object,
    signal: AbortSignal,
    options: AskOptions,
  ): Promise<WireReply> {
    if (this.owner !== null) await this.owner.ready(this.fetcher, signal);
    const lane = this.laneFor(this.credentials(options.token));
    const reply = await lane.send(name, request, signal, options.cleansUp === true);
    this.owner?.heard();
    return reply;
  }

  /** Refused without a credential: a server that is its owner's alone may have started after this client. */
  private findsOwner({ token }: AskOptions): boolean {
    return this.owner !== null && (token ?? null) === null && this.owner.lookAgain();
  }

  private assertMaySend(): void {
    if (this.maySendSecrets) return;
    throw new TypeError(`${insecureWords(this.address)}, or \`insecure: true\`.`);
  }

  private async attempt(
    send: (signal: AbortSignal) => Promise<WireReply>,
    ms: number,
    signal: AbortSignal | undefined,
  ): Promise<WireReply | LeaseholdError> {
    if (this.isClosed) return closed();
    if (signal?.aborted === true) return aborted(signal, false);
    const limit = limited(ms, signal);
    this.open.add(limit);
    try {
      return await send(limit.signal);
    } catch (error) {
      const mayHaveActed = !(error instanceof WireBroken) || error.mayHaveActed;
      if (error instanceof LeaseholdError || error instanceof TypeError) throw error;
      if (this.isClosed) return closed();
      if (signal !== undefined && isAborted(signal)) return aborted(signal, mayHaveActed);
      if (!limit.isOver()) return this.unreachable(error, mayHaveActed);
      const detail = `${this.url} has not answered in time; is it reachable, and is the time enough?`;
      return new LeaseholdError({ code: "timeout", detail, outcomeUnknown: mayHaveActed, cause: error });
    } finally {
      limit.stop();
      this.open.delete(limit);
    }
  }

  private unreachable(error: unknown, mayHaveActed: boolean): LeaseholdError {
    const why = error instanceof Error ? error.message : String(error);
    const detail = `No answer from ${this.url} (${why}); is the server running, and is this its address?`;
    return new LeaseholdError({ code: "unreachable", detail, outcomeUnknown: mayHaveActed, cause: error });
  }

  private credentials(token: string | null | undefined): Credentials {
    const secret = token ?? this.options.key ?? this.owner?.secret ?? null;
    if (secret !== null) this.assertMaySend();
    return { secret, tenant: this.options.tenant ?? null };
  }

  /** A token that was replaced: what is under way with it is still answered. */
  forgetToken(token: string): void {
    this.lanes.delete(token);
  }

  private laneFor(credentials: Credentials): Lane {
    const name = credentials.secret ?? "";
    let lane = this.lanes.get(name);
    if (lane === undefined) {
      const { transport = "auto" } = this.options;
      lane = new Lane({ url: this.url, credentials, transport, fetch: this.fetcher, dispatcher: this.dispatcher });
      this.lanes.set(name, lane);
    }
    return lane;
  }
}

export function createClient(options: ClientOptions = {}): Client {
  return new Client(options);
}

/** The server is there, and says to come back. */
const passing: readonly LeaseholdCode[] = [
  "rate_limited",
  "too_many_in_flight",
  "too_many_connections",
  "memory_exhausted",
  "shutting_down",
  "database_unavailable",
  "request_timeout",
];

function isPassing({ code, status }: LeaseholdError): boolean {
  // A proxy has its own words for the same.
  const isProxy = code === "bad_answer" && (status === 502 || status === 503 || status === 504);
  return isProxy || passing.includes(code);
}

/** A function, so that TypeScript does not assume the earlier result: the signal may have fired since. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function closed(): LeaseholdError {
  return new LeaseholdError({ code: "closed", detail: "The client was closed.", outcomeUnknown: true });
}
