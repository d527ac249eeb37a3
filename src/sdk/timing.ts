/** Waiting that can be given up, and signals that end with a time limit. */
import { aborted } from "./errors.ts";

/** Calls the listener once when the signal fires, or now if it has. Returns what takes it off again. */
export function onAbort(signal: AbortSignal | null | undefined, listener: () => void): () => void {
  if (signal?.aborted === true) listener();
  else signal?.addEventListener("abort", listener, { once: true });
  return () => signal?.removeEventListener("abort", listener);
}

/** Rejects with `aborted` when the signal fires first. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(aborted(signal, false));
    const timer = setTimeout(() => {
      stop();
      resolve();
    }, ms);
    const stop = onAbort(signal, () => {
      clearTimeout(timer);
      if (signal) reject(aborted(signal, false));
    });
  });
}

/** The reason of a signal whose time ran out. */
export const timeUp: unique symbol = Symbol("the time is up");

export interface Limited {
  readonly signal: AbortSignal;
  /** Whether the time ran out, rather than that the caller gave up. */
  readonly isOver: () => boolean;
  /** Ends it before its time. */
  readonly abort: () => void;
  /** To be called in the end, whatever the end was. */
  readonly stop: () => void;
}

/** A signal that fires with the caller's own, or when the time is over. */
export function limited(ms: number, signal?: AbortSignal | null): Limited {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(timeUp), ms);
  const letGo = onAbort(signal, () => controller.abort(signal?.reason));
  return {
    signal: controller.signal,
    abort: () => controller.abort(),
    isOver: () => controller.signal.reason === timeUp,
    stop: () => {
      clearTimeout(timer);
      letGo();
    },
  };
}
