/**
 * The leases of a task's manifest in a handler's hands (T10): each as it is now, with the token of the moment. The task's
 * heartbeats renew what is bound (G8); here what they answered is noted, and a stale token asks for one.
 */
import type { Client } from "./client.ts";
import type { LeaseUse } from "./gateway.ts";
import { HeldLease } from "./held-lease.ts";
import { LeaseLost } from "./lease-lost.ts";
import { LiveLease } from "./live-lease.ts";
import type { Lease, TaskLease } from "./wire.ts";

export interface TaskLeasesOptions {
  readonly client: Client;
  /** Of the task itself. */
  readonly leaseId: string;
  readonly leases: readonly Lease[];
  /** How long the task can still be worked on. */
  readonly leftMs: () => number;
  /** An answer to a heartbeat that was sent from here. */
  readonly onBeat: (answer: TaskLease) => void;
}

export class TaskLeases implements LeaseUse {
  private readonly options: TaskLeasesOptions;
  private readonly controller = new AbortController();
  private readonly held: readonly HeldLease[];
  private refreshing: Promise<void> | null = null;
  lost: LeaseLost | null = null;
  isOver = false;

  constructor(options: TaskLeasesOptions) {
    const { client, leases } = options;
    this.options = options;
    this.held = leases.map((lease) => new HeldLease(lease, client.time.mark(), client.time));
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get client(): Client {
    return this.options.client;
  }

  get leases(): readonly Lease[] {
    return this.held.map(({ lease }) => lease);
  }

  /** In the order of the manifest. */
  get live(): readonly LiveLease[] {
    return this.held.map((one) => new LiveLease(this, one));
  }

  /** By its name; where it was picked, by its place in the manifest. */
  leaseOf(resource: string | number): LiveLease {
    const found = typeof resource === "number" ? this.held[resource] : this.held.find(isOn(resource));
    if (found === undefined) throw new RangeError(`The task has no lease on ${resource}.`);
    return new LiveLease(this, found);
  }

  assertHeld(): void {
    if (this.lost !== null) throw this.lost;
    if (this.options.leftMs() <= 0) throw this.lose("The server could not be reached in time.");
  }

  usableMs(one: HeldLease): number {
    return Math.min(this.options.leftMs(), one.leftMs);
  }

  /** A heartbeat gives the present tokens; several that ask for them at once share one. */
  refresh(): Promise<void> {
    this.refreshing ??= this.beat().finally(() => {
      this.refreshing = null;
    });
    return this.refreshing;
  }

  note({ leases = [] }: TaskLease): void {
    const since = this.options.client.time.mark();
    for (const lease of leases) this.held.find(({ id }) => id === lease.id)?.note(lease, since);
  }

  /** The attempt is over, and so is all that it had. */
  lose(detail: string): LeaseLost {
    this.lost ??= new LeaseLost({ reason: "expired", detail, leases: this.leases });
    this.controller.abort(this.lost);
    return this.lost;
  }

  /** Given back, or completed. */
  end(): void {
    this.isOver = true;
    this.controller.abort(new LeaseLost({ reason: "released", detail: "The task is over.", leases: this.leases }));
  }

  private async beat(): Promise<void> {
    const { client, leaseId, onBeat } = this.options;
    const beating = client.call("heartbeat_task", { lease_id: leaseId });
    // Whether the task is lost is for its own heartbeats to find out.
    await beating.then(onBeat, () => undefined);
  }
}

function isOn(resource: string): (one: HeldLease) => boolean {
  return ({ lease }) => lease.resource === resource;
}
