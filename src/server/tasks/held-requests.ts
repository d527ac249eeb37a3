/**
 * Answers that are held until a request has been decided (`hold_ms`). While nothing happens a held answer costs an entry in
 * a map: no timer in the kernel, no polling. The engine announces each end once it is durable.
 */
import type { NumberedEvent } from "../../engine/batch.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Decision } from "../../engine/engine-types.ts";
import { observe } from "../../engine/history.ts";
import { type Command, unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";

export interface RequestWatch {
  /**
   * Calls back when the request was granted or has ended, or when that may have happened unseen. `isLast`: the server is
   * shutting down, so waiting is over. Returns how to stop watching.
   */
  watch(requestId: string, ended: (isLast: boolean) => void): () => void;
  /** Calls all back at once: the server is shutting down, and they answer with the present state. */
  wakeAll(): void;
  readonly size: number;
}

export function watchRequests(engine: Engine): RequestWatch {
  const watchers = new Map<string, Set<(isLast: boolean) => void>>();
  const wakeAll = (isLast: boolean): void => {
    const all = [...watchers.values()];
    watchers.clear();
    for (const waiting of all) for (const ended of waiting) ended(isLast);
  };
  // Events of a commit with unknown outcome are never announced (S2), so all ask again.
  engine.onRecovery(() => wakeAll(false));
  let unsubscribe: (() => void) | null = null;
  const follow = (events: readonly NumberedEvent[]): void => {
    if (watchers.size === 0) {
      unsubscribe?.();
      unsubscribe = null;
      return;
    }
    for (const { event } of events) {
      switch (event.type) {
        case "request.granted":
        case "request.timed_out":
        case "request.canceled":
        case "request.paused": {
          const waiting = watchers.get(event.request.id);
          if (waiting === undefined) break;
          watchers.delete(event.request.id);
          for (const ended of waiting) ended(false);
        }
      }
    }
  };
  return {
    get size() {
      return watchers.size;
    },
    wakeAll: () => wakeAll(true),
    watch(requestId, ended) {
      unsubscribe ??= engine.subscribe(follow);
      const waiting = watchers.get(requestId) ?? new Set();
      waiting.add(ended);
      watchers.set(requestId, waiting);
      return () => {
        waiting.delete(ended);
        if (waiting.size === 0 && watchers.get(requestId) === waiting) watchers.delete(requestId);
      };
    },
  };
}

/** An acquire, or the question about its request: `hold_ms` is how long its answer may be held while it waits. */
export function runHeld({ service, operation, command, input, respond }: RunRequest<Command>): (() => void) | null {
  const { hold_ms: holdMs } = input;
  const run = new HeldRun(service, operation, command, respond);
  const isHeld = typeof holdMs === "number" && holdMs > 0;
  if (isHeld) run.heldUntil = service.engine.now() + holdMs;
  service.engine.submit(command, run);
  return isHeld ? () => run.drop() : null;
}

class HeldRun extends CommandRun {
  /** By the engine's clock; 0: not at all. */
  heldUntil: Millis = 0;
  private stopWaiting: (() => void) | null = null;

  override send(decided: Decision): void {
    const { reply, now } = decided;
    if (reply.type === "waiting" && this.heldUntil > 0) return this.hold(reply.requestId);
    if (reply.type !== "granted") return super.send(decided);
    this.service.counts.note(reply);
    if (reply.observe === null) return this.answer(reply, now);
    observe(this.service.engine.store, this.command.tenant, reply.observe).then(
      (observation) => this.answer(reply, now, { observation }),
      (fault: unknown) => this.fail(fault),
    );
  }

  /** The client is gone: nothing is collected any more. */
  drop(): void {
    this.heldUntil = 0;
    this.stopWaiting?.();
  }

  /**
   * Waits for the request's end or the end of the hold, and then asks for the request: only that collects a grant (W8), so a
   * client that went away in between loses it to the next in line.
   */
  private hold(requestId: string): void {
    const { engine, requests } = this.service;
    const { tenant, actor } = this.command;
    const collect = (isLast: boolean): void => {
      this.stopWaiting?.();
      // After the end of the hold the answer leaves even if the request still waits; before it, it is held again.
      if (isLast) this.heldUntil = 0;
      engine.submit({ type: "collect_request", tenant, actor, requestId, entropy: unstamped }, this);
    };
    const timer = setTimeout(() => collect(true), Math.max(this.heldUntil - engine.now(), 0));
    const unwatch = requests.watch(requestId, collect);
    this.stopWaiting = () => {
      this.stopWaiting = null;
      clearTimeout(timer);
      unwatch();
    };
  }
}
