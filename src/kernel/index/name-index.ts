/** Anything that is kept by resource names or patterns, and found by names that overlap with them. */
import type { ResourceName } from "../names/resource-name.ts";
import { search } from "./resource-search.ts";
import { createRoot, type Mark, type Node, nodeFor, setMark, tidy } from "./resource-tree.ts";

interface Members<T> extends Mark {
  readonly items: Set<T>;
}

export class NameIndex<T> {
  private readonly roots = new Map<string, Node>();
  private readonly members = new Map<Node, Members<T>>();
  size = 0;

  add(name: ResourceName, item: T): void {
    const root = this.roots.get(name.type) ?? createRoot();
    this.roots.set(name.type, root);
    const node = nodeFor(root, name);
    const here = this.members.get(node) ?? { marksNode: true, items: new Set() };
    this.members.set(node, here);
    setMark(node, here);
    if (!here.items.has(item)) this.size++;
    here.items.add(item);
  }

  delete(name: ResourceName, item: T): void {
    const root = this.roots.get(name.type);
    if (root === undefined) return;
    const node = nodeFor(root, name);
    const here = this.members.get(node);
    if (here === undefined) return this.dropIf(tidy(node), name);
    if (here.items.delete(item)) this.size--;
    if (here.items.size > 0) return;
    this.members.delete(node);
    this.dropIf(setMark(node, null), name);
  }

  private dropIf(isEmpty: boolean, { type }: ResourceName): void {
    if (isEmpty) this.roots.delete(type);
  }

  /** Each item once for each of its own names that overlaps. */
  overlapping(name: ResourceName): readonly T[] {
    const found: T[] = [];
    const root = this.roots.get(name.type);
    if (root === undefined) return found;
    search(root, name, {
      visit: (node) => {
        for (const item of this.members.get(node)?.items ?? []) found.push(item);
        return false;
      },
      below: (_node, { marks }) => (marks > 0 ? "enter" : "skip"),
    });
    return found;
  }
}
