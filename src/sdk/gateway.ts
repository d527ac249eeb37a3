/**
 * The way from a bound lease to its gateway. Every operation shows the token of the moment (G8); one that is refused as
 * stale had no effect, and is made again with the next one. What fails because the lease has ended fails with the
 * LeaseLost, also where the platform's own error came first (G9).
 */
import type { ClientTls } from "../trust/client-tls.ts";
import type { Client } from "./client.ts";
import { Denied, LeaseholdError } from "./errors.ts";
import type { HeldLease } from "./held-lease.ts";
import { type LeaseEndCode, LeaseLost } from "./lease-lost.ts";
import { type GatewayCode, gatewayStatuses } from "./wire.ts";

/** As a gateway says it, in HTTP and elsewhere. */
export interface GatewayRefusal {
  readonly error: string;
  readonly detail?: string;
  readonly caveat?: string;
}

/** The holder of a lease: the work of an agent, or a task. */
export interface LeaseUse {
  /** Fires when the lease is lost, with the LeaseLost as its reason, or when the work is to stop. */
  readonly signal: AbortSignal;
  readonly lost: LeaseLost | null;
  readonly isOver: boolean;
  readonly client: Client;
  /** Throws the LeaseLost once the lease may have ended, by the clocks at this moment. */
  assertHeld(): void;
  /** Asks for the present token. */
  refresh(held: HeldLease): Promise<void>;
  /** How long it can still be used; below 0 once it may have ended. */
  usableMs(held: HeldLease): number;
}

export class Gateway {
  private readonly holding: LeaseUse;
  private readonly held: HeldLease;

  constructor(holding: LeaseUse, held: HeldLease) {
    this.holding = holding;
    this.held = held;
  }

  /** The present one. Throws the LeaseLost once the lease may have ended, by the clocks at this moment. */
  get token(): string {
    this.holding.assertHeld();
    if (this.holding.isOver) throw this.released();
    const { token, resource } = this.held.lease;
    if (token === undefined)
      throw new TypeError(`The lease on ${resource} has no token: no cell hosts it. Ask for one with tokens: true.`);
    return token;
  }

  /** For connections that are not requests. */
  get certificates(): ClientTls | null {
    return this.holding.client.certificates;
  }

  get signal(): AbortSignal {
    return this.holding.signal;
  }

  /** Where the resource is, if it is reached in that way. */
  place(...protocols: readonly string[]): URL {
    const { coordinate, resource } = this.held.lease;
    if (coordinate === undefined) throw new TypeError(`No cell hosts ${resource}: there is nothing to connect to.`);
    const url = new URL(coordinate);
    if (protocols.includes(url.protocol)) return url;
    throw new TypeError(`${resource} is at ${coordinate}, and this needs ${protocols.join(" or ")}//…`);
  }

  /** A request to where the resource is. Refusals are answers, except those that say that the lease has ended. */
  async fetch(path: string | URL, init: RequestInit): Promise<Response> {
    return this.exchange(this.urlOf(path), init);
  }

  private async exchange(url: URL, init: RequestInit): Promise<Response> {
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
    if (code !== null && isEnd(code)) {
      await this.holding.refresh(this.held);
      if (this.holding.lost !== null) {
        void response.body?.cancel();
        throw this.holding.lost;
      }
    }
    return response;
  }

  /** As `fetch`, but what is not a success throws. */
  async ask(path: string, init: RequestInit): Promise<Response> {
    const url = this.urlOf(path);
    let response: Response;
    try {
      response = await this.exchange(url, init);
    } catch (error) {
      if (init.signal?.aborted === true) throw error;
      throw await this.typed(error);
    }
    if (response.ok) return response;
    throw refusalOf(await refusalIn(response), response.status);
  }

  /** For what is not a request: shows the token, and once more the next one where that was stale. */
  async present<T extends object>(show: (token: string) => Promise<T | GatewayRefusal>): Promise<T> {
    const shown = this.token;
    let outcome = await this.shown(show, shown);
    if ("error" in outcome && outcome.error === "stale_token") {
      await this.holding.refresh(this.held);
      if (this.token !== shown) outcome = await this.shown(show, this.token);
    }
    if ("error" in outcome) throw await this.refused(outcome);
    return outcome;
  }

  private async shown<T extends object>(show: (token: string) => Promise<T | GatewayRefusal>, token: string) {
    try {
      return await show(token);
    } catch (error) {
      throw await this.typed(error);
    }
  }

  /** The error for a refusal: how the lease was lost, if it says so and the server knows of it too. */
  async refused(refusal: GatewayRefusal): Promise<LeaseholdError> {
    if (isEnd(refusal.error)) await this.holding.refresh(this.held);
    return this.lossNow() ?? refusalOf(refusal, null);
  }

  /**
   * The typed error for one of the platform's. A connection that breaks is often the first sign of the lease's end, so the
   * server is asked.
   */
  async typed(error: unknown): Promise<LeaseholdError> {
    if (error instanceof LeaseholdError) return error;
    const lost = await this.lossBehind();
    const detail = `The connection to ${this.held.lease.resource} failed or broke off; the lease is still held.`;
    return lost ?? new LeaseholdError({ code: "unreachable", detail, cause: error, outcomeUnknown: true });
  }

  private async lossBehind(): Promise<LeaseLost | null> {
    const known = this.lossNow();
    if (known !== null) return known;
    await this.holding.refresh(this.held);
    return this.lossNow();
  }

  private lossNow(): LeaseLost | null {
    const { lost, isOver } = this.holding;
    return lost ?? (isOver ? this.released() : null);
  }

  private released(): LeaseLost {
    return new LeaseLost({ reason: "released", detail: "The lease was given back.", leases: [this.held.lease] });
  }

  private async send(url: URL, init: RequestInit, token: string): Promise<Response> {
    const headers = new Headers(init.headers);
    const isTheirs = headers.has("authorization");
    if (isTheirs) headers.set("leasehold-token", token);
    else headers.set("authorization", `Bearer ${token}`);
    const signals = [this.signal, ...(init.signal ? [init.signal] : [])];
    const { fetcher } = this.holding.client;
    const full = {
      ...init,
      headers,
      signal: AbortSignal.any(signals),
      // The platform takes Authorization off when it is sent elsewhere, and would leave the other.
      ...(isTheirs && { redirect: "manual" as const }),
    };
    const lossOr = async (error: unknown): Promise<unknown> =>
      init.signal?.aborted === true ? error : ((await this.lossBehind()) ?? error);
    try {
      return withTypedBody(await fetcher(url, full), lossOr);
    } catch (error) {
      throw await lossOr(error);
    }
  }

  /** The token is shown to nobody else. */
  private urlOf(path: string | URL): URL {
    const base = this.place("http:", "https:");
    const url = new URL(path, base.href.endsWith("/") ? base : `${base.href}/`);
    if (url.origin !== base.origin) throw new TypeError(`${url.origin} is not where ${this.held.lease.resource} is.`);
    return url;
  }
}

const ends: ReadonlySet<string> = new Set([
  "lease_expired",
  "lease_revoked",
  "lease_released",
  "resource_fenced",
] satisfies LeaseEndCode[]);

function isEnd(code: string): boolean {
  return ends.has(code);
}

/** The same answer, whose body fails with what `typed` makes of the platform's error. */
function withTypedBody(response: Response, typed: (error: unknown) => Promise<unknown>): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(await typed(error));
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { url, redirected, type } = response;
  const copy = new Response(body, response);
  return Object.defineProperties(copy, {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
  });
}

/** null if it is not a refusal by a cell; its body stays readable. */
async function codeIn(response: Response): Promise<string | null> {
  const { status, headers } = response;
  if (status !== 401 && status !== 410 && status !== 423) return null;
  if (headers.get("content-type")?.includes("json") !== true) return null;
  return (await refusalIn(response.clone())).error || null;
}

async function refusalIn(response: Response): Promise<GatewayRefusal> {
  const body = (await response.json().catch(() => null)) as Partial<GatewayRefusal> | null;
  return { ...body, error: typeof body?.error === "string" ? body.error : "" };
}

/** Refused for what it is (401, 403), or failed for another reason. */
function refusalOf(refusal: GatewayRefusal, status: number | null): LeaseholdError {
  const { error: code, detail = `The gateway refused with ${code}.` } = refusal;
  if (!isGatewayCode(code)) {
    const unknown = `The answer${status === null ? "" : `, with status ${status},`} is not a gateway's.`;
    return new LeaseholdError({ code: "bad_answer", detail: unknown, status, body: refusal });
  }
  const failure = { code, detail, status: gatewayStatuses[code], body: { reason: refusal.caveat ?? code, ...refusal } };
  return failure.status === 401 || failure.status === 403 ? new Denied(failure) : new LeaseholdError(failure);
}

function isGatewayCode(text: string): text is GatewayCode {
  return Object.hasOwn(gatewayStatuses, text);
}

/** A stream can be read once. */
function mayBeSentAgain(body: RequestInit["body"]): boolean {
  return (
    !(body instanceof ReadableStream) && !(typeof body === "object" && body !== null && Symbol.asyncIterator in body)
  );
}
