/**
 * A binary heap in which every item knows its slot, so that an extended or ended lease moves or
 * leaves in O(log n) instead of leaving a dead entry behind. Ties are broken by `tie`, kind and tenant, which
 * records hold, so that a restored kernel settles in the same order.
 */
export interface Ranked {
  rank: number;
  tie: number;
  readonly tenantId: string;
  readonly kind: string;
  /** Position in the heap; -1 when not in it. */
  slot: number;
}

export interface Heap<T extends Ranked> {
  readonly heap: T[];
}

export function createHeap<T extends Ranked>(): Heap<T> {
  return { heap: [] };
}

export function firstOf<T extends Ranked>({ heap }: Heap<T>): T | undefined {
  return heap[0];
}

/** Infinity: it is empty. */
export function firstRank<T extends Ranked>({ heap }: Heap<T>): number {
  return heap.length === 0 ? Number.POSITIVE_INFINITY : (heap[0]?.rank ?? 0);
}

/** Puts the item in, or moves it to where its new rank belongs. */
export function rankIn<T extends Ranked>({ heap }: Heap<T>, item: T, rank: number, tie: number): void {
  const later = item.slot >= 0 && (rank > item.rank || (rank === item.rank && tie >= item.tie));
  item.rank = rank;
  item.tie = tie;
  if (item.slot < 0) {
    heap.push(item);
    rise(heap, item, heap.length - 1);
  } else if (later) sink(heap, item, item.slot);
  else rise(heap, item, item.slot);
}

export function removeFrom<T extends Ranked>({ heap }: Heap<T>, item: T): void {
  const slot = item.slot;
  if (slot < 0) return;
  item.slot = -1;
  const last = heap.pop();
  if (last === undefined || last === item) return;
  if (slot > 0 && isBefore(last, heap[(slot - 1) >> 1] ?? last)) rise(heap, last, slot);
  else sink(heap, last, slot);
}

function rise<T extends Ranked>(heap: T[], item: T, from: number): void {
  let slot = from;
  while (slot > 0) {
    const above = (slot - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(item, parent)) break;
    heap[slot] = parent;
    parent.slot = slot;
    slot = above;
  }
  heap[slot] = item;
  item.slot = slot;
}

function sink<T extends Ranked>(heap: T[], item: T, from: number): void {
  let slot = from;
  const count = heap.length;
  for (;;) {
    let below = 2 * slot + 1;
    if (below >= count) break;
    let child = heap[below];
    const right = heap[below + 1];
    if (child !== undefined && right !== undefined && isBefore(right, child)) {
      child = right;
      below++;
    }
    if (child === undefined || !isBefore(child, item)) break;
    heap[slot] = child;
    child.slot = slot;
    slot = below;
  }
  heap[slot] = item;
  item.slot = slot;
}

function isBefore(a: Ranked, b: Ranked): boolean {
  if (a.rank !== b.rank) return a.rank < b.rank;
  if (a.tie !== b.tie) return a.tie < b.tie;
  if (a.kind !== b.kind) return a.kind < b.kind;
  return a.tenantId < b.tenantId;
}
