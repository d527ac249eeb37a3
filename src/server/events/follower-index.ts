/**
 * A tenant's live followers, placed by the narrowest thing they ask for: an agent, a resource, some types, or nothing.
 * An event meets only those who may want it; ten thousand agents that each watch themselves cost the others nothing.
 */
import { NameIndex } from "../../kernel/views.ts";
import { auditType, type EventFilter, matches, type Subject } from "./event-filter.ts";

export interface Placeable {
  readonly filter: EventFilter;
}

export class FollowerIndex<F extends Placeable> {
  private readonly ofAll = new Set<F>();
  private readonly byType = new Map<string, Set<F>>();
  private readonly byAgent = new Map<string, Set<F>>();
  private readonly byResource = new NameIndex<F>();

  get isEmpty(): boolean {
    return this.ofAll.size + this.byType.size + this.byAgent.size + this.byResource.size === 0;
  }

  add(follower: F): void {
    const { types, agentId, resource } = follower.filter;
    if (agentId !== null) addTo(this.byAgent, agentId, follower);
    else if (resource !== null) this.byResource.add(resource, follower);
    else if (types !== null) for (const type of types) addTo(this.byType, type, follower);
    else this.ofAll.add(follower);
  }

  delete(follower: F): void {
    const { types, agentId, resource } = follower.filter;
    if (agentId !== null) deleteFrom(this.byAgent, agentId, follower);
    else if (resource !== null) this.byResource.delete(resource, follower);
    else if (types !== null) for (const type of types) deleteFrom(this.byType, type, follower);
    else this.ofAll.delete(follower);
  }

  /** Hands over everybody who wants the event, once each. */
  find(subject: Subject, found: (follower: F) => void): void {
    const isAudit = subject.type === auditType;
    for (const follower of this.ofAll) if (!isAudit || follower.filter.seesAudit) found(follower);
    for (const follower of this.byType.get(subject.type) ?? []) {
      if (!isAudit || follower.filter.seesAudit) found(follower);
    }
    for (const agentId of subject.agentIds) {
      for (const follower of this.byAgent.get(agentId) ?? []) if (matches(follower.filter, subject)) found(follower);
    }
    if (this.byResource.size > 0) for (const follower of this.watchersOf(subject)) found(follower);
  }

  /** Once each, though several of the event's names may be meant. */
  private watchersOf(subject: Subject): ReadonlySet<F> {
    const near = subject.names.flatMap((name) => this.byResource.overlapping(name));
    return new Set(near.filter(({ filter }) => matches(filter, subject)));
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
