/** Events from before the page was opened, as the server keeps them: filtered there, and read backwards in portions. */
import { signal } from "@preact/signals";
import { addressOf, headersFor, Refusal, wordsOf } from "../api/client.ts";
import { type LiveEvent, parseEvents } from "./stream.ts";

export interface OlderFilter {
  readonly types: readonly string[];
  readonly agentId: string;
}

/** Numbers that one portion covers; of these only what matches is sent. */
const portion = 5_000;

export class OlderEvents {
  /** The oldest first. */
  readonly events = signal<readonly LiveEvent[]>([]);
  readonly end = signal<string | null>(null);
  private readonly filter: OlderFilter;
  private before: number;
  private isReading = false;

  constructor(filter: OlderFilter, before: number) {
    this.filter = filter;
    this.before = before;
    if (before <= 1) this.end.value = "This is the first event.";
  }

  async readMore(): Promise<void> {
    if (this.isReading || this.end.peek() !== null) return;
    this.isReading = true;
    const since = Math.max(0, this.before - 1 - portion);
    try {
      const found = await this.read(since);
      this.events.value = [...found, ...this.events.peek()];
      this.before = since + 1;
      if (since === 0) this.end.value = "This is the first event.";
    } catch (fault) {
      const isPruned = fault instanceof Refusal && fault.status === 410;
      this.end.value = isPruned
        ? "What was before is forgotten: the server keeps events for a time only."
        : wordsOf(fault);
    }
    this.isReading = false;
  }

  /** Ends at the first event that is known already: the answer itself goes on to the present. */
  private async read(since: number): Promise<readonly LiveEvent[]> {
    const { types, agentId } = this.filter;
    const query = new URLSearchParams({ since: String(since), follow: "false" });
    if (types.length > 0) query.set("types", types.join(","));
    if (agentId !== "") query.set("agent_id", agentId);
    const abort = new AbortController();
    const response = await fetch(addressOf(`/v1/events?${query}`), {
      headers: headersFor("GET"),
      signal: abort.signal,
    });
    if (!response.ok || response.body === null)
      throw new Refusal(response.status, (await response.json()) as Readonly<Record<string, unknown>>);
    const found: LiveEvent[] = [];
    const reader = response.body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
      .getReader();
    for (let rest = ""; ; ) {
      const { done, value = "" } = await reader.read();
      const text = rest + value;
      const end = text.lastIndexOf("\n\n");
      rest = text.slice(end + 2);
      for (const event of parseEvents(text.slice(0, Math.max(0, end)))) {
        if (event.seq < this.before) found.push(event);
        else {
          abort.abort();
          return found;
        }
      }
      if (done) return found;
    }
  }
}
