/** What stands at a node of the resource tree: circular lists by strength, each in order. */

import type { Strength } from "../contract/predicates.ts";
import type { Node } from "./resource-tree.ts";
/** Lists at a node are kept in this order: leases by fence, waiting intents by their place in the queue. */
export interface Place {
  readonly order: number;
  readonly suborder: number;
}

/** Something that stands at a node: a lease that is held, or an intent that waits. */
export interface Placed extends Place {
  node: Node | null;
  strength: Strength;
  order: number;
  previous: Placed | null;
  next: Placed | null;
}

/** First of a circular list for each strength. */
export interface Heads {
  shared: Placed | null;
  providing: Placed | null;
  exclusive: Placed | null;
}

/** True at the first item that is meant; undefined ends the list. */
export function some(head: Placed | null, isMeant: (item: Placed) => boolean | undefined): boolean {
  for (let item = head; item !== null; item = item.next === head ? null : item.next) {
    const meant = isMeant(item);
    if (meant !== false) return meant === true;
  }
  return false;
}

export function each(head: Placed | null, act: (item: Placed) => void): void {
  some(head, (item) => {
    act(item);
    return false;
  });
}

/** Of every strength. */
export function eachAt(heads: Heads | null, act: (item: Placed) => void): void {
  if (heads === null) return;
  each(heads.shared, act);
  each(heads.providing, act);
  each(heads.exclusive, act);
}

/** Of what was appended last: it belongs before the one that it stands behind. */
export function isOutOfOrder(item: Placed): boolean {
  return item.previous !== null && isBefore(item, item.previous);
}

/** Nothing else is held there. */
export function isAlone(heads: Heads, item: Placed): boolean {
  if (item.next !== item) return false;
  const lists =
    (heads.shared === null ? 0 : 1) + (heads.providing === null ? 0 : 1) + (heads.exclusive === null ? 0 : 1);
  return lists === 1;
}

/** From the end backwards, because newcomers nearly always belong there; null: before the head. */
export function lastNotAfter(head: Placed, item: Placed): Placed | null {
  let after = head.previous ?? head;
  while (isBefore(item, after)) {
    if (after === head) return null;
    after = after.previous ?? head;
  }
  return after;
}

export function insertAfter(after: Placed, item: Placed): void {
  const next = after.next ?? after;
  item.previous = after;
  item.next = next;
  after.next = item;
  next.previous = item;
}

export function isBefore(a: Place, b: Place): boolean {
  return a.order !== b.order ? a.order < b.order : a.suborder < b.suborder;
}
