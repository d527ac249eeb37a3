/**
 * Ends of leases, heard of as they happen (G10). Whatever event passes through this client is shown to those who hold
 * the lease that it is about; and who holds leases for long has a stream of events opened for its agent. Heartbeats and
 * renewals go on beside it: a stream that cannot be had, or was cut, only makes news slower.
 */
import type { Actor } from "./actor.ts";
import { followEvents, type LeaseholdEvent } from "./events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { EventType } from "./wire.ts";

export interface Watcher {
  readonly actor: Actor;
  readonly held: readonly HeldLease[];
  noticed(event: LeaseholdEvent): void;
  /** The stream has been opened, or opened again; what happened meanwhile may not be on it. */
  opened(): void;
}

const types: readonly EventType[] = [
  "lease.closing",
  "lease.revoked",
  "lease.expired",
  "lease.released",
  "lease.renewed",
  "lease.reissued",
  "lease.transferred",
];

/** A browser opens six connections to a server; some are left for calls. */
const streamsMax = 3;

interface Stream {
  readonly controller: AbortController;
  readonly watchers: Set<Watcher>;
  isOpen: boolean;
}

export class LeaseWatch {
  private readonly byLease = new Map<string, Watcher>();
  private readonly streams = new Map<string, Stream>();

  add(watcher: Watcher): void {
    for (const { id } of watcher.held) this.byLease.set(id, watcher);
  }

  remove(watcher: Watcher): void {
    for (const { id } of watcher.held) this.byLease.delete(id);
    const { agentId } = watcher.actor;
    const stream = this.streams.get(agentId);
    if (stream === undefined || !stream.watchers.delete(watcher) || stream.watchers.size > 0) return;
    this.streams.delete(agentId);
    stream.controller.abort();
  }

  notice(event: LeaseholdEvent): void {
    const { lease } = event;
    if (lease !== undefined) this.byLease.get(lease.id)?.noticed(event);
  }

  /** One stream for all of an agent's leases. */
  listen(watcher: Watcher): void {
    const { actor } = watcher;
    const known = this.streams.get(actor.agentId);
    if (known !== undefined) {
      known.watchers.add(watcher);
      if (known.isOpen) watcher.opened();
      return;
    }
    if (this.streams.size >= streamsMax) return;
    const stream: Stream = { controller: new AbortController(), watchers: new Set([watcher]), isOpen: false };
    this.streams.set(actor.agentId, stream);
    void this.follow(actor, stream);
  }

  private async follow({ client, agentId, token }: Actor, stream: Stream): Promise<void> {
    const onOpen = (): void => {
      stream.isOpen = true;
      for (const watcher of stream.watchers) watcher.opened();
    };
    const { signal } = stream.controller;
    try {
      const events = followEvents(client, { agentId, token, types, signal, onOpen });
      for await (const event of events) void event; // Shown to `notice` on their way.
    } catch {
      // Aborted, or this key may not follow events: either way nothing more comes.
    } finally {
      stream.isOpen = false;
    }
  }
}
