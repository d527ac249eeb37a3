/** Those who are notified: of durable events, of tasks that became ready, of a recovery, of an empty batch. */
import { type NumberedEvent, ReadyTasks, type Waiting } from "./batch.ts";
import type { EventListener, ReadyListener } from "./engine-types.ts";

export class Listeners {
  private readonly eventListeners = new Set<EventListener>();
  private readonly recoveryListeners = new Set<() => void>();
  protected emptyListeners: (() => void)[] = [];
  protected readonly ready = new ReadyTasks();
  /** The last event that is durable. */
  lastSeq = 0;
  protected nextSeq = 1;

  /** The last event that memory includes, durable or not: for a read, which is answered when it is (S1). */
  get sequence(): number {
    return this.nextSeq - 1;
  }

  /** Calls back with the events of each batch, in order, once they are durable and after its replies have left. */
  subscribe(listener: EventListener): () => void {
    this.eventListeners.add(listener);
    return () => this.eventListeners.delete(listener);
  }

  /**
   * Calls back with the tasks that became ready, right before a batch is sent off: polls that a listener submits are
   * decided in that batch. Not re-entrant.
   */
  onReady(listener: ReadyListener): () => void {
    this.ready.listeners.add(listener);
    return () => this.ready.listeners.delete(listener);
  }

  /** Calls back once, when the batch that fills is an empty one again. */
  onceEmpty(listener: () => void): void {
    this.emptyListeners.push(listener);
  }

  /** Calls back when the service goes on after a failed commit, whose events were never announced (S2). */
  onRecovery(listener: () => void): void {
    this.recoveryListeners.add(listener);
  }

  protected announceEmpty(): void {
    if (this.emptyListeners.length === 0) return;
    const listeners = this.emptyListeners;
    this.emptyListeners = [];
    for (const listener of listeners) listener();
  }

  /** Replies first: a caller that gets WAIT can begin to watch before the grant of the same batch is announced. */
  protected deliver(waiting: readonly Waiting[], events: readonly NumberedEvent[]): void {
    const last = events.at(-1);
    if (last !== undefined) this.lastSeq = last.seq;
    for (const { encoded, outlet } of waiting) outlet.send(encoded);
    if (last !== undefined) for (const listener of this.eventListeners) listener(events);
  }

  protected announceRecovery(): void {
    for (const listener of this.recoveryListeners) listener();
  }
}
