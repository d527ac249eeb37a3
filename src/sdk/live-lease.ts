/**
 * A lease in use: what it is now, its present token, and its end. Tokens change with every renewal (G8), so none is
 * kept by the user: each request takes the one of the moment, and none is handed out once the lease may have ended.
 */
import { LeaseholdError } from "./errors.ts";
import { Gateway, type LeaseUse } from "./gateway.ts";
import type { HeldLease } from "./held-lease.ts";
import { LeaseFile, LeaseMemory } from "./lease-bytes.ts";
import { LeaseLost } from "./lease-lost.ts";
import type { LeaseDatagrams, LeaseSocket } from "./lease-streams.ts";
import { type Narrowing, narrow } from "./tokens.ts";
import type { Predicate } from "./wire.ts";

export interface LiveNarrowing extends Narrowing {
  /** From now on, by the server's clock whatever this machine's says. */
  readonly expiresInMs?: number | undefined;
}

export class LiveLease {
  private readonly holding: LeaseUse;
  private readonly held: HeldLease;
  private readonly gateway: Gateway;

  constructor(holding: LeaseUse, held: HeldLease) {
    this.holding = holding;
    this.held = held;
    this.gateway = new Gateway(holding, held);
  }

  get id(): string {
    return this.held.id;
  }

  /** Of an intent with `pick`: the one that was picked. */
  get resource(): string {
    return this.held.lease.resource;
  }

  get predicate(): Predicate {
    return this.held.lease.predicate;
  }

  /** Grows with every renewal. */
  get fence(): number {
    return this.held.lease.fence;
  }

  get generation(): number {
    return this.held.lease.generation;
  }

  /** Where to connect; null for what no cell hosts. */
  get coordinate(): string | null {
    return this.held.lease.coordinate ?? null;
  }

  /** The present one. Throws the LeaseLost once the lease may have ended, by the clocks at this moment. */
  get token(): string {
    return this.gateway.token;
  }

  /** Fires when the lease is lost, with the LeaseLost as its reason, or when the work is to stop. */
  get signal(): AbortSignal {
    return this.holding.signal;
  }

  /** How it ended; null while it is held, or was given back. */
  get lost(): LeaseLost | null {
    return this.holding.lost;
  }

  remainingMs(): number {
    return this.holding.isOver ? 0 : Math.max(this.holding.usableMs(this.held), 0);
  }

  /** Called with each new token. Returns a function that unsubscribes. */
  onToken(listener: (token: string) => void): () => void {
    return this.held.onToken(listener);
  }

  /** Called once, when the lease is lost; `end` is one of a closed list. Not called on release. */
  onEnd(listener: (lost: LeaseLost) => void): () => void {
    const { signal } = this;
    const tell = (): void => {
      if (signal.reason instanceof LeaseLost) listener(signal.reason);
    };
    if (signal.aborted) queueMicrotask(tell);
    else signal.addEventListener("abort", tell, { once: true });
    return () => signal.removeEventListener("abort", tell);
  }

  /** The present token for less, to be handed on. With the next renewal it is stale, as every other. */
  narrow({ expiresInMs, ...narrowing }: LiveNarrowing): string {
    const { token } = this;
    if (expiresInMs === undefined) return narrow(token, narrowing);
    const serverNow = Date.parse(this.held.lease.expires_at) - this.held.lease.expires_in_ms + this.held.ageMs;
    return narrow(token, { ...narrowing, expiresAt: serverNow + expiresInMs });
  }

  /**
   * A request to where the resource is, with the token of the moment. One that meets a renewal half-way, and is refused
   * for its stale token, had no effect: it is sent again with the new one. When the lease is lost, it and the reading of
   * its answer fail with the LeaseLost.
   */
  fetch(path: string | URL = "", init: RequestInit = {}): Promise<Response> {
    return this.gateway.fetch(path, init);
  }

  /** A file or folder of a leased folder; without a path all of a leased range. Driver `files`. */
  file(path = ""): LeaseFile {
    return new LeaseFile(this.gateway, path);
  }

  /** Driver `memory`. */
  get memory(): LeaseMemory {
    return new LeaseMemory(this.gateway);
  }

  /** A connection to the service, once the gateway has taken the token. Driver `tcp`; not in browsers. */
  async connect(): Promise<LeaseSocket> {
    const { connectThrough } = await import("./node/lease-socket.ts").catch(notHere);
    return await connectThrough(this.gateway);
  }

  /** A flow of datagrams to the target and back. Driver `udp`; not in browsers. */
  async datagrams(): Promise<LeaseDatagrams> {
    const { openDatagrams } = await import("./node/lease-datagrams.ts").catch(notHere);
    return await openDatagrams(this.gateway);
  }
}

function notHere(cause: unknown): never {
  const detail = "This platform has neither TCP nor UDP sockets for programs.";
  throw new LeaseholdError({ code: "closed", detail, cause });
}
