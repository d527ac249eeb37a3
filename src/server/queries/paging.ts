/** Pages of lists that have no order of their own: by key, the smallest first, each page after the last key before. */
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { Refused } from "../answering/faults.ts";

/** Opaque to callers; the list's name keeps a cursor of one list from being taken for another's. */
export function cursorFor(list: string, key: string): string {
  return Buffer.from(`${list}\n${key}`).toString("base64url");
}

export function readCursor(list: string, cursor: string | null): string | null {
  if (cursor === null) return null;
  const [name, key, ...rest] = Buffer.from(cursor, "base64url").toString().split("\n");
  if (name === list && key !== undefined && rest.length === 0) return key;
  const detail = "The cursor is not one of this list's; send the `next_cursor` of the page before, or none.";
  throw new Refused(errorAnswer("invalid_request", detail, { field: "cursor" }));
}

/** Keys after a page, in order. */
export interface Ahead {
  readonly keys: readonly string[];
  /** False: others come after them. */
  readonly isAll: boolean;
}

interface Remembered extends Ahead {
  /** What they were found in; a recovery has another one, and what it has dropped is to be gone (S2). */
  readonly of: WeakRef<object>;
}

/** Lists whose next pages are remembered; of more the oldest are forgotten, and looked through again. */
const listsMax = 64;

/** By cursor and filter. What came since may be missing in such a page, as in every page of a list that changes. */
export class Lookahead {
  private readonly lists = new Map<string, Remembered>();

  find(name: string, of: object): Ahead | null {
    const found = this.lists.get(name);
    return found?.of.deref() === of ? found : null;
  }

  remember(name: string, ahead: Ahead, of: object): void {
    this.lists.delete(name);
    this.lists.set(name, { ...ahead, of: new WeakRef(of) });
    if (this.lists.size <= listsMax) return;
    const [oldest] = this.lists.keys();
    if (oldest !== undefined) this.lists.delete(oldest);
  }
}

/** How many of these a page holds by their bytes: at least one (S4, S8). */
export function countThatFit<T>(items: readonly T[], bytesOf: (item: T) => number, bytesMax: number): number {
  let bytes = 0;
  for (const [count, item] of items.entries()) {
    bytes += bytesOf(item);
    if (bytes > bytesMax) return Math.max(count, 1);
  }
  return items.length;
}

/** About as many bytes as a record's text has; of plain data. */
export function textBytes(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 2;
  for (const [name, member] of Object.entries(value)) bytes += textBytes(member) + name.length + 4;
  return bytes;
}

interface Keyed<T> {
  readonly key: string;
  readonly item: T;
}

/** Keys that are remembered after a page, so that the next ones need not look through everything again. */
export const aheadMax = 20_000;

/**
 * Collects one page out of any number of items in any order, holding little more than the page: what lies beyond its
 * end so far is let go at once.
 */
export class PageBuilder<T> {
  private readonly limit: number;
  /** The page, what is remembered after it, and one more, to know whether that is all. */
  private readonly most: number;
  private readonly after: string | null;
  private kept: Keyed<T>[] = [];
  private end: string | null = null;

  constructor(limit: number, after: string | null, ahead = 0) {
    this.limit = limit;
    this.most = limit + ahead + 1;
    this.after = after;
  }

  offer(key: string, item: T): void {
    if (this.after !== null && key <= this.after) return;
    if (this.end !== null && key >= this.end) return;
    this.kept.push({ key, item });
    if (this.kept.length > 4 * this.most + 1_000) this.trim();
  }

  /** The items, the key that the next page comes after (null where there is no next one), and keys that come then. */
  build(
    bytesOf: (item: T) => number,
    bytesMax: number,
  ): { readonly items: readonly T[]; readonly lastKey: string | null; readonly ahead: Ahead } {
    this.trim();
    const first = this.kept.slice(0, this.limit);
    const size = countThatFit(first, ({ item }) => bytesOf(item), bytesMax);
    const page = first.slice(0, size);
    const hasMore = this.kept.length > size;
    const rest = this.kept.slice(size, this.most - 1).map(({ key }) => key);
    return {
      items: page.map(({ item }) => item),
      lastKey: hasMore ? (page.at(-1)?.key ?? null) : null,
      ahead: { keys: rest, isAll: this.kept.length < this.most },
    };
  }

  private trim(): void {
    this.kept.sort((a, b) => (a.key < b.key ? -1 : 1));
    this.kept.length = Math.min(this.kept.length, this.most);
    if (this.kept.length === this.most) this.end = this.kept.at(-1)?.key ?? null;
  }
}
