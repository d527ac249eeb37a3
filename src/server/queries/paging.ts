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

interface Keyed<T> {
  readonly key: string;
  readonly item: T;
}

/**
 * Collects one page out of any number of items in any order, holding little more than the page: what lies beyond its
 * end so far is let go at once.
 */
export class PageBuilder<T> {
  private readonly limit: number;
  private readonly after: string | null;
  private kept: Keyed<T>[] = [];
  private end: string | null = null;

  constructor(limit: number, after: string | null) {
    this.limit = limit;
    this.after = after;
  }

  offer(key: string, item: T): void {
    if (this.after !== null && key <= this.after) return;
    if (this.end !== null && key >= this.end) return;
    this.kept.push({ key, item });
    if (this.kept.length > 4 * this.limit + 1_000) this.trim();
  }

  /** The items, and the key that the next page comes after; null where there is no next one. */
  build(): { readonly items: readonly T[]; readonly lastKey: string | null } {
    this.trim();
    const page = this.kept.slice(0, this.limit);
    const hasMore = this.kept.length > this.limit;
    return { items: page.map(({ item }) => item), lastKey: hasMore ? (page.at(-1)?.key ?? null) : null };
  }

  /** One more than the page is kept, to know whether there is a next one. */
  private trim(): void {
    this.kept.sort((a, b) => (a.key < b.key ? -1 : 1));
    this.kept.length = Math.min(this.kept.length, this.limit + 1);
    if (this.kept.length > this.limit) this.end = this.kept.at(-1)?.key ?? null;
  }
}
