/**
 * A client of a server, or of the servers of a cluster: every operation by its name, typed. A call is answered, or rejects
 * with a LeaseholdError. What is safe to send again is sent again when a connection breaks or the server is away for a
 * moment.
 */

import { type Clock, type Mark, systemClock, Timekeeper } from "../keeper/clock.ts";
import type { ClientTls } from "../trust/client-tls.ts";
import { readKeyFile } from "../trust/key-file.ts";
import type { Manifest } from "./acquiring.ts";
import { isInsecureEnvironment, tlsOfEnvironment } from "./address.ts";
import { Agent, type AgentOptions } from "./agent.ts";
import { AgentPool } from "./agent-pool.ts";
import { Call, type CallHost, closed, Deadlines, unreachable } from "./call.ts";
import { aborted, LeaseholdError } from "./errors.ts";
import { type EventsOptions, followEvents, type LeaseholdEvent } from "./events.ts";
import { type Hold, type HoldOptions, holdUntilReleased } from "./hold.ts";
import type { Fetch } from "./http.ts";
import { broken } from "./http-form.ts";
import { keyed, type OperationName } from "./idempotency.ts";
import { Lane, type Transport } from "./lane.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { createDispatcher, fetchThrough } from "./platform-tls.ts";
import { addressesOf, type Server, Servers } from "./servers.ts";
import { openTaskKeeper } from "./task-keeper.ts";
import { type Credentials, headersFor } from "./transport.ts";
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
  /** Of the server, or of several with commas between; http://127.0.0.1:7117 if left out. */
  readonly url?: string | undefined;
  /**
   * Of the servers of a cluster, in place of `url`. The first that works is used, until it does not answer or knows no leader;
   * then the next one is. A key may be sent to each of them.
   */
  readonly urls?: readonly string[] | undefined;
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

const timeoutMsDefault = 30_000;
const retriesDefault = 8;
const noOptions: CallOptions = {};

export class Client {
  readonly time: Timekeeper;
  readonly watch = new LeaseWatch();
  private readonly options: ClientOptions;
  private readonly closing = new AbortController();
  private readonly host: CallHost;
  private readonly agents: AgentPool;
  private readonly servers: Servers;
  private readonly tls: ClientTls | null;
  private readonly maySendSecrets: boolean;
  private readonly platformFetch: Fetch;

  constructor(options: ClientOptions = {}) {
    const key = options.key ?? (options.keyFile === undefined ? undefined : readKeyFile(options.keyFile));
    this.options = { ...options, key };
    this.servers = new Servers(addressesOf(options.url, options.urls), key !== undefined);
    this.tls = options.tls ?? tlsOfEnvironment();
    const hasOwn = this.tls !== null && options.fetch === undefined;
    this.platformFetch = hasOwn && this.tls !== null ? fetchThrough(createDispatcher(this.tls)) : fetch;
    this.maySendSecrets = options.insecure ?? isInsecureEnvironment();
    if (key !== undefined) this.assertMaySend();
    this.time = new Timekeeper(options.clock ?? systemClock);
    this.agents = new AgentPool(this, key !== undefined);
    this.host = this.hostOfCalls();
  }

  /** Any operation of the wire. WAIT and GRANTED are answers; DIE, PAUSED and refusals are LeaseholdErrors. */
  call<N extends OperationName>(
    name: N,
    input: OperationInput<N>,
    options: CallOptions = noOptions,
  ): Promise<OperationAnswer<N>> {
    return new Promise((resolve, reject) => {
      const answered = ({ body }: Call): void => resolve(body as OperationAnswer<N>);
      new Call(this.host, name, keyed(name, input), options, answered, reject).begin();
    });
  }

  /** As `call`, with the moment from which the answer's durations count. */
  ask<N extends OperationName>(
    name: N,
    input: OperationInput<N>,
    options: CallOptions = noOptions,
  ): Promise<Timed<OperationAnswer<N>>> {
    return new Promise((resolve, reject) => {
      const answered = ({ body, sentAt }: Call): void => resolve({ answer: body as OperationAnswer<N>, sentAt });
      new Call(this.host, name, keyed(name, input), options, answered, reject).begin();
    });
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

  /**
   * Takes units of a limit (G15) as soon as they are free. They come back with time, so there is nothing to hold or to
   * give back.
   */
  limit(resource: string, { units = 1, ...options }: ClientLeaseOptions & { units?: number } = {}): Promise<void> {
    return this.withLease({ predicate: "CONSUMES", resource, units }, () => undefined, options);
  }

  /** Registers an agent, or takes one up that another process has left (A3). */
  agent(options: AgentOptions = {}): Promise<Agent> {
    return Agent.register(this, options);
  }

  /** Begins to work on tasks at once, until it is drained. */
  worker(options: WorkerOptions): Worker {
    const { time, tls, fetcher } = this;
    const { fetch: own = null } = this.options;
    return new Worker(this, options, async (maxBusyMs) => {
      const { present } = this.servers;
      await present.owner?.ready(fetcher, this.closing.signal);
      // An owner's token is for the one server that has proved itself.
      const { all } = this.servers;
      const used =
        (present.owner?.secret ?? null) === null ? [present, ...all.filter((one) => one !== present)] : [present];
      const peers = used.map((server) => ({ url: server.url, credentials: this.credentials(null, server) }));
      return openTaskKeeper({ peers, fetch: own, tls, time, maxBusyMs });
    });
  }

  /** What happens, from now on or since a given event, without gaps or repetition, until the loop or the signal ends. */
  events(options: EventsOptions = {}): AsyncGenerator<LeaseholdEvent, void> {
    return followEvents(this, options);
  }

  /** What is not an operation with a JSON answer: a backup, metrics, another's page. Sent to one server, once. */
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
    const { all } = this.servers;
    for (let tries = 1; ; tries++) {
      const server = this.servers.present;
      try {
        await server.owner?.ready(fetcher, signal);
        const headers = { ...headersFor(this.credentials(options.token, server)), ...init.headers };
        const response = await fetcher(`${server.url}${path}`, { ...init, headers, signal });
        if (response.status === 503) this.servers.leave(server);
        return response;
      } catch (error) {
        if (options.signal?.aborted === true) throw aborted(options.signal, true);
        if (this.closing.signal.aborted) throw closed();
        if (error instanceof LeaseholdError) throw error;
        server.owner?.lost();
        this.servers.leave(server);
        // What was not sent, or only asks, may go to the next one.
        const isSafe = (init.method ?? "GET") === "GET" || !broken(error).mayHaveActed;
        if (tries >= all.length || !isSafe) throw unreachable(server.url, error, true);
      }
    }
  }

  /** Open calls reject with `closed`; leases that are held are not released by it. */
  close(): Promise<void> {
    this.closing.abort();
    this.host.deadlines.endAll("closed");
    for (const server of this.servers.all) server.close();
    return Promise.resolve();
  }

  /** What carries requests, also those to cells. */
  get fetcher(): Fetch {
    return this.options.fetch ?? this.platformFetch;
  }

  /** The address of the server that is used at present. */
  get url(): string {
    return this.servers.present.url;
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

  private isLike({ servers, options: { key, tenant } }: Client): boolean {
    return this.servers.name === servers.name && this.options.key === key && this.options.tenant === tenant;
  }

  private hostOfCalls(): CallHost {
    const client = this;
    const { servers, options, time } = this;
    return {
      time,
      servers,
      timeoutMs: options.timeoutMs ?? timeoutMsDefault,
      retries: options.retries ?? retriesDefault,
      deadlines: new Deadlines(),
      get isClosed() {
        return client.isClosed;
      },
      prepare: async ({ owner }, signal) => await owner?.ready(client.fetcher, signal),
      laneFor: (token, server) => client.laneFor(token, server),
      // Refused without a credential: a server that is its owner's alone may have started after this client.
      findsOwner: (token, { owner }) => owner !== null && (token ?? null) === null && owner.lookAgain(),
    };
  }

  private assertMaySend(): void {
    if (!this.maySendSecrets) this.servers.assertMayCarrySecret();
  }

  private credentials(token: string | null | undefined, server: Server): Credentials {
    const secret = this.secretOf(token, server);
    if (secret !== null) this.assertMaySend();
    return { secret, tenant: this.options.tenant ?? null };
  }

  private secretOf(token: string | null | undefined, { owner }: Server): string | null {
    return token ?? this.options.key ?? owner?.secret ?? null;
  }

  /** A token that was replaced: what is under way with it is still answered. */
  forgetToken(token: string): void {
    for (const { lanes } of this.servers.all) lanes.delete(token);
  }

  private laneFor(token: string | null | undefined, server: Server): Lane {
    const lane = server.lanes.get(this.secretOf(token, server) ?? "");
    if (lane !== undefined) return lane;
    const credentials = this.credentials(token, server);
    const { transport = "auto", fetch: own = null } = this.options;
    const opened = new Lane({ url: server.url, credentials, transport, fetch: own, tls: this.tls });
    server.lanes.set(credentials.secret ?? "", opened);
    return opened;
  }
}

export function createClient(options: ClientOptions = {}): Client {
  return new Client(options);
}
