/** A list that is watched: how it is read, what an event says about it, and what has changed since. */
import type { LeaseholdEvent } from "../../sdk/events.ts";
import type { EventType } from "../../sdk/wire.ts";
import type { ListedSince } from "../pages.ts";
import type { Paint } from "../paint.ts";
import { plain } from "../plain-text.ts";
import { type Column, tableText } from "../table.ts";

/** What one event does to the list. */
export interface Effect<T> {
  readonly put?: readonly T[];
  readonly gone?: readonly string[];
  /** The event does not say all: the list has to be read again. */
  readonly isStale?: boolean;
}

/** One table of the screen. Several of them are read and followed together. */
export interface Part<T> {
  /** The command that lists it, as it is typed. */
  readonly command: string;
  /** The member that has the item in a line of JSON: "lease", "task". */
  readonly name: string;
  readonly columns: readonly Column<T>[];
  /** Shown in place of an empty table; "" shows nothing. */
  readonly none: string;
  /** How many, in words: "3 leases". */
  readonly count: (length: number) => string;
  readonly keyOf: (item: T) => string;
  readonly read: () => Promise<ListedSince<T>>;
  readonly types: readonly EventType[];
  readonly effectOf: (event: LeaseholdEvent, known: ReadonlyMap<string, T>) => Effect<T>;
  /** The item as it is so long after it was read: times that run down. */
  readonly later: (item: T, agoMs: number) => T;
  /** What a line of JSON has. */
  readonly json: (item: T) => Readonly<Record<string, unknown>>;
}

/** `is`: listed at the beginning. */
export type ChangeKind = "is" | "new" | "changed" | "gone";

export interface Change {
  readonly kind: ChangeKind;
  readonly json: () => Readonly<Record<string, unknown>>;
  /** With tabs between, as lists in a pipe are. */
  readonly line: () => string;
}

/** A watched list, whatever it is of. */
export type WatchedList = Pick<PartState<unknown>, "command" | "types" | "countText" | "read" | "apply" | "table">;

/** The items of one list, by their keys, in the order of the last reading. */
export class PartState<T> {
  private readonly part: Part<T>;
  private items = new Map<string, T>();
  /** When each was read, or its event came. */
  private stamps = new Map<string, number>();
  private hasMore = false;
  private isFirst = true;

  constructor(part: Part<T>) {
    this.part = part;
  }

  get command(): string {
    return this.part.command;
  }

  get types(): readonly EventType[] {
    return this.part.types;
  }

  get countText(): string {
    return `${this.part.count(this.items.size)}${this.hasMore ? " and more" : ""}`;
  }

  /** As it is now, by the clock that readings and events were stamped with; "" where there is nothing to show. */
  table(now: number, paint: Paint, columns: number): string {
    const { later, columns: table, none } = this.part;
    if (this.items.size === 0) return paint.dim(none);
    const items = [...this.items].map(([key, item]) => later(item, now - (this.stamps.get(key) ?? now)));
    return tableText(items, table, paint, columns).trimEnd();
  }

  /** Reads the list. It is taken when all lists of a screen have been read. */
  async read(at: number): Promise<{ readonly sequence: number | null; readonly take: () => readonly Change[] }> {
    const { items, hasMore, sequence } = await this.part.read();
    return { sequence, take: () => this.replace(items, hasMore, at) };
  }

  private replace(items: readonly T[], hasMore: boolean, at: number): readonly Change[] {
    const next = new Map(items.map((item) => [this.part.keyOf(item), item]));
    const changes = [...next].flatMap(([key, item]) => this.changeOf(key, item));
    for (const [key, item] of this.items) if (!next.has(key)) changes.push(this.change("gone", item));
    this.items = next;
    this.stamps = new Map([...next.keys()].map((key) => [key, at]));
    this.hasMore = hasMore;
    this.isFirst = false;
    return changes;
  }

  /** Takes what an event says. */
  apply(event: LeaseholdEvent, at: number): { readonly changes: readonly Change[]; readonly isStale: boolean } {
    const { put = [], gone = [], isStale = false } = this.part.effectOf(event, this.items);
    const changes: Change[] = [];
    for (const item of put) {
      const key = this.part.keyOf(item);
      changes.push(...this.changeOf(key, item));
      this.items.set(key, item);
      this.stamps.set(key, at);
    }
    for (const key of gone) {
      const found = this.items.get(key);
      if (found !== undefined) changes.push(this.change("gone", found));
      this.items.delete(key);
    }
    return { changes, isStale };
  }

  private changeOf(key: string, item: T): Change[] {
    const before = this.items.get(key);
    if (before === undefined) return [this.change(this.isFirst ? "is" : "new", item)];
    return identityOf(before) === identityOf(item) ? [] : [this.change("changed", item)];
  }

  private change(kind: ChangeKind, item: T): Change {
    const { name, columns, json } = this.part;
    return {
      kind,
      json: () => ({ change: kind, ...json(item) }),
      line: () => [kind, name, ...columns.map(({ cell }) => plain(cell(item)))].join("\t"),
    };
  }
}

/** Heartbeats move ends of leases all the time: what only tells the time makes no other item. */
function identityOf(item: unknown): string {
  return JSON.stringify(item, (key, value: unknown) =>
    key.endsWith("_in_ms") || key === "expires_at" || key === "retry_at" ? undefined : value,
  );
}
