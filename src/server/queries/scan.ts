/**
 * Reads for a caller, and lists of large collections: for a first page every item is looked at, a slice at a time, so that
 * commands go on in between; the keys of the pages after it are remembered. What is there from beginning to end is seen once; what comes or goes meanwhile may be seen or not.
 */
import type { Engine } from "../../engine/engine.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { State } from "../../kernel/kernel.ts";
import { type Reader, whyNotRead } from "../../kernel/views.ts";
import type { Paging, QueryReply } from "../../protocol/answers/queries.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { FairTurns } from "../answering/fair-turns.ts";
import { type Ahead, aheadMax, cursorFor, Lookahead, PageBuilder, readCursor } from "./paging.ts";

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
  /** About what an item takes in the answer; absent where none is large. */
  readonly bytesOf?: (item: T) => number;
  /** The item of a key. With it the pages after the first cost what they hold, and not what the list holds. */
  readonly find?: (state: State, key: string) => T | undefined;
  readonly reply: (items: readonly T[], nextCursor: string | null) => QueryReply | Promise<QueryReply>;
  /** Null: every caller that the operation admits may read it. */
  readonly reader: Reader | null;
}

/** Lists that one tenant looks through at once; the others wait for their turn. */
const listsAtOnceMax = 4;

/** What all lists of a server share. */
class Lists {
  readonly turns = new FairTurns(listsAtOnceMax);
  readonly lookahead = new Lookahead();
}

const listsOf = new WeakMap<Engine, Lists>();

export async function listPage<T>(engine: Engine, query: Paging, listing: Listing<T>): Promise<QueryResult> {
  const lists = listsOf.get(engine) ?? new Lists();
  listsOf.set(engine, lists);
  const { limit, cursor } = query;
  const { name, items, keyOf, isWanted = () => true, bytesOf = () => 0, reply, reader, find } = listing;
  const after = readCursor(name, cursor);
  const nameAt = (key: string): string =>
    JSON.stringify({ ...query, limit: null, actor: null, list: name, cursor: key });
  // Of the beginning: a reader that follows events from there misses nothing of what was changed while it was read.
  let sequence = 0;
  const answer = async (listed: readonly T[], lastKey: string | null, ahead: Ahead, of: State, now: Millis) => {
    if (lastKey !== null && find !== undefined) lists.lookahead.remember(nameAt(lastKey), ahead, of);
    const page = await reply(listed, lastKey === null ? null : cursorFor(name, lastKey));
    return { reply: "nextCursor" in page ? { ...page, sequence } : page, now };
  };
  if (after !== null && find !== undefined) {
    const { next, of, now } = await engine.ask((state, at) => {
      sequence = engine.sequence;
      const known = lists.lookahead.find(nameAt(after), state);
      const isAllowed = reader === null || whyNotRead(state, reader) === null;
      const next =
        known === null || !isAllowed ? null : pageFrom(known, limit, (key) => wanted(find(state, key)), bytesOf);
      return { next, of: state, now: at };
    });
    if (next !== null) return answer(next.items, next.lastKey, next.ahead, of, now);
  }
  let page = new PageBuilder<T>(limit, after, aheadMax);
  let scanned: State | null = null;
  const begin = (state: State) => {
    scanned = state;
    sequence = engine.sequence;
    page = new PageBuilder<T>(limit, after, find === undefined ? 0 : aheadMax);
    return (reader === null ? null : whyNotRead(state, reader)) ?? items(state);
  };
  const tenant = reader?.tenant ?? "";
  const leave = await lists.turns.enter(tenant);
  try {
    const { refusal, now } = await scan<T>(
      engine,
      begin,
      (item) => {
        if (isWanted(item)) page.offer(keyOf(item), item);
      },
      (ask) => lists.turns.turn(tenant, ask),
    );
    if (refusal !== null || scanned === null) return { reply: refusal ?? (await reply([], null)), now };
    const { items: listed, lastKey, ahead } = page.build(bytesOf, limits.pageBytesMax);
    return await answer(listed, lastKey, ahead, scanned, now);
  } finally {
    leave();
  }

  function wanted(item: T | undefined): T | undefined {
    return item !== undefined && isWanted(item) ? item : undefined;
  }
}

/** The next page out of keys that are known; null where they do not suffice, and the list is looked through again. */
function pageFrom<T>(
  { keys, isAll }: Ahead,
  limit: number,
  find: (key: string) => T | undefined,
  bytesOf: (item: T) => number,
) {
  const items: T[] = [];
  let bytes = 0;
  for (const [index, key] of keys.entries()) {
    const item = find(key);
    if (item === undefined) continue;
    bytes += bytesOf(item);
    if (items.push(item) < limit && bytes < limits.pageBytesMax) continue;
    const rest = keys.slice(index + 1);
    return { items, lastKey: rest.length > 0 || !isAll ? key : null, ahead: { keys: rest, isAll } };
  }
  return isAll ? { items, lastKey: null, ahead: { keys: [], isAll } } : null;
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
  inTurn: <R>(ask: () => Promise<R>) => Promise<R> = (ask) => ask(),
): Promise<Scanned> {
  let scanned: State | null = null;
  let items: Iterator<T> | null = null;
  for (;;) {
    const { isDone, refusal, now } = await inTurn(() =>
      engine.ask((state, at) => {
        if (state !== scanned) {
          const begun = begin(state);
          if (isRefusal(begun)) return { isDone: true, refusal: begun, now: at };
          scanned = state;
          items = begun[Symbol.iterator]();
        }
        return { isDone: items === null || lookAtSlice(items, look), refusal: null, now: at };
      }),
    );
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
