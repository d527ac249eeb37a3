import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EXCLUSIVE, PROVIDING, SHARED, type Strength } from "../contract/predicates.ts";
import { namesOverlap } from "../names/pattern.ts";
import { parseResourceName, type ResourceName, textHash } from "../names/resource-name.ts";
import { createWorld } from "../testing/test-world.ts";
import type { Placed } from "./placed-lists.ts";
import { search } from "./resource-search.ts";
import {
  createRoot,
  findNode,
  headOf,
  heldFrom,
  literalChildren,
  move,
  type Node,
  nodeFor,
  patternChildren,
  put,
  type Side,
  setMark,
  take,
  waitingFrom,
} from "./resource-tree.ts";

interface Item extends Placed {
  readonly name: ResourceName;
  readonly side: Side;
}

const strengths: readonly Strength[] = [SHARED, PROVIDING, EXCLUSIVE];

function nameOf(text: string): ResourceName {
  const name = parseResourceName(text);
  if ("problem" in name) throw new Error(`${text}: ${name.problem}`);
  return name;
}

function enter(root: Node, text: string, strength: Strength = EXCLUSIVE, side: Side = "held", order = 0): Item {
  const name = nameOf(text);
  const item: Item = { name, side, node: null, strength, order, suborder: 0, previous: null, next: null };
  put(side, nodeFor(root, name), item);
  return item;
}

/** Everything that stands at a node, in the order of its lists. */
function itemsAt(node: Node): Item[] {
  const items: Item[] = [];
  for (const heads of [node, node.waiting]) {
    if (heads === null) continue;
    for (const strength of strengths) {
      const head = headOf(heads, strength);
      for (let item = head; item !== null; item = item.next === head ? null : item.next) items.push(item as Item);
    }
  }
  return items;
}

function overlapping(root: Node, name: ResourceName): { readonly items: Item[]; readonly visits: number } {
  const items: Item[] = [];
  let visits = 0;
  search(root, name, {
    visit(node) {
      visits++;
      items.push(...itemsAt(node));
      return false;
    },
    below: () => "enter",
  });
  return { items, visits };
}

/** Counted instead of entered wherever the search allows it. */
function countOverlapping(root: Node, name: ResourceName, weakest: Strength): number {
  let count = 0;
  search(root, name, {
    visit(node) {
      count += itemsAt(node).filter(({ strength }) => strength >= weakest).length;
      return false;
    },
    below(_node, branch, countable) {
      if (!countable) return "enter";
      count += heldFrom(branch, weakest) + waitingFrom(branch, weakest);
      return "skip";
    },
  });
  return count;
}

function below(node: Node): Node[] {
  return [...literalChildren(node), ...patternChildren(node)].flatMap((child) => [child, ...below(child)]);
}

const anySegment = fc.constantFrom("a", "b", "ab", "ba", "*", "?", "a*", "*b", "**");
const anyName = fc.array(anySegment, { maxLength: 4 }).map((segments) => nameOf(`FILE:/${segments.join("/")}`).text);
const anyStep = fc.record({
  text: anyName,
  strength: fc.constantFrom(...strengths),
  side: fc.constantFrom<Side>("held", "waiting"),
  order: fc.nat(5),
  act: fc.constantFrom("put", "put", "take", "move", "mark"),
  nth: fc.nat(50),
});

test("C4, C5: the index finds exactly what overlaps, each once, whatever came, moved and went", () => {
  fc.assert(
    fc.property(
      fc.array(anyStep, { maxLength: 40 }),
      fc.array(anyName, { minLength: 1, maxLength: 6 }),
      (steps, asked) => {
        const root = createRoot();
        const live: Item[] = [];
        const marked = new Set<Node>();
        for (const { text, strength, side, order, act, nth } of steps) {
          const item = live[nth % Math.max(1, live.length)];
          if (act === "put" || item === undefined) live.push(enter(root, text, strength, side, order));
          else if (act === "take") {
            take(item.side, item);
            live.splice(live.indexOf(item), 1);
          } else if (act === "move") move(item.side, item, strength, order);
          else {
            const node = nodeFor(root, nameOf(text));
            setMark(node, marked.has(node) ? null : { marksNode: true });
            if (!marked.delete(node)) marked.add(node);
          }
        }
        for (const text of asked) {
          const name = nameOf(text);
          const { items, visits } = overlapping(root, name);
          const expected = live.filter((item) => namesOverlap(item.name, name));
          assert.equal(items.length, expected.length, text);
          assert.deepEqual(new Set(items), new Set(expected), text);
          assert.ok(visits <= below(root).length + 1, "each node once");
          for (const weakest of strengths) {
            const count = expected.filter(({ strength }) => strength >= weakest).length;
            assert.equal(countOverlapping(root, name, weakest), count, `${text} from ${weakest}`);
          }
        }
        for (const node of [root, ...below(root)]) checkNode(node, marked);
      },
    ),
    { numRuns: 1_500 },
  );
});

/** The counts of a branch are those of what stands below; lists are in order; no node is there for nothing. */
function checkNode(node: Node, marked: ReadonlySet<Node>): void {
  const { branch } = node;
  const under = below(node);
  if (branch !== null) {
    for (const weakest of strengths) {
      const count = (side: Side) =>
        under.flatMap(itemsAt).filter((item) => item.side === side && item.strength >= weakest).length;
      assert.equal(heldFrom(branch, weakest), count("held"));
      assert.equal(waitingFrom(branch, weakest), count("waiting"));
    }
    assert.equal(branch.marks, under.filter((child) => marked.has(child)).length);
    assert.ok(under.length > 0, "a branch has children");
  } else if (node.parent !== null) {
    assert.ok(itemsAt(node).length > 0 || node.mark !== null, "a leaf has something on it");
  }
  for (const heads of [node, node.waiting]) {
    if (heads === null) continue;
    for (const strength of strengths) {
      const orders: number[] = [];
      const head = headOf(heads, strength);
      for (let item = head; item !== null; item = item.next === head ? null : item.next) orders.push(item.order);
      assert.deepEqual(
        orders,
        [...orders].sort((a, b) => a - b),
      );
    }
  }
}

test("C5: when everything has gone, nothing of the index is left", () => {
  const root = createRoot();
  const texts = ["FILE:/a/b/c", "FILE:/a/b", "FILE:/a/*/c", "FILE:/**", "FILE:/x", "FILE:/", "FILE:/a/b/c"];
  const items = texts.map((text, n) => enter(root, text, strengths[n % 3], n % 2 === 0 ? "held" : "waiting"));
  const mark = nodeFor(root, nameOf("FILE:/a/b/marked"));
  setMark(mark, { marksNode: true });
  for (const item of items) take(item.side, item);
  assert.equal(findNode(root, nameOf("FILE:/a/b/marked")), mark, "what is declared stays");
  setMark(mark, null);
  assert.equal(root.branch, null);
});

test("C5: a node that something else stands on, waits at or hangs below is not tidied away", () => {
  for (const [stays, side] of [
    ["FILE:/a/b", "held"],
    ["FILE:/a/b", "waiting"],
    ["FILE:/a/b/c", "held"],
    ["FILE:/a/b/*", "waiting"],
  ] as const) {
    const root = createRoot();
    const item = enter(root, "FILE:/a/b");
    const other = enter(root, stays, SHARED, side);
    take("held", item);
    assert.deepEqual(overlapping(root, nameOf(stays)).items, [other]);
  }
});

test("C5: the cost of a name grows with its depth, not with what is live beside it", () => {
  const root = createRoot();
  for (let n = 0; n < 50_000; n++) enter(root, `FILE:/d${n % 100}/e${n % 1_000}/f${n}`);
  assert.equal(overlapping(root, nameOf("FILE:/d7/e7/f7")).visits, 1);
  assert.equal(overlapping(root, nameOf("FILE:/d7/e7/none")).visits, 0);
  for (const pattern of ["FILE:/**", "FILE:/d7/**", "FILE:/d8/**", "FILE:/d7/*/f7", "FILE:/d7/e7/*"])
    enter(root, pattern);
  const { items, visits } = overlapping(root, nameOf("FILE:/d7/e7/f7"));
  assert.deepEqual([items.length, visits], [5, 5]);
});

test("C5: a broad pattern that asks whether anything is there is answered by the counts above it", () => {
  const root = createRoot();
  for (let n = 0; n < 50_000; n++) enter(root, `FILE:/d${n % 100}/e${n % 1_000}/f${n}`);
  let looked = 0;
  const probe = {
    visit() {
      looked++;
      return false;
    },
    below: (_node: Node, branch: Parameters<typeof heldFrom>[0]) => {
      looked++;
      return heldFrom(branch, EXCLUSIVE) > 0 ? ("stop" as const) : ("skip" as const);
    },
  };
  assert.equal(search(root, nameOf("FILE:/**"), probe), true);
  assert.equal(search(root, nameOf("FILE:/d7/**"), probe), true);
  assert.equal(looked, 4);
});

test("C4: many stars cost no more than the product of the lengths", () => {
  const root = createRoot();
  const stars = Array.from({ length: 30 }, () => "**/a").join("/");
  enter(root, `FILE:/${stars}/b`);
  enter(root, `FILE:/${Array.from({ length: 60 }, () => "a").join("/")}`);
  const { visits } = overlapping(root, nameOf(`FILE:/${stars}`));
  assert.ok(visits <= 200, `${visits}`);
  assert.equal(overlapping(root, nameOf(`FILE:/${stars}/c`)).items.length, 0);
});

test("C3: names whose hashes collide are still different names", () => {
  const [one, other, third] = ["costarring", "liquid", "elsewhere"];
  assert.equal(textHash(one), textHash(other), "these two collide");
  const world = createWorld("a", "b");
  const lease = world.grant("a", `MUTATES FILE:/${one}/x`);
  world.grant("b", `MUTATES FILE:/${other}/x`);
  world.grant("b", `MUTATES FILE:/${third}/x`);
  world.dies("b", `MUTATES FILE:/${one}/x`);
  world.release(lease.id);
  world.grant("b", `MUTATES FILE:/${one}/x`);
  assert.equal(world.dies("a", `MUTATES FILE:/${other}/x`).blockersTotal, 1);
  world.register(one);
  assert.equal(world.register(other).epoch, 1);
  assert.equal(world.register(one).epoch, 2);
});

test("leases at one name stand by fence, and a re-issued one moves behind", () => {
  const root = createRoot();
  const items = [1, 2, 3].map((order) => enter(root, "FILE:/a", EXCLUSIVE, "held", order));
  const [first] = items;
  if (first !== undefined) move("held", first, EXCLUSIVE, 4);
  assert.deepEqual(
    itemsAt(nodeFor(root, nameOf("FILE:/a"))).map(({ order }) => order),
    [2, 3, 4],
  );
});
