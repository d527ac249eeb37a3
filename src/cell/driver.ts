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
  override name = "NothingBegun";
}

export abstract class Driver<Options = unknown> {
  protected readonly options: Options;
  protected readonly place: DriverPlace;

  constructor(options: Options, place: DriverPlace) {
    this.options = options;
    this.place = place;
  }

  /** What has to be there before anything can be bound: a listener, a clean slate. Called again after it has failed. */
  async start(): Promise<void> {}

  /** Sets up what the lease needs, and says where to find it. If it throws, it is torn down like one that was bound. */
  abstract bind(binding: Binding, signal: AbortSignal): Promise<string>;

  /** Resolves only when it is sure that nothing can be done under the lease any more (G6). */
  async teardown(binding: Binding, _signal: AbortSignal): Promise<void> {
    await binding.whenIdle();
  }

  /** Whether the resource is clean while no lease uses it (G7). A failure is a no. */
  abstract probe(signal: AbortSignal): Promise<ProbeResult>;

  abstract reset(signal: AbortSignal): Promise<void>;

  async stop(): Promise<void> {}

  /** How many operations are under way. */
  protected inFlight(): number {
    return [...this.place.admission.bindings.values()].reduce((sum, binding) => sum + binding.inFlight, 0);
  }

  /** The lease as users' own drivers get it. Never its token: that is the holder's. */
  protected leaseJson(event: string, binding: Binding | null): Readonly<Record<string, string | number>> {
    const { cell, resource } = this.place;
    if (binding === null) return { event, cell, resource };
    const { tenant, id, generation, fence, units, expiresAt } = binding.lease;
    const reason = binding.endedAs === null ? {} : { reason: binding.endedAs };
    return { event, cell, resource, tenant, lease: id, generation, fence, units, expires_at: expiresAt, ...reason };
  }
}
