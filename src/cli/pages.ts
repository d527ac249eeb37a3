/** Lists, page after page, up to as many as were asked for. */
import type { Call, Flag } from "./command.ts";
import type { Column } from "./table.ts";

const pageMax = 1_000;
const listedDefault = 1_000;

export const limitFlag: Flag = { sign: "N", words: `at most N [${listedDefault}]` };

export interface Page {
  readonly limit: number;
  readonly cursor: string | null;
}

type Answer<K extends string, T> = Readonly<Record<K, readonly T[]>> & {
  readonly next_cursor: string | null;
  readonly sequence?: number;
};

export interface Listed<T> {
  readonly items: readonly T[];
  /** Whether there are more than were asked for. */
  readonly hasMore: boolean;
}

export interface ListedSince<T> extends Listed<T> {
  /** The last event that the first page is sure to include; null where the server does not say. */
  readonly sequence: number | null;
}

export async function listAll<K extends string, T>(
  field: K,
  limit: number,
  ask: (page: Page) => Promise<Answer<K, T>>,
): Promise<ListedSince<T>> {
  const items: T[] = [];
  let sequence: number | null = null;
  let cursor: string | null = null;
  do {
    const page: Answer<K, T> = await ask({ limit: Math.min(pageMax, limit - items.length), cursor });
    if (cursor === null) sequence = page.sequence ?? null;
    items.push(...page[field]);
    cursor = page.next_cursor;
  } while (cursor !== null && items.length < limit);
  return { items, hasMore: cursor !== null, sequence };
}

export function limitOf(call: Call): number {
  return call.integer("limit", 1) ?? listedDefault;
}

/** A whole command: asks for all pages up to `--limit`, and shows them as a table or as one object with `field`. */
export async function showList<K extends string, T>(
  call: Call,
  field: K,
  columns: readonly Column<T>[],
  none: string,
  ask: (page: Page) => Promise<Answer<K, T>>,
): Promise<undefined> {
  const { items, hasMore } = await listAll(field, limitOf(call), ask);
  call.out.show({ [field]: items, has_more: hasMore }, () => listText(call, { items, hasMore }, columns, none));
}

export function listText<T>({ out }: Call, { items, hasMore }: Listed<T>, columns: readonly Column<T>[], none: string) {
  return `${out.table(items, columns, none)}${hasMore && out.isTerminal ? moreLine : ""}`;
}

export const moreLine = "There are more; ask for them with --limit.\n";
