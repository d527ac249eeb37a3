/**
 * One stream of events for the whole page. It is read with fetch and not with EventSource, so that a refusal can be read,
 * and a tenant named. Events are handed over in the portions in which they arrive.
 */
import { signal } from "@preact/signals";
import { addressOf, headersFor } from "../api/client.ts";
import { noteSignedOut } from "../api/session.ts";

export interface LiveEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly [field: string]: unknown;
}

export type Link = "connecting" | "live" | "paused" | "broken";
export const link = signal<Link>("connecting");

interface FeedOptions {
  /** Portions of one or more, in order. */
  readonly take: (events: readonly LiveEvent[]) => void;
  /** History before `since` is gone: the lists must be read again. */
  readonly lost: () => void;
}

/** A frame or two: what happens is drawn soon enough, and twenty pages cost the server little. */
const batchMs = 60;
const retryMsMin = 300;
const retryMsMax = 5_000;
/** The server gives a sign of life more often than this; without one the connection is gone. */
const silentMsMax = 45_000;

export class EventFeed {
  private readonly options: FeedOptions;
  private since: number;
  private abort: AbortController | null = null;
  private retryMs = retryMsMin;
  private timer = 0;
  private watchdog = 0;

  constructor(since: number, options: FeedOptions) {
    this.since = since;
    this.options = options;
  }

  get lastSeq(): number {
    return this.since;
  }

  start(): void {
    this.stop();
    link.value = "connecting";
    void this.run();
  }

  /** What is missed meanwhile comes when it starts again. */
  stop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.abort?.abort();
    this.abort = null;
  }

  private async run(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    try {
      const response = await fetch(addressOf(`/v1/events?since=${this.since}&batch_ms=${batchMs}`), {
        headers: headersFor("GET"),
        credentials: "same-origin",
        cache: "no-store",
        signal: abort.signal,
      });
      if (response.status === 410) return this.options.lost();
      if (response.status === 401) return noteSignedOut();
      if (!response.ok || response.body === null) throw new Error(String(response.status));
      link.value = "live";
      this.retryMs = retryMsMin;
      await this.read(response.body, abort);
    } catch {
      if (abort.signal.aborted && this.abort !== abort) return;
    }
    if (this.abort !== abort) return;
    link.value = "broken";
    this.timer = window.setTimeout(() => void this.run(), this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, retryMsMax);
  }

  private async read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "";
    for (;;) {
      clearTimeout(this.watchdog);
      this.watchdog = window.setTimeout(() => abort.abort(), silentMsMax);
      const { done, value } = await reader.read();
      if (done) return;
      const text = rest + value;
      const end = text.lastIndexOf("\n\n");
      if (end === -1) {
        rest = text;
        continue;
      }
      rest = text.slice(end + 2);
      const events = this.parse(text.slice(0, end));
      if (events.length > 0) this.options.take(events);
    }
  }

  private parse(text: string): readonly LiveEvent[] {
    const events = parseEvents(text);
    // A sign of life has a number too, without an event.
    const last = Number.parseInt(text.slice(`\n${text}`.lastIndexOf("\nid: ") + 4), 10);
    if (last > this.since) this.since = last;
    return events;
  }
}

export function parseEvents(text: string): readonly LiveEvent[] {
  const events: LiveEvent[] = [];
  let seq = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) seq = Number(line.slice(4));
    else if (line.startsWith("data: "))
      events.push({ seq, ...(JSON.parse(line.slice(6)) as Omit<LiveEvent, "seq">) } as LiveEvent);
  }
  return events;
}
