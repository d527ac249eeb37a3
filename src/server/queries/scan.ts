/**
 * Reads for a caller, and lists of large collections: every item is looked at, a slice at a time, so that commands go on
 * in between. What is there from beginning to end is seen once; what comes or goes meanwhile may be seen or not.
 */
import type { Engine } from "../../engine/engine.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";
import { type Reader, whyNotRead } from "../../kernel/views.ts";
import type { Paging, QueryReply } from "../../protocol/answers/queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";

/** How long others wait at most, and how many items are looked at between two checks of the clock. */
const sliceMs = 2;
const stride = 64;

export interface QueryResult {
  readonly reply: QueryReply;
  readonly now: Millis;
}

/** Reads through the engine, so that what is read afterwards is at least as new as all before (S1). */
export function read<T>(
  engine: Engine,
  reader: Reader,
  find: (state: State, now: Millis) => T,
): Promise<{ readonly found: T | Refusal; readonly now: Millis }> {
  return engine.ask((state, now) => ({ found: whyNotRead(state, reader) ?? find(state, now), now }));
}

/** Answers from memory alone. */
export async function answerFrom(
  engine: Engine,
  reader: Reader,
  find: (state: State, now: Millis) => QueryReply,
): Promise<QueryResult> {
  const { found: reply, now } = await read(engine, reader, find);
  return { reply, now };
}

/** Answers from history or the ledger, for a caller that may read the tenant. */
export async function answerFromStore(
  engine: Engine,
  reader: Reader,
  find: () => Promise<QueryReply>,
): Promise<QueryResult> {
  const { found: refusal, now } = await read(engine, reader, () => null);
  return { reply: refusal ?? (await find()), now };
}

/** One list of the API: which items it has, in which order, and how a page of them is answered. */
export interface Listing<T> {
  /** Keeps a cursor of one list from being taken for another's. */
  readonly name: string;
  readonly items: (state: State) => Iterable<T>;
  readonly keyOf: (item: T) => string;
  readonly isWanted?: (item: T) => boolean;
  readonly reply: (items: readonly T[], nextCursor: string | null) => QueryReply | Promise<QueryReply>;
  /** Null: every caller that the operation admits may read it. */
  readonly reader: Reader | null;
}

export async function listPage<T>(
  engine: Engine,
  { limit, cursor }: Paging,
  { name, items, keyOf, isWanted = () => true, reply, reader }: Listing<T>,
): Promise<QueryResult> {
  const after = readCursor(name, cursor);
  let page = new PageBuilder<T>(limit, after);
  const begin = (state: State) => {
    page = new PageBuilder<T>(limit, after);
    return (reader === null ? null : whyNotRead(state, reader)) ?? items(state);
  };
  const { refusal, now } = await scan<T>(engine, begin, (item) => {
    if (isWanted(item)) page.offer(keyOf(item), item);
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items: listed, lastKey } = page.build();
  return { reply: await reply(listed, lastKey === null ? null : cursorFor(name, lastKey)), now };
}

export interface Scanned {
  readonly refusal: Refusal | null;
  readonly now: Millis;
}

/** `begin` is called again, for a fresh start, if the engine has started over from what is stored (S2). */
export async function scan<T>(
  engine: Engine,
  begin: (state: State) => Iterable<T> | Refusal,
  look: (item: T) => void,
): Promise<Scanned> {
  let scanned: State | null = null;
  let items: Iterator<T> | null = null;
  for (;;) {
    const { isDone, refusal, now } = await engine.ask((state, at) => {
      if (state !== scanned) {
        const begun = begin(state);
        if (isRefusal(begun)) return { isDone: true, refusal: begun, now: at };
        scanned = state;
        items = begun[Symbol.iterator]();
      }
      return { isDone: items === null || lookAtSlice(items, look), refusal: null, now: at };
    });
    if (isDone) return { refusal, now };
  }
}

/** True when it was the last one. */
function lookAtSlice<T>(items: Iterator<T>, look: (item: T) => void): boolean {
  const end = performance.now() + sliceMs;
  do {
    for (let count = 0; count < stride; count++) {
      const next = items.next();
      if (next.done === true) return true;
      look(next.value);
    }
  } while (performance.now() < end);
  return false;
}

export function isRefusal(found: object): found is Refusal {
  return "type" in found && found.type === "refused";
}
