/** Lists, page after page, up to as many as were asked for. */
import type { Call, Flag } from "./command.ts";

const pageMax = 1_000;
const listedDefault = 1_000;

export const limitFlag: Flag = { sign: "N", words: `at most so many [${listedDefault}]` };

export function limitOf(call: Call): number {
  return call.integer("limit", 1) ?? listedDefault;
}

interface Page {
  readonly next_cursor: string | null;
}

export interface Listed<T> {
  readonly items: readonly T[];
  /** Whether there are more than were asked for. */
  readonly hasMore: boolean;
}

export async function listAll<P extends Page, T>(
  limit: number,
  ask: (page: { readonly limit: number; readonly cursor: string | null }) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Promise<Listed<T>> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const page: P = await ask({ limit: Math.min(pageMax, limit - items.length), cursor });
    items.push(...itemsOf(page));
    cursor = page.next_cursor;
  } while (cursor !== null && items.length < limit);
  return { items, hasMore: cursor !== null };
}

export function moreLine(hasMore: boolean): string {
  return hasMore ? "There are more; ask for them with --limit.\n" : "";
}
