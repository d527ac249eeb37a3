/**
 * Frames on their way to the engine. While its batch is full they wait here, and their connections are not read from:
 * a burst of thousands of commands is decided in several turns, so that the first are being stored, and others have
 * their turn, while the last still wait.
 */
import type { Engine } from "../../engine/engine.ts";

/** Where frames come from. */
export interface Source {
  pause(): void;
  resume(): void;
}

interface QueuedFrame {
  readonly source: Source;
  readonly run: () => void;
}

export class FrameQueue {
  private readonly engine: Engine;
  private held: QueuedFrame[] = [];

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Runs now, or in its turn when the batch is empty again. */
  take(source: Source, run: () => void): void {
    if (this.held.length === 0 && !this.engine.isFull) return run();
    source.pause();
    this.held.push({ source, run });
    if (this.held.length === 1) this.drainLater();
  }

  /** In a turn of its own: the answers of the batch before leave first. */
  private drainLater(): void {
    this.engine.onceEmpty(() => setImmediate(() => this.drain()));
  }

  private drain(): void {
    let count = 0;
    for (const { source, run } of this.held) {
      if (this.engine.isFull) break;
      count++;
      run();
      source.resume();
    }
    this.held.splice(0, count);
    if (this.held.length > 0) this.drainLater();
  }
}
