/**
 * Lists that stay as the server has them: read once, then followed from the number of the last event that the reading
 * includes, so nothing is missed in between. What an event says itself is applied at once; where it does not say
 * all, the lists are read again, and events that come meanwhile are applied afterwards.
 */
import type { Client } from "../../sdk/client.ts";
import { type EventsOptions, followEvents, type LeaseholdEvent } from "../../sdk/events.ts";
import { isServerError } from "../problem.ts";
import type { Change, WatchedList } from "./part.ts";

/** Null while events arrive; otherwise since when they do not, and why. */
export type Trouble = { readonly since: number; readonly error: unknown } | null;

export interface WatchOptions {
  readonly filter: Pick<EventsOptions, "resource" | "agentId">;
  readonly signal: AbortSignal;
  /** Readings begin this long after each other at least: a busy fleet makes thousands of events a second. */
  readonly gapMs: number;
  /** The lists are read again after this long without an event, since heartbeats make none; null: never. */
  readonly refreshMs: number | null;
  readonly onChange: (changes: readonly Change[]) => void;
  readonly onTrouble: (trouble: Trouble) => void;
}

const retryMsMin = 250;
const retryMsMax = 5_000;

export class Watcher {
  readonly lists: readonly WatchedList[];
  private readonly client: Client;
  private readonly options: WatchOptions;
  private queue: LeaseholdEvent[] = [];
  private wake: (() => void) | null = null;
  private following: AbortController | null = null;
  /** Up to here events are applied or were in a reading. */
  private position = 0;
  private isStale = false;
  private readAt = Number.NEGATIVE_INFINITY;
  private trouble: Trouble = null;
  private isConnected = false;
  /** The connection broke since the last reading: the server may be another one, with other numbers. */
  private isSuspect = false;
  private refusal: unknown = null;

  constructor(client: Client, lists: readonly WatchedList[], options: WatchOptions) {
    this.client = client;
    this.options = options;
    this.lists = lists;
  }

  /** Reads the lists for the first time; a server that is not there is reported as it always is. */
  async begin(): Promise<void> {
    await this.read();
  }

  /** Until the signal fires; throws where the server refuses for good. */
  async run(): Promise<void> {
    const { signal, refreshMs, gapMs } = this.options;
    let retryMs = retryMsMin;
    while (!signal.aborted) {
      if (this.refusal !== null) throw this.refusal;
      this.drain();
      const now = performance.now();
      const dueAt = this.isStale ? this.readAt + gapMs : this.readAt + (refreshMs ?? Number.POSITIVE_INFINITY);
      if (now >= dueAt) {
        try {
          await this.read();
          retryMs = retryMsMin;
        } catch (error) {
          if (signal.aborted) break;
          if (!mayReturn(error)) throw error;
          this.noteTrouble(error);
          await this.pause(retryMs);
          retryMs = Math.min(retryMs * 2, retryMsMax);
        }
      } else await this.pause(Math.min(dueAt - now, 60_000));
    }
    this.following?.abort();
  }

  private async read(): Promise<void> {
    this.isStale = false;
    this.readAt = performance.now();
    const at = this.readAt;
    try {
      const read = await Promise.all(this.lists.map((list) => list.read(at)));
      const known = read.flatMap(({ sequence }) => (sequence === null ? [] : [sequence]));
      // A list that is read from history has no number: the figures' number is older, and nothing is missed.
      const since = known.length < read.length ? await this.sequence() : Math.min(...known);
      const changes = read.flatMap(({ take }) => take());
      // Numbers that begin again are those of another history: a server without a disk that was started again.
      if (this.following === null || (this.isSuspect && since < this.position)) this.follow(since);
      this.position = Math.max(this.position, since);
      this.isSuspect = false;
      if (this.trouble !== null && this.isConnected) this.noteTrouble(null);
      this.options.onChange(changes);
    } catch (error) {
      this.isStale = true;
      throw error;
    }
  }

  private async sequence(): Promise<number> {
    return (await this.client.call("get_overview", {})).sequence;
  }

  private follow(since: number): void {
    this.following?.abort();
    const following = new AbortController();
    this.following = following;
    this.queue = [];
    this.position = since;
    const types = [...new Set(this.lists.flatMap(({ types }) => types))];
    const isOwn = (): boolean => this.following === following;
    const events = followEvents(this.client, {
      ...this.options.filter,
      types,
      since,
      signal: AbortSignal.any([following.signal, this.options.signal]),
      onOpen: () => {
        if (!isOwn()) return;
        this.isSuspect = this.trouble !== null;
        this.isStale ||= this.isSuspect;
        this.isConnected = true;
        this.rouse();
      },
      onReconnect: (error) => {
        if (!isOwn()) return;
        this.isConnected = false;
        this.noteTrouble(error);
        this.rouse();
      },
    });
    void this.collect(events).catch((error: unknown) => {
      if (!isOwn() || this.options.signal.aborted) return;
      this.isConnected = false;
      // What came in between is no longer kept: begin again with the present.
      if (isServerError(error) && error.code === "history_pruned") this.following = null;
      else this.refusal = error;
      this.isStale = true;
      this.rouse();
    });
  }

  private async collect(events: AsyncGenerator<LeaseholdEvent, void>): Promise<void> {
    for await (const event of events) {
      this.queue.push(event);
      this.rouse();
    }
  }

  private drain(): void {
    const events = this.queue;
    this.queue = [];
    const at = performance.now();
    for (const event of events) {
      if (event.seq <= this.position) continue;
      this.position = event.seq;
      const changes: Change[] = [];
      for (const list of this.lists) {
        if (!list.types.includes(event.type)) continue;
        const applied = list.apply(event, at);
        changes.push(...applied.changes);
        this.isStale ||= applied.isStale;
      }
      if (changes.length > 0) this.options.onChange(changes);
    }
  }

  private noteTrouble(error: unknown): void {
    const since = this.trouble?.since ?? performance.now();
    this.trouble = error === null ? null : { since, error };
    this.options.onTrouble(this.trouble);
  }

  private rouse(): void {
    this.wake?.();
  }

  private async pause(ms: number): Promise<void> {
    const { signal } = this.options;
    if (this.queue.length > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done);
      this.wake = done;
    });
  }
}

/** A refusal is for good; a server that is away, or has no leader, comes back. */
function mayReturn(error: unknown): boolean {
  if (!isServerError(error)) return false;
  return error.retryable || error.status === null || error.status >= 500;
}
