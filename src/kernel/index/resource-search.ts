/**
 * Finds every node whose name overlaps with a given one. The search walks down the name's own path, meets the patterns
 * that hang there, and looks below only where the name is itself a pattern. So its cost grows with the depth of the
 * path and with what overlaps, not with what is live (C5).
 */
import { segmentsOverlap } from "../names/pattern.ts";
import { isWildSegment, type ResourceName } from "../names/resource-name.ts";
import { type Branch, literalChild, literalChildren, type Node, patternChildren } from "./resource-tree.ts";

export interface Probe {
  /** True: the search is over. */
  visit(node: Node): boolean;
  /**
   * Everything below this node overlaps. "skip" where nothing there matters; if `countable`, nothing below will be
   * met on another way, so that the counts may be taken instead of entering.
   */
  below(node: Node, branch: Branch, countable: boolean): "enter" | "skip" | "stop";
  /** Asked now and then among many: true ends the search. */
  hasEnough?(): boolean;
}

const DEEP = "**";
/** How many children are visited before the probe is asked again whether to go on. */
const childrenBetweenQuestions = 256;

/** Visits each overlapping node once. True: the probe ended it. */
export function search(root: Node, name: ResourceName, probe: Probe): boolean {
  if (name.wild) return walk(root, 0, startWalk(name, probe));
  const { segments, hashes } = name;
  let node = root;
  for (let depth = 0; ; depth++) {
    const here = depth === segments.length;
    if (here && probe.visit(node)) return true;
    const branch = node.branch;
    if (branch === null) return false;
    if (branch.patterns !== null) {
      const through = startWalk(name, probe);
      for (const pattern of branch.patterns) if (enter(pattern, depth, through)) return true;
    }
    if (here) return false;
    const child = literalChild(branch, segments[depth] ?? "", hashes[depth] ?? 0);
    if (child === undefined) return false;
    node = child;
  }
}

interface Walk {
  readonly segments: readonly string[];
  readonly hashes: readonly number[];
  readonly probe: Probe;
  /** Pairs of node and depth that were looked at; each is looked at once, so the walk is at most their product. */
  readonly seen: Map<Node, Set<number>>;
  readonly visited: Set<Node>;
  /** False once two ways may lead to the same node. */
  countable: boolean;
}

function startWalk({ segments, hashes }: ResourceName, probe: Probe): Walk {
  const deepAt = segments.indexOf(DEEP);
  const countable = deepAt === -1 || deepAt === segments.length - 1;
  return { segments, hashes, probe, seen: new Map(), visited: new Set(), countable };
}

/** The walk has matched the path down to `node` with the first `depth` segments of the name. */
function walk(node: Node, depth: number, through: Walk): boolean {
  if (alreadySeen(node, depth, through)) return false;
  const { segments } = through;
  if (node.wild && node.segment === DEEP) {
    through.countable = false;
    if (depth < segments.length && walk(node, depth + 1, through)) return true;
  }
  if (depth === segments.length) {
    if (visitOnce(node, through)) return true;
    const deep = patternChildren(node).find((pattern) => pattern.segment === DEEP);
    return deep !== undefined && walk(deep, depth, through);
  }
  const segment = segments[depth] ?? "";
  if (segment === DEEP) return walkDeep(node, depth, through);
  if (isWildSegment(segment)) {
    let visited = 0;
    for (const child of literalChildren(node)) {
      if (segmentsOverlap(segment, child.segment) && walk(child, depth + 1, through)) return true;
      if (++visited % childrenBetweenQuestions === 0 && through.probe.hasEnough?.()) return true;
    }
  } else {
    const child = node.branch === null ? undefined : literalChild(node.branch, segment, through.hashes[depth] ?? 0);
    if (child !== undefined && walk(child, depth + 1, through)) return true;
  }
  for (const child of patternChildren(node)) if (enter(child, depth, through)) return true;
  return false;
}

/** The name has `**` here: it may match nothing, or any child and stay. At its end it matches all that is below. */
function walkDeep(node: Node, depth: number, through: Walk): boolean {
  if (depth === through.segments.length - 1) return visitAll(node, through);
  if (walk(node, depth + 1, through)) return true;
  for (const child of literalChildren(node)) if (walk(child, depth, through)) return true;
  for (const child of patternChildren(node)) if (walk(child, depth, through)) return true;
  return false;
}

/** Goes into a pattern child: `**` may match nothing yet, any other must match the segment at hand. */
function enter(pattern: Node, depth: number, through: Walk): boolean {
  if (pattern.segment === DEEP) return walk(pattern, depth, through);
  const segment = through.segments[depth];
  if (segment === undefined) return false;
  if (segment === DEEP) return walk(pattern, depth, through);
  return segmentsOverlap(segment, pattern.segment) && walk(pattern, depth + 1, through);
}

function visitAll(node: Node, through: Walk): boolean {
  if (visitOnce(node, through)) return true;
  const branch = node.branch;
  if (branch === null) return false;
  const decision = through.probe.below(node, branch, through.countable);
  if (decision !== "enter") return decision === "stop";
  let visited = 0;
  for (const child of literalChildren(node)) {
    if (visitAll(child, through)) return true;
    // A folder may have a million children; the probe may have seen enough after some.
    if (++visited % childrenBetweenQuestions !== 0) continue;
    const next = through.probe.below(node, branch, through.countable);
    if (next !== "enter") return next === "stop";
  }
  for (const child of patternChildren(node)) if (visitAll(child, through)) return true;
  return false;
}

function visitOnce(node: Node, { visited, probe }: Walk): boolean {
  if (visited.has(node)) return false;
  visited.add(node);
  return probe.visit(node);
}

function alreadySeen(node: Node, depth: number, { seen }: Walk): boolean {
  const depths = seen.get(node);
  if (depths === undefined) seen.set(node, new Set([depth]));
  else if (depths.has(depth)) return true;
  else depths.add(depth);
  return false;
}
