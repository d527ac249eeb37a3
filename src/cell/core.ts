/**
 * A cell without its connection: binds leases, renews and tears them down, and ends them by its own clock when no command
 * does (G6, G11). A repeated command gets the first answer; a late one is refused.
 *
 *   bind → open → ended → torn down, and free | not torn down, and fenced (G7) → reset, and seen clean by a probe
 */
import type { CellInventoryEntry } from "../protocol/resources/cell-link.ts";
import { mint, type SigningKeys } from "../token/index.ts";
import { ReloadingTls } from "../trust/server-tls.ts";
import { Binding, type CellLease } from "./binding.ts";
import { CellClock } from "./clock.ts";
import type { CellConfig } from "./config.ts";
import type { ProbeResult } from "./driver.ts";
import { CellFailure, type EndCode, reasonOf } from "./failure.ts";
import { HostedResource } from "./hosted.ts";
import { Journal } from "./journal.ts";

export interface Bound {
  /** Where to connect. */
  readonly coordinate: string;
  readonly token: string;
}

/** What the cell did of its own accord, for the control plane to learn (G10). */
export type CellEvent =
  | { readonly type: "ended"; readonly lease: CellLease; readonly code: EndCode; readonly failure: string | null }
  | { readonly type: "fenced"; readonly resource: string; readonly reason: string };

interface CellCoreOptions {
  readonly clock?: CellClock;
  readonly onEvent?: (event: CellEvent) => void;
  readonly log?: (line: string) => void;
}

/** How often all ends are looked at beside their timers, which stand still while the machine sleeps. */
const watchMs = 250;
const timerMsMax = 2 ** 31 - 1;
/** As many as one hello to the control plane can name. */
const bindingsMax = 10_000;
const leavingFault = "the cell is shutting down";

export class CellCore {
  readonly clock: CellClock;
  private readonly config: CellConfig;
  private readonly keys: SigningKeys;
  private readonly journal: Journal;
  private readonly hosted = new Map<string, HostedResource>();
  private readonly onEvent: (event: CellEvent) => void;
  /** Bindings whose end the control plane asked for. */
  private readonly ordered = new WeakSet<Binding>();
  private readonly log: (line: string) => void;
  private readonly watcher: NodeJS.Timeout;
  private starting: Promise<readonly string[]> | null = null;
  private isLeaving = false;

  constructor(config: CellConfig, keys: SigningKeys, options: CellCoreOptions = {}) {
    this.config = config;
    this.keys = keys;
    this.clock = options.clock ?? new CellClock();
    this.journal = new Journal(config.stateFile);
    this.onEvent = options.onEvent ?? (() => {});
    this.log = options.log ?? (() => {});
    const { cell, bindMs, teardownMs } = config;
    const tls = config.tls === null ? null : new ReloadingTls(config.tls, lineLog(this.log));
    const place = { cell, keys, clock: this.clock, log: this.log, tls, bindMs, teardownMs };
    for (const resource of config.resources) this.hosted.set(resource.resource, new HostedResource(resource, place));
    this.watcher = setInterval(() => {
      for (const binding of this.bindings()) binding.isOpen();
    }, watchMs).unref();
  }

  /**
   * Opens every resource, and tears down what an earlier run of the cell has left. Returns a line for each fault; the
   * other resources go on. The first command calls it if nothing did before.
   */
  start(): Promise<readonly string[]> {
    this.starting ??= this.startAll();
    return this.starting;
  }

  /**
   * With `ttlMs` the lease is still to be granted: it then ends that long after the grant, which comes after our answer.
   * Until the control plane has sent that end (`renew`), the earliest possible end holds: a cell that is cut off, stopped
   * or killed in between must not admit anyone for longer (L3).
   */
  async bind(lease: CellLease, ttlMs: number = Number.POSITIVE_INFINITY): Promise<Bound> {
    await this.start();
    if (this.isLeaving) throw new CellFailure("cell_not_ready", leavingFault);
    const hosted = this.find(lease.resource);
    const before = hosted.find(lease.id)?.binding;
    // Bound again after it ran out (L9): once the older binding is torn down.
    if (before?.endedAs === "lease_expired" && lease.generation > before.lease.generation)
      await hosted.tearDown(before);
    const known = hosted.find(lease.id);
    if (known !== null) {
      const { generation, fence } = known.binding.lease;
      if (lease.generation === generation && lease.fence === fence)
        return await this.bound(hosted, known.binding, lease, ttlMs);
      throw new CellFailure("stale_generation", `The lease is at generation ${generation}.`);
    }
    const end = hosted.admission.endOfGeneration(lease);
    if (end !== null) throw new CellFailure(end, "The lease has ended here already.");
    if (this.clock.now() >= lease.expiresAt)
      throw new CellFailure("lease_expired", "The lease has ended before it was bound.");
    if (this.bindings().length >= bindingsMax)
      throw new CellFailure("lease_denied", `The cell has ${bindingsMax} bindings, and takes no more.`);
    hosted.admit(lease);
    const binding = new Binding(this.config.cell, lease, this.clock, (ended) => this.whenEnded(hosted, ended));
    hosted.add(binding);
    this.arm(binding);
    try {
      this.remember();
      return await this.bound(hosted, binding, lease, ttlMs);
    } catch (error) {
      await this.endAsOrdered(hosted, binding, "lease_revoked").catch(() => {});
      throw error instanceof CellFailure ? error : new CellFailure("bind_failed", reasonOf(error), error);
    }
  }

  /** G8: a new generation, fence and end. Older tokens are stale from here on; connections stay. */
  async renew(lease: CellLease): Promise<{ readonly token: string }> {
    const hosted = this.find(lease.resource);
    const binding = hosted.find(lease.id)?.binding ?? null;
    const end = hosted.admission.endOf(lease.id);
    if (binding === null || !binding.isOpen()) {
      const code = binding?.endedAs ?? end;
      if (code !== null) throw new CellFailure(code, "The lease has ended here already.");
      throw new CellFailure("lease_unknown", "The lease is not bound here.");
    }
    if (lease.generation < binding.lease.generation || lease.fence < binding.lease.fence) {
      throw new CellFailure("stale_generation", `The lease is at generation ${binding.lease.generation}.`);
    }
    if (!hosted.renew(binding, lease)) {
      binding.end("lease_revoked");
      throw new CellFailure("lease_revoked", "What was set up cannot be held to reading, so that it was ended.");
    }
    this.arm(binding);
    this.rememberIfPossible();
    return { token: this.mint(lease) };
  }

  /** Resolves when nothing can be done under the lease any more; rejects, and the resource is fenced, if that is not sure. */
  async teardown(leaseId: string, code: EndCode = "lease_revoked"): Promise<void> {
    await this.start();
    for (const hosted of this.hosted.values()) {
      const known = hosted.find(leaseId);
      if (known === null) continue;
      await this.endAsOrdered(hosted, known.binding, code);
      return;
    }
  }

  async probe(resource: string): Promise<ProbeResult> {
    await this.start();
    return await this.find(resource).probe();
  }

  /** Ends what is live on it, runs the driver's reset, and lifts the fence only if a probe has seen it clean (G7). */
  async reset(resource: string): Promise<ProbeResult> {
    await this.start();
    const hosted = this.find(resource);
    await this.endAll(hosted);
    const result = await hosted.reset();
    this.rememberIfPossible();
    return result;
  }

  inventory(): readonly CellInventoryEntry[] {
    const entries = [...this.hosted.values()].map((hosted) => hosted.describe());
    return this.isLeaving ? entries.map((entry) => ({ ...entry, ready: false, fault: leavingFault })) : entries;
  }

  bindings(): readonly Binding[] {
    return [...this.hosted.values()].flatMap((hosted) => hosted.all());
  }

  /** Tries again what could not be opened: a port that was taken, a folder that was missing. */
  async retryBroken(): Promise<void> {
    if (this.isLeaving) return;
    const broken = [...this.hosted.values()].filter(({ fault }) => fault !== null);
    await Promise.all(broken.map((hosted) => hosted.start()));
  }

  /** Resolves when nothing is being torn down: what is not named in an inventory then is gone for sure. */
  async settled(): Promise<void> {
    for (const hosted of this.hosted.values()) {
      const ending = hosted.all().filter(({ endedAs }) => endedAs !== null);
      await Promise.allSettled(ending.map((binding) => hosted.tearDown(binding)));
    }
  }

  /** Before a shut-down: nothing is bound any more, and what is ends, each with its own report. */
  async drain(): Promise<void> {
    this.isLeaving = true;
    await this.starting?.catch(() => {});
    for (const hosted of this.hosted.values()) for (const binding of hosted.live()) binding.end("lease_revoked");
    await this.settled();
    // The reports are given a step after the ends that they tell of.
    await new Promise((resolve) => setImmediate(resolve));
  }

  async close(): Promise<void> {
    clearInterval(this.watcher);
    await this.starting?.catch(() => {});
    for (const hosted of this.hosted.values()) {
      await this.endAll(hosted);
      await hosted.stop();
    }
  }

  private async startAll(): Promise<readonly string[]> {
    const { leases, fences } = this.journal.read();
    for (const hosted of this.hosted.values()) hosted.fenced = fences[hosted.resource] ?? null;
    const started = await Promise.all([...this.hosted.values()].map((hosted) => hosted.start()));
    await Promise.all(leases.map((lease) => this.tearDownLeft(lease)));
    return [...this.config.faults, ...started.filter((fault) => fault !== null)];
  }

  /** A binding of an earlier run: it cannot be used, but what its driver set up may still exist. */
  private async tearDownLeft(lease: CellLease): Promise<void> {
    const hosted = this.hosted.get(lease.resource);
    if (hosted === undefined) return;
    const binding = new Binding(this.config.cell, lease, this.clock);
    binding.end("lease_revoked");
    hosted.add(binding, true);
    await this.tearDown(hosted, binding).catch(() => {});
  }

  /** Once it is bound, or bound before; with the end that holds until the grant is known. */
  private async bound(hosted: HostedResource, binding: Binding, lease: CellLease, ttlMs: number): Promise<Bound> {
    const coordinate = await hosted.bind(binding);
    if (ttlMs !== Number.POSITIVE_INFINITY) {
      hosted.renew(binding, { ...lease, expiresAt: Math.min(lease.expiresAt, this.clock.now() + ttlMs) });
      this.arm(binding);
    }
    return { coordinate, token: this.mint(binding.lease) };
  }

  private async endAsOrdered(hosted: HostedResource, binding: Binding, code: EndCode): Promise<void> {
    this.ordered.add(binding);
    binding.end(code);
    await this.tearDown(hosted, binding);
  }

  private async endAll(hosted: HostedResource): Promise<void> {
    await Promise.allSettled(hosted.live().map((binding) => this.endAsOrdered(hosted, binding, "lease_revoked")));
  }

  /** Ends that the control plane did not ask for are reported to it. */
  private whenEnded(hosted: HostedResource, binding: Binding): void {
    const { lease, endedAs } = binding;
    const report = (failure: string | null): void => {
      if (this.ordered.has(binding)) return;
      this.onEvent({ type: "ended", lease, code: endedAs ?? "lease_revoked", failure });
    };
    this.tearDown(hosted, binding).then(
      () => report(null),
      (error) => report(reasonOf(error)),
    );
  }

  /** Once for each binding, however often it is asked for. */
  private async tearDown(hosted: HostedResource, binding: Binding): Promise<void> {
    const wasFenced = hosted.fenced !== null;
    try {
      await hosted.tearDown(binding);
    } finally {
      if (hosted.fenced !== null && !wasFenced) {
        this.onEvent({ type: "fenced", resource: hosted.resource, reason: hosted.fenced });
        // G7: fencing revokes what is live on it.
        for (const other of hosted.live()) other.end("resource_fenced");
      }
      this.rememberIfPossible();
    }
  }

  private find(resource: string): HostedResource {
    const hosted = this.hosted.get(resource);
    if (hosted !== undefined) return hosted;
    throw new CellFailure("resource_unknown", "The cell does not host this resource.");
  }

  private mint({ tenant, id, resource, generation, fence, expiresAt, predicate }: CellLease): string {
    const claims = { tenant, cell: this.config.cell, resource, lease: id, generation, fence, expiresAt, predicate };
    return mint(this.keys, claims, this.clock.now());
  }

  private arm(binding: Binding): void {
    const leftMs = Math.min(binding.lease.expiresAt - this.clock.now(), timerMsMax);
    const { lease } = binding;
    // Timers may be early by a little; and a renewal has armed another.
    const look = (): void => {
      if (binding.lease === lease && binding.isOpen()) this.arm(binding);
    };
    setTimeout(look, Math.max(leftMs, 1)).unref();
  }

  /** Where a line too many in the file does no harm: what it names is torn down once more after a restart. */
  private rememberIfPossible(): void {
    try {
      this.remember();
    } catch (error) {
      this.log(`the cell's state cannot be written: ${reasonOf(error)}`);
    }
  }

  private remember(): void {
    const fences: Record<string, string> = {};
    for (const { resource, fenced } of this.hosted.values()) if (fenced !== null) fences[resource] = fenced;
    this.journal.write({ leases: this.bindings().map(({ lease }) => lease), fences });
  }
}

/** What the certificate's reloading has to say, as lines of the cell's log. */
function lineLog(log: (line: string) => void) {
  const note = (details: object, message: string): void => log(`${message}: ${Object.values(details).join(", ")}`);
  return { info: note, warn: note, error: note };
}
