/** What every driver can do. Each call is limited in time by the core, and its failure is that binding's alone. */

import type { Admission } from "./admission.ts";
import type { Binding } from "./binding.ts";

export interface ProbeResult {
  readonly clean: boolean;
  readonly detail: string;
}

/** What a driver is given of its surroundings. */
export interface DriverPlace {
  readonly cell: string;
  readonly resource: string;
  readonly admission: Admission;
  /** One line for the cell's log. */
  readonly log: (line: string) => void;
}

/** Thrown by a bind that has not even begun: there is nothing to be taken down, and no reason for a fence. */
export class NothingBegun extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "NothingBegun";
  }
}

export interface Driver {
  /** What has to be there before anything can be bound: a listener, a clean slate. Called again after it has failed. */
  start(): Promise<void>;
  /** Sets up what the lease needs, and says where to find it. If it throws, it is torn down like one that was bound. */
  bind(binding: Binding, signal: AbortSignal): Promise<string>;
  /** Resolves only when it is sure that nothing can be done under the lease any more (G6). */
  teardown(binding: Binding, signal: AbortSignal): Promise<void>;
  /** Whether the resource is clean while no lease uses it (G7). */
  probe(signal: AbortSignal): Promise<ProbeResult>;
  reset(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}
