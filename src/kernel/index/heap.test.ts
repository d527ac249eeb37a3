import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createHeap, firstOf, type Ranked, rankIn, removeFrom } from "./heap.ts";

interface Item extends Ranked {
  readonly id: number;
}

function createItem(id: number, tenantId = "t", kind = "lease"): Item {
  return { id, tenantId, kind, rank: 0, tie: 0, slot: -1 };
}

const anyStep = fc.record({
  nth: fc.nat(29),
  act: fc.constantFrom("schedule", "schedule", "schedule", "removeFrom", "pop"),
  rank: fc.nat(20),
  tie: fc.nat(3),
});

test("L3: the firstOf is always at hand, however deadlines come, move and go", () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 150, size: "max" }), (steps) => {
      const items = Array.from({ length: 30 }, (_, id) => createItem(id, `t${id}`));
      const deadlines = createHeap<Item>();
      const scheduled = new Set<Item>();
      for (const { nth, act, rank, tie } of steps) {
        const item = act === "pop" ? firstOf(deadlines) : items[nth];
        if (item === undefined) continue;
        if (act === "schedule") {
          rankIn(deadlines, item, rank, tie);
          scheduled.add(item);
        } else {
          removeFrom(deadlines, item);
          scheduled.delete(item);
          assert.equal(item.slot, -1);
        }
        assert.equal(firstOf(deadlines), [...scheduled].sort(byDeadline)[0]);
        assert.equal(deadlines.heap.length, scheduled.size, "no dead entry is left behind");
      }
      const inOrder = [...scheduled].sort(byDeadline).map(({ id }) => id);
      assert.deepEqual(drain(deadlines), inOrder);
    }),
    { numRuns: 500 },
  );
});

test("what is due at the same instant comes in an order that records hold, however it came in", () => {
  const items = [
    createItem(1, "t2", "agent"),
    createItem(2, "t1", "lease"),
    createItem(3, "t2", "lease"),
    createItem(4, "t1", "request"),
    createItem(5, "t1", "agent"),
  ];
  const orders = [items, items.toReversed(), [...items.slice(2), ...items.slice(0, 2)]].map((arrivals) => {
    const deadlines = createHeap<Item>();
    for (const item of arrivals) rankIn(deadlines, item, 7, item.id === 4 ? 1 : 2);
    return drain(deadlines);
  });
  assert.deepEqual(orders[1], orders[0]);
  assert.deepEqual(orders[2], orders[0]);
  assert.equal(orders[0]?.[0], 4, "the smaller number first");
});

test("an item that takes the slot of a removed one may have to rise: it came from another branch", () => {
  const deadlines = createHeap<Item>();
  const items = [1, 10, 2, 11, 12, 3, 4, 20, 21, 22, 23, 5, 6, 7, 8].map((rank) => {
    const item = createItem(rank);
    rankIn(deadlines, item, rank, 0);
    return item;
  });
  const eleven = items[3];
  if (eleven !== undefined) removeFrom(deadlines, eleven);
  assert.deepEqual(drain(deadlines), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 20, 21, 22, 23]);
});

test("an item that is not scheduled can be unscheduled, which changes nothing", () => {
  const deadlines = createHeap<Item>();
  const [one, other] = [createItem(1), createItem(2)];
  rankIn(deadlines, one, 1, 1);
  removeFrom(deadlines, other);
  assert.deepEqual(drain(deadlines), [1]);
});

test("a hundred thousand deadlines in any order come out in order, each moved once without a second entry", () => {
  const count = 100_000;
  const deadlines = createHeap<Item>();
  const items = Array.from({ length: count }, (_, id) => createItem(id));
  for (const item of items) rankIn(deadlines, item, (item.id * 7_919) % count, item.id);
  for (const item of items) rankIn(deadlines, item, (item.id * 104_729) % count, item.id);
  const order = drain(deadlines).map((id) => (id * 104_729) % count);
  assert.equal(order.length, count);
  assert.ok(order.every((due, n) => n === 0 || due >= (order[n - 1] ?? 0)));
});

function drain(deadlines: ReturnType<typeof createHeap<Item>>): number[] {
  const ids: number[] = [];
  for (let item = firstOf(deadlines); item !== undefined; item = firstOf(deadlines)) {
    ids.push(item.id);
    removeFrom(deadlines, item);
  }
  return ids;
}

function byDeadline(a: Item, b: Item): number {
  return a.rank - b.rank || a.tie - b.tie || (a.tenantId < b.tenantId ? -1 : 1);
}
