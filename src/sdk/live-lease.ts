/**
 * A lease in use: what it is now, its present token, and its end. Tokens change with every renewal (G8), so none is
 * kept by the user: each request takes the one of the moment, and none is handed out once the lease may have ended.
 */
import type { HeldLease } from "./held-lease.ts";
import type { Holding } from "./holding.ts";
import { LeaseLost } from "./lease-lost.ts";
import { type Narrowing, narrow } from "./tokens.ts";
import type { Predicate } from "./wire.ts";

export interface LiveNarrowing extends Narrowing {
  /** From now on, by the server's clock whatever this machine's says. */
  readonly expiresInMs?: number | undefined;
}

export class LiveLease {
  private readonly holding: Holding;
  private readonly held: HeldLease;

  constructor(holding: Holding, held: HeldLease) {
    this.holding = holding;
    this.held = held;
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
    this.holding.assertHeld();
    if (this.holding.isOver)
      throw new LeaseLost({ reason: "released", detail: "The lease was given back.", leases: [this.held.lease] });
    const { token, resource } = this.held.lease;
    if (token === undefined)
      throw new TypeError(`The lease on ${resource} has no token: no cell hosts it. Ask for one with tokens: true.`);
    return token;
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
   * for its stale token, had no effect: it is sent again with the new one. When the lease is lost, it is cut.
   */
  async fetch(path: string | URL = "", init: RequestInit = {}): Promise<Response> {
    const url = this.urlOf(path);
    const shown = this.token;
    const response = await this.send(url, init, shown);
    const code = await codeIn(response);
    if (code === "stale_token") {
      await this.holding.refresh(this.held);
      const { token } = this;
      if (token === shown || !mayBeSentAgain(init.body)) return response;
      void response.body?.cancel();
      return this.send(url, init, token);
    }
    // Whether that is so, the server knows: behind a gateway anybody may say anything.
    if (code !== null && endCodes.has(code)) void this.holding.refresh(this.held);
    return response;
  }

  private async send(url: URL, init: RequestInit, token: string): Promise<Response> {
    const headers = new Headers(init.headers);
    const isTheirs = headers.has("authorization");
    if (isTheirs) headers.set("leasehold-token", token);
    else headers.set("authorization", `Bearer ${token}`);
    const signals = [this.signal, ...(init.signal ? [init.signal] : [])];
    const fetcher = this.holding.actor.client.fetcher;
    return fetcher(url, {
      ...init,
      headers,
      signal: AbortSignal.any(signals),
      // The platform takes Authorization off when it is sent elsewhere, and would leave the other.
      ...(isTheirs && { redirect: "manual" as const }),
    });
  }

  /** The token is shown to nobody else. */
  private urlOf(path: string | URL): URL {
    const { coordinate } = this;
    if (coordinate === null) throw new TypeError(`No cell hosts ${this.resource}: there is nothing to connect to.`);
    const base = new URL(coordinate);
    const url = new URL(path, base.href.endsWith("/") ? base : `${base.href}/`);
    if (url.origin !== base.origin) throw new TypeError(`${url.origin} is not where ${this.resource} is.`);
    return url;
  }
}

const endCodes: ReadonlySet<string> = new Set([
  "lease_expired",
  "lease_revoked",
  "lease_released",
  "resource_fenced",
] satisfies LeaseLost["end"][]);

/** null if it is not a refusal by a cell; its body stays readable. */
async function codeIn(response: Response): Promise<string | null> {
  const { status, headers } = response;
  if (status !== 401 && status !== 410 && status !== 423) return null;
  if (headers.get("content-type")?.includes("json") !== true) return null;
  try {
    const { error } = (await response.clone().json()) as { readonly error?: unknown };
    return typeof error === "string" ? error : null;
  } catch {
    return null;
  }
}

/** A stream can be read once. */
function mayBeSentAgain(body: RequestInit["body"]): boolean {
  return (
    !(body instanceof ReadableStream) && !(typeof body === "object" && body !== null && Symbol.asyncIterator in body)
  );
}
