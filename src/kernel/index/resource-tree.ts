/**
 * Where every name stands that is leased, waited for or declared: a tree of path segments. What stands at a node is
 * kept in lists by strength, so that those who get along are never looked at; what stands below is counted.
 * `search` finds what overlaps with a name (see resource-search.ts).
 */
import { EXCLUSIVE, PROVIDING, SHARED, type Strength } from "../contract/predicates.ts";
import { isWildSegment, type ResourceName } from "../names/resource-name.ts";
import { SegmentTable } from "./hash-tables.ts";
import { type Heads, insertAfter, isBefore, lastNotAfter, type Placed } from "./placed-lists.ts";

/** A node is itself the heads of what is held there: most nodes hold one lease and nothing else. */
export interface Node extends Heads {
  readonly parent: Node | null;
  readonly segment: string;
  readonly hash: number;
  readonly wild: boolean;
  waiting: Heads | null;
  branch: Branch | null;
  /** The declared resource of this name, if there is one. */
  mark: Mark | null;
}

/** What the index needs to know of a declared resource. */
export interface Mark {
  readonly marksNode: true;
}

/** What is strictly below a node. Leaves, which are most nodes, have none. */
export interface Branch {
  /** Literal children. Long chains of single children are common, and a map for each would weigh more than the rest. */
  only: Node | null;
  literals: SegmentTable<Node> | null;
  patterns: Node[] | null;
  heldShared: number;
  heldProviding: number;
  heldExclusive: number;
  waitingShared: number;
  waitingProviding: number;
  waitingExclusive: number;
  /** Children with something that waits at or below them; null: none. */
  waitingChildren: Set<Node> | null;
  marks: number;
  /** A time, in trees whose names have one: that of the newest name below (see `touch`). */
  newest: number;
}

export type Side = "held" | "waiting";

export function createRoot(): Node {
  return createNode(null, "", 0, false);
}

function createNode(parent: Node | null, segment: string, hash: number, wild: boolean): Node {
  return {
    parent,
    segment,
    hash,
    wild,
    shared: null,
    providing: null,
    exclusive: null,
    waiting: null,
    branch: null,
    mark: null,
  };
}

function createBranch(): Branch {
  return {
    only: null,
    literals: null,
    patterns: null,
    heldShared: 0,
    heldProviding: 0,
    heldExclusive: 0,
    waitingShared: 0,
    waitingProviding: 0,
    waitingExclusive: 0,
    waitingChildren: null,
    marks: 0,
    newest: 0,
  };
}

/** The node of a name, made if it is not there yet. The caller then puts something on it, or calls `tidy`. */
export function nodeFor(root: Node, { segments, hashes, wild }: ResourceName): Node {
  let node = root;
  for (let depth = 0; depth < segments.length; depth++) {
    const segment = segments[depth] ?? "";
    node = childFor(node, segment, hashes[depth] ?? 0, wild && isWildSegment(segment));
  }
  return node;
}

/**
 * The nodes of many names, made if they are not there yet. All go down a level before any goes further: what is loaded
 * for one does not wait for what is loaded for another, and of a million names hardly two are in the same cache line.
 */
export function nodesFor(roots: readonly Node[], names: readonly ResourceName[]): readonly Node[] {
  const nodes = [...roots];
  for (let depth = 0, isDone = false; !isDone; depth++) {
    isDone = true;
    for (let at = 0; at < names.length; at++) {
      const name = names[at];
      const node = nodes[at];
      const segment = name?.segments[depth];
      if (name === undefined || node === undefined || segment === undefined) continue;
      nodes[at] = childFor(node, segment, name.hashes[depth] ?? 0, name.wild && isWildSegment(segment));
      isDone = false;
    }
  }
  return nodes;
}

export function findNode(root: Node, { segments, hashes, wild }: ResourceName): Node | undefined {
  let node: Node | undefined = root;
  for (let depth = 0; depth < segments.length; depth++) {
    const segment = segments[depth] ?? "";
    const branch: Branch | null = node.branch;
    if (branch === null) return undefined;
    const hash = hashes[depth] ?? 0;
    node = wild && isWildSegment(segment) ? patternChild(branch, segment) : literalChild(branch, segment, hash);
    if (node === undefined) return undefined;
  }
  return node;
}

export function literalChild({ only, literals }: Branch, segment: string, hash: number): Node | undefined {
  if (literals !== null) return literals.get(segment, hash);
  return only !== null && only.hash === hash && only.segment === segment ? only : undefined;
}

function patternChild({ patterns }: Branch, segment: string): Node | undefined {
  return patterns?.find((pattern) => pattern.segment === segment);
}

const noNodes: readonly Node[] = [];

export function literalChildren(node: Node): Iterable<Node> {
  const { branch } = node;
  if (branch === null) return noNodes;
  if (branch.literals !== null) return branch.literals.values();
  return branch.only === null ? noNodes : [branch.only];
}

export function patternChildren(node: Node): readonly Node[] {
  return node.branch?.patterns ?? noNodes;
}

function childFor(node: Node, segment: string, hash: number, wild: boolean): Node {
  node.branch ??= createBranch();
  const branch = node.branch;
  const known = wild ? patternChild(branch, segment) : literalChild(branch, segment, hash);
  if (known !== undefined) return known;
  const child = createNode(node, segment, hash, wild);
  if (wild) {
    branch.patterns ??= [];
    branch.patterns.push(child);
  } else if (branch.literals !== null) branch.literals.add(child);
  else if (branch.only === null) branch.only = child;
  else {
    branch.literals = new SegmentTable();
    branch.literals.add(branch.only);
    branch.literals.add(child);
    branch.only = null;
  }
  return child;
}

/** Puts what was just granted last, or what is restored, which may be out of order until `putInOrder` is called. */
export function append(node: Node, item: Placed): void {
  const head = headOf(node, item.strength);
  item.node = node;
  if (head === null) {
    item.previous = item;
    item.next = item;
    setHead(node, item.strength, item);
  } else insertAfter(head.previous ?? head, item);
  countAbove("held", node, item.strength, 1);
}

/** Sorts what is held at the node. Restoring could insert each in its place, but backwards that is quadratic. */
export function putInOrder(node: Node): void {
  for (const strength of [SHARED, PROVIDING, EXCLUSIVE] as const) {
    const head = headOf(node, strength);
    if (head === null) continue;
    const items = [head];
    for (let item = head.next; item !== null && item !== head; item = item.next) items.push(item);
    items.sort((a, b) => (isBefore(a, b) ? -1 : 1));
    let last = items.at(-1) ?? head;
    for (const item of items) {
      last.next = item;
      item.previous = last;
      last = item;
    }
    setHead(node, strength, items[0] ?? head);
  }
}

export function put(side: Side, node: Node, item: Placed): void {
  if (side === "waiting") node.waiting ??= { shared: null, providing: null, exclusive: null };
  const heads = side === "held" ? node : node.waiting;
  if (heads === null) return;
  item.node = node;
  const head = headOf(heads, item.strength);
  if (head === null) {
    item.previous = item;
    item.next = item;
    setHead(heads, item.strength, item);
  } else {
    const after = lastNotAfter(head, item);
    insertAfter(after ?? head.previous ?? head, item);
    if (after === null) setHead(heads, item.strength, item);
  }
  countAbove(side, node, item.strength, 1);
  if (side === "waiting") noteWaiting(node);
}

/** Those who wait are few among those who hold, and are found without looking at the others. */
function noteWaiting(node: Node): void {
  for (let child = node, above = node.parent; above !== null; child = above, above = above.parent) {
    if (above.branch === null) continue;
    above.branch.waitingChildren ??= new Set();
    above.branch.waitingChildren.add(child);
  }
}

function noteLeft(node: Node): void {
  for (let child = node, above = node.parent; above !== null; child = above, above = above.parent) {
    const waits = child.waiting !== null && !isEmpty(child.waiting);
    if (waits || (child.branch?.waitingChildren ?? null) !== null) return;
    above.branch?.waitingChildren?.delete(child);
    if (above.branch?.waitingChildren?.size === 0) above.branch.waitingChildren = null;
  }
}

export function eachWaitingBelow({ waitingChildren }: Branch, visit: (node: Node) => void): void {
  for (const child of waitingChildren ?? noNodes) {
    visit(child);
    if (child.branch !== null) eachWaitingBelow(child.branch, visit);
  }
}

/** True: the tree is empty now. */
export function take(side: Side, item: Placed): boolean {
  const node = item.node;
  if (node === null) return false;
  unlink(side, node, item);
  return tidy(node);
}

/** To another list of its node, or to another place in its list. */
export function move(side: Side, item: Placed, strength: Strength, order: number): void {
  const node = item.node;
  if (node === null) return;
  unlink(side, node, item);
  item.strength = strength;
  item.order = order;
  put(side, node, item);
}

function unlink(side: Side, node: Node, item: Placed): void {
  const heads = side === "held" ? node : node.waiting;
  if (heads === null) return;
  if (item.next === item) setHead(heads, item.strength, null);
  else {
    if (item.previous !== null) item.previous.next = item.next;
    if (item.next !== null) item.next.previous = item.previous;
    if (headOf(heads, item.strength) === item) setHead(heads, item.strength, item.next);
  }
  item.node = null;
  item.previous = null;
  item.next = null;
  countAbove(side, node, item.strength, -1);
  if (side === "waiting") noteLeft(node);
}

function countAbove(side: Side, node: Node, strength: Strength, by: 1 | -1): void {
  for (let above = node.parent; above !== null; above = above.parent) {
    const { branch } = above;
    if (branch === null) continue;
    if (side === "held") {
      if (strength === SHARED) branch.heldShared += by;
      else if (strength === PROVIDING) branch.heldProviding += by;
      else branch.heldExclusive += by;
    } else if (strength === SHARED) branch.waitingShared += by;
    else if (strength === PROVIDING) branch.waitingProviding += by;
    else branch.waitingExclusive += by;
  }
}

/** How many leases stand below with this strength or a greater one. */
export function heldFrom(branch: Branch, weakest: Strength): number {
  const { heldExclusive, heldProviding, heldShared } = branch;
  if (weakest === EXCLUSIVE) return heldExclusive;
  return heldExclusive + heldProviding + (weakest === SHARED ? heldShared : 0);
}

/** The same for what waits. */
export function waitingFrom(branch: Branch, weakest: Strength): number {
  const { waitingExclusive, waitingProviding, waitingShared } = branch;
  if (weakest === EXCLUSIVE) return waitingExclusive;
  return waitingExclusive + waitingProviding + (weakest === SHARED ? waitingShared : 0);
}

/** True: the tree is empty now. */
export function setMark(node: Node, mark: Mark | null): boolean {
  const by = (mark === null ? 0 : 1) - (node.mark === null ? 0 : 1);
  node.mark = mark;
  for (let above = node.parent; above !== null && by !== 0; above = above.parent) {
    if (above.branch !== null) above.branch.marks += by;
  }
  return mark === null && tidy(node);
}

/** What is newest below each node above this one. Times only grow, and what is newest goes last. */
export function touch(node: Node, at: number): void {
  for (let above = node.parent; above !== null; above = above.parent) {
    if (above.branch !== null && above.branch.newest < at) above.branch.newest = at;
  }
}

/** Removes a node that nothing stands on or below, and then its parent if that has become one. True: nothing is left. */
export function tidy(node: Node): boolean {
  const { parent, branch } = node;
  if (branch !== null || node.mark !== null) return false;
  if (!isEmpty(node) || (node.waiting !== null && !isEmpty(node.waiting))) return false;
  if (parent === null) return true;
  const siblings = parent.branch;
  if (siblings === null) return false;
  if (node.wild) {
    // In place: of many siblings each removal would copy all that are left.
    siblings.patterns?.splice(siblings.patterns.indexOf(node), 1);
    if (siblings.patterns?.length === 0) siblings.patterns = null;
  } else if (siblings.only === node) siblings.only = null;
  else {
    siblings.literals?.delete(node);
    if (siblings.literals?.size === 0) siblings.literals = null;
  }
  if (siblings.only === null && siblings.literals === null && siblings.patterns === null) {
    parent.branch = null;
    return tidy(parent);
  }
  return false;
}

/** First of those that stand at the node with this strength. */
export function headOf(heads: Heads, strength: Strength): Placed | null {
  return strength === SHARED ? heads.shared : strength === PROVIDING ? heads.providing : heads.exclusive;
}

export function setHead(heads: Heads, strength: Strength, head: Placed | null): void {
  if (strength === SHARED) heads.shared = head;
  else if (strength === PROVIDING) heads.providing = head;
  else heads.exclusive = head;
}

/** Nothing stands there. */
export function isEmpty(heads: Heads): boolean {
  return heads.exclusive === null && heads.shared === null && heads.providing === null;
}
