/** One resource of a cell: its driver, who may pass, what is bound on it, and whether it is fenced. */
import { type CellInventoryEntry, cellLinkLimits, linkReason } from "../protocol/resources/cell-link.ts";
import { readsOnly } from "../protocol/resources/reading.ts";
import type { SigningKeys } from "../token/index.ts";
import type { ReloadingTls } from "../trust/server-tls.ts";
import { Admission } from "./admission.ts";
import type { Binding, CellLease } from "./binding.ts";
import type { CellClock } from "./clock.ts";
import type { ResourceConfig } from "./config.ts";
import { type Driver, NothingBegun, type ProbeResult } from "./driver.ts";
import { CellFailure, reasonOf } from "./failure.ts";
import { within } from "./time-limit.ts";

interface HostedPlace {
  readonly cell: string;
  readonly keys: SigningKeys;
  readonly clock: CellClock;
  readonly log: (line: string) => void;
  readonly bindMs: number;
  readonly teardownMs: number;
  readonly tls: ReloadingTls | null;
}

/** A binding with what is under way for it; each is begun once. */
interface BoundLease {
  readonly binding: Binding;
  bound: Promise<string> | null;
  /** Whether the driver may have set something up. */
  hasBegun: boolean;
  tornDown: Promise<void> | null;
}

export class HostedResource {
  readonly resource: string;
  readonly admission: Admission;
  /** Why; null if it is not. */
  fenced: string | null = null;
  /** Why it cannot be used; null if it can. */
  fault: string | null = "it has not been started";
  private readonly config: ResourceConfig;
  private readonly place: HostedPlace;
  private readonly driver: Driver;
  private readonly known = new Map<string, BoundLease>();
  private starting: Promise<string | null> | null = null;

  constructor(config: ResourceConfig, place: HostedPlace) {
    this.config = config;
    this.place = place;
    this.resource = config.resource;
    const { cell, keys, clock, log, tls } = place;
    const { resource, hardware, reads } = config;
    this.admission = new Admission({ cell, resource, hardware, reads, keys, clock });
    this.driver = config.make({ cell, resource, admission: this.admission, reads, tls, log });
  }

  /** The fault in one line, if it cannot be used. The next caller tries again. */
  start(): Promise<string | null> {
    this.starting ??= this.startOnce().finally(() => {
      this.starting = null;
    });
    return this.starting;
  }

  private async startOnce(): Promise<string | null> {
    try {
      await within(this.place.bindMs, () => this.driver.start());
      this.fault = null;
    } catch (error) {
      const fault = `${this.resource} cannot be used: ${reasonOf(error)}`;
      // It is tried again and again; the same line each time would tell nothing.
      if (fault !== this.fault) this.place.log(fault);
      this.fault = fault;
    }
    return this.fault;
  }

  find(leaseId: string): BoundLease | null {
    return this.known.get(leaseId) ?? null;
  }

  all(): readonly Binding[] {
    return [...this.known.values()].map(({ binding }) => binding);
  }

  live(): readonly Binding[] {
    return this.all().filter(({ endedAs }) => endedAs === null);
  }

  /** Throws if nothing may be bound now. */
  admit(lease: CellLease): void {
    if (this.fenced !== null) throw new CellFailure("resource_fenced", `The resource is fenced: ${this.fenced}`);
    const { capacity } = this.config;
    if (capacity === null) return;
    const used = this.all().reduce((sum, { lease: { units } }) => sum + units, 0);
    if (used + lease.units <= capacity) return;
    const detail = `${used} of ${capacity} units are in use here, and ${lease.units} are asked for.`;
    throw new CellFailure("lease_denied", detail);
  }

  /** `hasBegun` is for what an earlier run of the cell may have set up. */
  add(binding: Binding, hasBegun = false): void {
    this.known.set(binding.lease.id, { binding, bound: null, hasBegun: hasBegun, tornDown: null });
    this.admission.add(binding);
  }

  async bind(binding: Binding): Promise<string> {
    const known = this.known.get(binding.lease.id);
    if (known === undefined) throw new CellFailure("lease_unknown", "The lease is not bound here.");
    known.bound ??= this.bindOnce(known);
    const coordinate = await known.bound;
    if (binding.isOpen()) return coordinate;
    throw new CellFailure(binding.endedAs ?? "lease_revoked", "The lease has ended while it was bound.");
  }

  /** False: it reads only now, and what was set up for it could still be written through. */
  renew(binding: Binding, lease: CellLease): boolean {
    const before = binding.lease;
    if (readsOnly(lease.predicate) && !readsOnly(before.predicate) && !this.driver.canWeaken()) return false;
    binding.renew(lease);
    this.driver.renewed(binding, before);
    return true;
  }

  async tearDown(binding: Binding): Promise<void> {
    const known = this.known.get(binding.lease.id);
    if (known === undefined || known.binding !== binding) return;
    known.tornDown ??= this.tearDownOnce(known);
    await known.tornDown;
  }

  async probe(): Promise<ProbeResult> {
    if (this.fault !== null) await this.start();
    if (this.fault !== null) return { clean: false, detail: this.fault };
    try {
      return await within(this.place.teardownMs, (signal) => this.driver.probe(signal));
    } catch (error) {
      return { clean: false, detail: reasonOf(error) };
    }
  }

  async reset(): Promise<ProbeResult> {
    try {
      await within(this.place.teardownMs, (signal) => this.driver.reset(signal));
    } catch (error) {
      throw new CellFailure("reset_failed", reasonOf(error), error);
    }
    const result = await this.probe();
    if (!result.clean) return result;
    // What could not be torn down is gone, as the probe has seen.
    for (const { binding } of this.known.values()) if (binding.endedAs !== null) this.forget(binding);
    this.fenced = null;
    return result;
  }

  async stop(): Promise<void> {
    await within(this.place.teardownMs, () => this.driver.stop()).catch((error) => {
      this.place.log(`${this.resource}: ${reasonOf(error)}`);
    });
  }

  /** As the control plane gets it. */
  describe(): CellInventoryEntry {
    const { fault, fenced, config } = this;
    const { resource, driver, capacity } = config;
    return {
      resource,
      driver,
      capacity,
      hardware: config.hardware.slice(0, cellLinkLimits.hardwareMax),
      ready: fault === null && fenced === null,
      fault: fault === null ? null : linkReason(fault),
      fenced: fenced === null ? null : linkReason(fenced),
    };
  }

  private async bindOnce(known: BoundLease): Promise<string> {
    if (this.fault !== null) await this.start();
    if (this.fault !== null) throw new CellFailure("cell_not_ready", this.fault);
    known.hasBegun = true;
    try {
      return await within(this.place.bindMs, (signal) => this.driver.bind(known.binding, signal));
    } catch (error) {
      if (error instanceof NothingBegun) known.hasBegun = false;
      throw new CellFailure("bind_failed", reasonOf(error), error);
    }
  }

  /** A bind that is still under way is waited for: what it sets up has to be taken down too. */
  private async tearDownOnce(known: BoundLease): Promise<void> {
    const { binding } = known;
    await known.bound?.catch(() => {});
    try {
      if (known.hasBegun) await within(this.place.teardownMs, (signal) => this.driver.teardown(binding, signal));
      this.forget(binding);
    } catch (error) {
      const reason = `teardown of ${binding.lease.id} failed: ${reasonOf(error)}`;
      this.fenced = reason;
      this.place.log(`${this.resource} is fenced: ${reason}`);
      throw new CellFailure("teardown_failed", reason, error);
    }
  }

  private forget(binding: Binding): void {
    this.known.delete(binding.lease.id);
    this.admission.remove(binding);
  }
}
