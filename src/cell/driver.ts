/** What every driver can do. Each call is limited in time by the core, and its failure is that binding's alone. */
import { readsOnly } from "../protocol/resources/reading.ts";
import type { ReloadingTls } from "../trust/server-tls.ts";
import type { Admission } from "./admission.ts";
import type { Binding, CellLease } from "./binding.ts";

export interface ProbeResult {
  readonly clean: boolean;
  readonly detail: string;
}

/**
 * What an operation does to the resource. `opaque`: the cell cannot see it (raw bytes, a program, something that is
 * used directly), so that it counts as a write unless the configuration names it in `reads` (G4).
 */
export type Effect = "reads" | "writes" | "opaque";
export type Operations = Readonly<Record<string, Effect>>;

/** What a driver is given of its surroundings. */
export interface DriverPlace {
  readonly cell: string;
  readonly resource: string;
  readonly admission: Admission;
  /** The operations that a lease which only reads may do. */
  readonly reads: ReadonlySet<string>;
  /** Of the cell's listeners; null: they speak plainly. */
  readonly tls: ReloadingTls | null;
  /** One line for the cell's log. */
  readonly log: (line: string) => void;
}

/** Thrown by a bind that has not even begun: there is nothing to be taken down, and no reason for a fence. */
export class NothingBegun extends Error {
  override name = "NothingBegun";
}

/** Every driver also has a static `operations`: all that tokens can be narrowed to here, and which of them read. */
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

  /** The lease was issued again, transferred or downgraded; what that cuts is cut by now. `before` is what it was. */
  renewed(_binding: Binding, _before: CellLease): void {}

  /** Whether a lease that only reads from now on can keep what was set up; else the cell ends it. */
  canWeaken(): boolean {
    return true;
  }

  /** Resolves only when it is sure that nothing can be done under the lease any more (G6). */
  async teardown(binding: Binding, _signal: AbortSignal): Promise<void> {
    await binding.whenIdle();
  }

  /** Whether the resource is clean while no lease uses it (G7). A failure is a no. */
  abstract probe(signal: AbortSignal): Promise<ProbeResult>;

  abstract reset(signal: AbortSignal): Promise<void>;

  async stop(): Promise<void> {}

  /** G4: throws where a lease that only reads would be given what can be written through. */
  protected requireWriter({ lease }: Binding, operation: string): void {
    if (!readsOnly(lease.predicate) || this.place.reads.has(operation)) return;
    const detail = `what it gives can be written through, and ${lease.predicate} only reads; see reads in the configuration`;
    throw new NothingBegun(detail);
  }

  /** How many operations are under way. */
  protected inFlight(): number {
    return [...this.place.admission.bindings.values()].reduce((sum, binding) => sum + binding.inFlight, 0);
  }

  /** The lease as users' own drivers get it. Never its token: that is the holder's. */
  protected leaseJson(event: string, binding: Binding | null): Readonly<Record<string, string | number>> {
    const { cell, resource } = this.place;
    if (binding === null) return { event, cell, resource };
    const { tenant, id, predicate, generation, fence, units, expiresAt } = binding.lease;
    const reason = binding.endedAs === null ? {} : { reason: binding.endedAs };
    const lease = { lease: id, predicate, generation, fence, units, expires_at: expiresAt };
    return { event, cell, resource, tenant, ...lease, ...reason };
  }
}
