/**
 * A tenant's live followers, placed by the narrowest thing they ask for: an agent, a resource, some types, or nothing.
 * An event meets only those who may want it; ten thousand agents that each watch themselves cost the others nothing.
 */
import { createRoot, type Mark, type Node, nodeFor, search, setMark } from "../../kernel/views.ts";
import { type EventFilter, matches, type Subject } from "./event-filter.ts";

export interface Placeable {
  readonly filter: EventFilter;
}

/** The kernel's tree of names, with followers where it has declared resources. */
interface Watched<F> extends Mark {
  readonly followers: Set<F>;
}

export class FollowerIndex<F extends Placeable> {
  private readonly ofAll = new Set<F>();
  private readonly byType = new Map<string, Set<F>>();
  private readonly byAgent = new Map<string, Set<F>>();
  private readonly roots = new Map<string, Node>();
  private readonly watched = new Map<Node, Watched<F>>();
  private byResource = 0;

  get isEmpty(): boolean {
    return this.ofAll.size + this.byType.size + this.byAgent.size + this.byResource === 0;
  }

  add(follower: F): void {
    const { types, agentId, resource } = follower.filter;
    if (agentId !== null) addTo(this.byAgent, agentId, follower);
    else if (resource !== null) this.watch(follower);
    else if (types !== null) for (const type of types) addTo(this.byType, type, follower);
    else this.ofAll.add(follower);
  }

  delete(follower: F): void {
    const { types, agentId, resource } = follower.filter;
    if (agentId !== null) deleteFrom(this.byAgent, agentId, follower);
    else if (resource !== null) this.unwatch(follower);
    else if (types !== null) for (const type of types) deleteFrom(this.byType, type, follower);
    else this.ofAll.delete(follower);
  }

  /** Hands over everybody who wants the event, once each. */
  find(subject: Subject, found: (follower: F) => void): void {
    for (const follower of this.ofAll) found(follower);
    for (const follower of this.byType.get(subject.type) ?? []) found(follower);
    for (const agentId of subject.agentIds) {
      for (const follower of this.byAgent.get(agentId) ?? []) if (matches(follower.filter, subject)) found(follower);
    }
    if (this.byResource > 0) for (const follower of this.watchersOf(subject)) found(follower);
  }

  private watch(follower: F): void {
    const { resource } = follower.filter;
    if (resource === null) return;
    let root = this.roots.get(resource.type);
    if (root === undefined) {
      root = createRoot();
      this.roots.set(resource.type, root);
    }
    const node = nodeFor(root, resource);
    let mark = this.watched.get(node);
    if (mark === undefined) {
      mark = { marksNode: true, followers: new Set() };
      this.watched.set(node, mark);
      setMark(node, mark);
    }
    if (!mark.followers.has(follower)) this.byResource++;
    mark.followers.add(follower);
  }

  private unwatch(follower: F): void {
    const { resource } = follower.filter;
    const root = resource === null ? undefined : this.roots.get(resource.type);
    if (resource === null || root === undefined) return;
    const node = nodeFor(root, resource);
    const mark = this.watched.get(node);
    if (mark?.followers.delete(follower)) this.byResource--;
    if (mark !== undefined && mark.followers.size > 0) return;
    this.watched.delete(node);
    setMark(node, null);
  }

  private watchersOf(subject: Subject): ReadonlySet<F> {
    const found = new Set<F>();
    for (const name of subject.names) {
      const root = this.roots.get(name.type);
      if (root === undefined) continue;
      search(root, name, {
        visit: (node) => {
          for (const follower of this.watched.get(node)?.followers ?? []) {
            if (matches(follower.filter, subject)) found.add(follower);
          }
          return false;
        },
        below: (_node, { marks }) => (marks > 0 ? "enter" : "skip"),
      });
    }
    return found;
  }
}

function addTo<K, F>(index: Map<K, Set<F>>, key: K, follower: F): void {
  const there = index.get(key);
  if (there === undefined) index.set(key, new Set([follower]));
  else there.add(follower);
}

function deleteFrom<K, F>(index: Map<K, Set<F>>, key: K, follower: F): void {
  const there = index.get(key);
  there?.delete(follower);
  if (there?.size === 0) index.delete(key);
}
