/**
 * Where every name stands that is leased, waited for or declared: a tree of path segments. What stands at a node is
 * kept in lists by strength, so that those who get along are never looked at; what stands below is counted.
 * `search` finds what overlaps with a name (see resource-search.ts).
 */
import { EXCLUSIVE, PROVIDING, SHARED, type Strength } from "./predicates.ts";
import { isWildSegment, type ResourceName } from "./resource-name.ts";

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

/** A node is itself the heads of what is held there: most nodes hold one lease and nothing else. */
export interface Node extends Heads {
  readonly parent: Node | null;
  readonly segment: string;
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
  literals: Map<string, Node> | null;
  patterns: Node[] | null;
  readonly held: Tally;
  readonly waiting: Tally;
  marks: number;
}

export interface Tally {
  shared: number;
  providing: number;
  exclusive: number;
}

export type Side = "held" | "waiting";

export function createRoot(): Node {
  return createNode(null, "", false);
}

function createNode(parent: Node | null, segment: string, wild: boolean): Node {
  return {
    parent,
    segment,
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
    literals: null,
    patterns: null,
    held: { shared: 0, providing: 0, exclusive: 0 },
    waiting: { shared: 0, providing: 0, exclusive: 0 },
    marks: 0,
  };
}

/** The node of a name, made if it is not there yet. Whoever asks then puts something on it, or calls `tidy`. */
export function nodeFor(root: Node, name: ResourceName): Node {
  let node = root;
  for (const segment of name.segments) node = childFor(node, segment, name.wild && isWildSegment(segment));
  return node;
}

export function findNode(root: Node, name: ResourceName): Node | undefined {
  let node: Node | undefined = root;
  for (const segment of name.segments) {
    const branch: Branch | null = node.branch;
    if (branch === null) return undefined;
    node =
      name.wild && isWildSegment(segment)
        ? branch.patterns?.find((pattern) => pattern.segment === segment)
        : branch.literals?.get(segment);
    if (node === undefined) return undefined;
  }
  return node;
}

function childFor(node: Node, segment: string, wild: boolean): Node {
  node.branch ??= createBranch();
  const branch = node.branch;
  if (wild) {
    branch.patterns ??= [];
    const known = branch.patterns.find((pattern) => pattern.segment === segment);
    if (known !== undefined) return known;
    const child = createNode(node, segment, true);
    branch.patterns.push(child);
    return child;
  }
  branch.literals ??= new Map();
  const known = branch.literals.get(segment);
  if (known !== undefined) return known;
  const child = createNode(node, segment, false);
  branch.literals.set(segment, child);
  return child;
}

/** First of those that stand at the node with this strength. */
export function headOf(heads: Heads, strength: Strength): Placed | null {
  return strength === SHARED ? heads.shared : strength === PROVIDING ? heads.providing : heads.exclusive;
}

function setHead(heads: Heads, strength: Strength, head: Placed | null): void {
  if (strength === SHARED) heads.shared = head;
  else if (strength === PROVIDING) heads.providing = head;
  else heads.exclusive = head;
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
}

/** From the end backwards, because newcomers nearly always belong there; null: before the head. */
function lastNotAfter(head: Placed, item: Placed): Placed | null {
  let after = head.previous ?? head;
  while (isBefore(item, after)) {
    if (after === head) return null;
    after = after.previous ?? head;
  }
  return after;
}

function insertAfter(after: Placed, item: Placed): void {
  const next = after.next ?? after;
  item.previous = after;
  item.next = next;
  after.next = item;
  next.previous = item;
}

export function isBefore(a: Place, b: Place): boolean {
  return a.order !== b.order ? a.order < b.order : a.suborder < b.suborder;
}

export function take(side: Side, item: Placed): void {
  const node = item.node;
  if (node === null) return;
  unlink(side, node, item);
  tidy(node);
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
}

function countAbove(side: Side, node: Node, strength: Strength, by: 1 | -1): void {
  for (let above = node.parent; above !== null; above = above.parent) {
    if (above.branch === null) continue;
    const tally = side === "held" ? above.branch.held : above.branch.waiting;
    if (strength === SHARED) tally.shared += by;
    else if (strength === PROVIDING) tally.providing += by;
    else tally.exclusive += by;
  }
}

/** How many stand below with this strength or a greater one. */
export function tallyFrom(tally: Tally, weakest: Strength): number {
  if (weakest === EXCLUSIVE) return tally.exclusive;
  if (weakest === PROVIDING) return tally.exclusive + tally.providing;
  return tally.exclusive + tally.providing + tally.shared;
}

export function setMark(node: Node, mark: Mark | null): void {
  const by = (mark === null ? 0 : 1) - (node.mark === null ? 0 : 1);
  node.mark = mark;
  for (let above = node.parent; above !== null && by !== 0; above = above.parent) {
    if (above.branch !== null) above.branch.marks += by;
  }
  if (mark === null) tidy(node);
}

function isEmpty(heads: Heads): boolean {
  return heads.exclusive === null && heads.shared === null && heads.providing === null;
}

/** Removes a node that nothing stands on or below, and then its parent if that has become one. */
export function tidy(node: Node): void {
  const { parent, branch } = node;
  if (parent === null || branch !== null || node.mark !== null) return;
  if (!isEmpty(node) || (node.waiting !== null && !isEmpty(node.waiting))) return;
  const siblings = parent.branch;
  if (siblings === null) return;
  if (node.wild) {
    siblings.patterns = siblings.patterns?.filter((pattern) => pattern !== node) ?? null;
    if (siblings.patterns?.length === 0) siblings.patterns = null;
  } else {
    siblings.literals?.delete(node.segment);
    if (siblings.literals?.size === 0) siblings.literals = null;
  }
  if (siblings.literals === null && siblings.patterns === null) {
    parent.branch = null;
    tidy(parent);
  }
}
