/** Lists that a screen reads for itself: again when something changed, a page at a time, never two reads at once. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { wordsOf } from "../api/client.ts";
import { isPaused } from "../live/pausing.ts";

export interface Reading<T> {
  readonly value: T | null;
  readonly error: string | null;
}

const empty = { value: null, error: null };
/** After a change the list is read again no sooner than this, and the slower the server the later. */
const againMs = 900;

/** `key` says what is read: with another one the reading starts over. */
export function useReading<T>(
  key: string,
  read: () => Promise<T>,
  changed?: ReadonlySignal<number>,
): Reading<T> & { readonly again: () => void } {
  // The key stands for all that `read` depends on.
  const reader = useMemo(() => new Reader(read), [key]);
  useEffect(() => {
    void reader.read();
    const stop = changed?.subscribe(() => reader.note());
    return () => {
      stop?.();
      reader.close();
    };
  }, [reader, changed]);
  return { ...reader.state.value, again: () => void reader.read() };
}

class Reader<T> {
  readonly state = signal<Reading<T>>(empty);
  private readonly source: () => Promise<T>;
  private isReading = false;
  private isWanted = false;
  private isClosed = false;
  private nextAt = 0;
  private timer = 0;

  constructor(source: () => Promise<T>) {
    this.source = source;
  }

  note(): void {
    if (this.isClosed || isPaused.peek() || this.nextAt === 0) return;
    this.isWanted = true;
    if (this.isReading || this.timer !== 0) return;
    this.timer = window.setTimeout(() => void this.read(), Math.max(0, this.nextAt - Date.now()));
  }

  async read(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.isReading || this.isClosed) return;
    this.isReading = true;
    this.isWanted = false;
    const began = Date.now();
    try {
      const value = await this.source();
      if (!this.isClosed) this.state.value = { value, error: null };
    } catch (error) {
      if (!this.isClosed) this.state.value = { value: this.state.peek().value, error: wordsOf(error) };
    }
    this.isReading = false;
    this.nextAt = Date.now() + Math.max(againMs, 15 * (Date.now() - began));
    if (this.isWanted) this.note();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }
}
