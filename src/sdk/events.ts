/**
 * What happens, as an async iterator over server-sent events. Cut off, it comes back and goes on after the last one that
 * it got, so nothing is missed or repeated. What is not asked for is not read: a slow reader slows the connection
 * down and keeps no more than one portion in memory; the server may cut it off, and then it comes back as well.
 */

import { backOffMs } from "../keeper/lease-keeper.ts";
import type { CallOptions, Client } from "./client.ts";
import { aborted, errorOf, LeaseholdError } from "./errors.ts";
import { parsed } from "./http-form.ts";
import { onAbort, sleep } from "./timing.ts";
import type { Agent, EventType, Lease, Resource } from "./wire.ts";

export interface EventsOptions extends Pick<CallOptions, "signal" | "token"> {
  /** Only events after this one; left out: only those to come. */
  readonly since?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
  /** Only what overlaps with this resource. */
  readonly resource?: string | undefined;
  readonly agentId?: string | undefined;
  /** After this long without a byte the connection is taken for dead; 45 s if left out. */
  readonly silenceMs?: number | undefined;
  /** Called for each break, before it reconnects. */
  readonly onReconnect?: ((error: unknown) => void) | undefined;
  /** Called when it is connected, and on each reconnect. */
  readonly onOpen?: (() => void) | undefined;
}

/** What an event tells beside its type depends on the type; see the documentation of the wire. */
export interface LeaseholdEvent {
  /** Grows; the number to go on after. */
  readonly seq: number;
  readonly type: EventType;
  readonly at: string;
  /** Of `lease.*`. */
  readonly lease?: Lease;
  /** Of `lease.*` where its end was reported with one (A6). */
  readonly version?: string;
  readonly reason?: string;
  /** Of `agent.*`, but where only the state changed. */
  readonly agent?: Agent;
  readonly agent_id?: string;
  /** Of `resource.*`. */
  readonly resource?: Resource;
  readonly [field: string]: unknown;
}

const silenceMsDefault = 45_000;
const backOffMsBase = 50;
const backOffMsCap = 5_000;

export async function* followEvents(client: Client, options: EventsOptions = {}): AsyncGenerator<LeaseholdEvent, void> {
  const { signal, silenceMs = silenceMsDefault } = options;
  let position = options.since ?? null;
  let failures = 0;
  for (;;) {
    const cut = new AbortController();
    const letGo = onAbort(signal, () => cut.abort());
    try {
      if (signal?.aborted === true) throw aborted(signal, false);
      const response = await client.fetch(pathOf(options, position), {}, { signal: cut.signal, token: options.token });
      if (!response.ok) throw errorOf(response.status, parsed(await response.text()));
      options.onOpen?.();
      for await (const frame of framesOf(response, silenceMs, cut)) {
        failures = 0;
        if (frame.id !== null) position = frame.id;
        if (frame.data === null || frame.id === null) continue;
        const event = { ...(JSON.parse(frame.data) as Omit<LeaseholdEvent, "seq">), seq: frame.id } as LeaseholdEvent;
        client.watch.notice(event);
        yield event;
      }
      throw new LeaseholdError({ code: "unreachable", detail: "The event stream ended." });
    } catch (error) {
      if (signal?.aborted === true) throw aborted(signal, false);
      if (client.isClosed || !mayComeBack(error)) throw error;
      options.onReconnect?.(error);
      const hint = error instanceof LeaseholdError ? (error.retryAfterMs ?? 0) : 0;
      await sleep(Math.max(backOffMs(failures++, backOffMsBase, backOffMsCap), hint), signal);
    } finally {
      letGo();
      cut.abort();
    }
  }
}

function pathOf({ types, resource, agentId }: EventsOptions, position: number | null): string {
  const query = new URLSearchParams();
  if (position !== null) query.set("since", String(position));
  if (types !== undefined) query.set("types", types.join(","));
  if (resource !== undefined) query.set("resource", resource);
  if (agentId !== undefined) query.set("agent_id", agentId);
  return query.size === 0 ? "/v1/events" : `/v1/events?${query}`;
}

/** A refusal is for good, unless it says otherwise: a key that opens nothing, a filter that is none, events long gone. */
function mayComeBack(error: unknown): boolean {
  if (!(error instanceof LeaseholdError)) return true;
  if (error.code === "aborted") return true; // Its own: nothing was heard for too long.
  return error.retryable || (error.status !== null && error.status >= 500);
}

interface Frame {
  readonly id: number | null;
  readonly data: string | null;
}

/** The part of the format that the server uses: `id` and `data` of one line each, and comments. */
async function* framesOf(response: Response, silenceMs: number, cut: AbortController): AsyncGenerator<Frame, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const timer = setTimeout(() => cut.abort(), silenceMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      let end = rest.indexOf("\n\n");
      let from = 0;
      for (; end !== -1; end = rest.indexOf("\n\n", from)) {
        const frame = frameOf(rest.slice(from, end));
        from = end + 2;
        if (frame.id !== null) yield frame;
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function frameOf(text: string): Frame {
  let id: number | null = null;
  let data: string | null = null;
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) id = Number(line.slice(4));
    else if (line.startsWith("data: ")) data = line.slice(6);
  }
  return { id: Number.isSafeInteger(id) ? id : null, data };
}
