/**
 * What is due when: a binary heap in which every item knows its slot, so that an extended or ended lease moves or
 * leaves in O(log n) instead of leaving a dead entry behind. Ties are broken by `dueOrder`, kind and tenant, which
 * records hold, so that a restored kernel settles in the same order.
 */
export interface Due {
  dueAt: number;
  dueOrder: number;
  readonly tenantId: string;
  readonly kind: string;
  /** Position in the heap; -1 when not in it. */
  slot: number;
}

export interface Deadlines<T extends Due> {
  readonly heap: T[];
}

export function createDeadlines<T extends Due>(): Deadlines<T> {
  return { heap: [] };
}

export function earliest<T extends Due>({ heap }: Deadlines<T>): T | undefined {
  return heap[0];
}

/** Puts the item in, or moves it to where its changed deadline belongs. */
export function schedule<T extends Due>({ heap }: Deadlines<T>, item: T, dueAt: number, dueOrder: number): void {
  const later = item.slot >= 0 && (dueAt > item.dueAt || (dueAt === item.dueAt && dueOrder >= item.dueOrder));
  item.dueAt = dueAt;
  item.dueOrder = dueOrder;
  if (item.slot < 0) {
    heap.push(item);
    rise(heap, item, heap.length - 1);
  } else if (later) sink(heap, item, item.slot);
  else rise(heap, item, item.slot);
}

export function unschedule<T extends Due>({ heap }: Deadlines<T>, item: T): void {
  const slot = item.slot;
  if (slot < 0) return;
  item.slot = -1;
  const last = heap.pop();
  if (last === undefined || last === item) return;
  if (slot > 0 && isBefore(last, heap[(slot - 1) >> 1] ?? last)) rise(heap, last, slot);
  else sink(heap, last, slot);
}

function rise<T extends Due>(heap: T[], item: T, from: number): void {
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

function sink<T extends Due>(heap: T[], item: T, from: number): void {
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

function isBefore(a: Due, b: Due): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt;
  if (a.dueOrder !== b.dueOrder) return a.dueOrder < b.dueOrder;
  if (a.kind !== b.kind) return a.kind < b.kind;
  return a.tenantId < b.tenantId;
}
