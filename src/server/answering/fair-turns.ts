/**
 * Long reads: of stored events, and of lists. They are done in portions, one at a time, of all that read, with a turn of the
 * loop for everything else after each (S8). Tenants take turns, whatever the number of their readers; and of one tenant only
 * some read at once, the others wait (S4).
 */

interface TenantReaders {
  reading: number;
  /** Readers that wait until another one is done. */
  readonly waiting: (() => void)[];
  /** Portions that are to be read. */
  readonly work: (() => Promise<void>)[];
}

export class FairTurns {
  /** Of one tenant, at once. */
  private readonly readersMax: number;
  /** In the order in which they have their turns. */
  private readonly tenants = new Map<string, TenantReaders>();
  private isBusy = false;

  constructor(readersMax: number) {
    this.readersMax = readersMax;
  }

  /** Resolves when it may begin; returns how to leave. */
  async enter(tenant: string): Promise<() => void> {
    const readers = this.of(tenant);
    if (readers.reading < this.readersMax) readers.reading++;
    // Handed over by the one that leaves, so that the number stays.
    else await new Promise<void>((resolve) => readers.waiting.push(resolve));
    return () => {
      const next = readers.waiting.shift();
      if (next !== undefined) return next();
      readers.reading--;
      this.forgetIfUnused(tenant, readers);
    };
  }

  /** Does the work when it is the tenant's turn. */
  turn<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.of(tenant).work.push(() => work().then(resolve, reject));
    if (!this.isBusy) void this.run();
    return promise;
  }

  private async run(): Promise<void> {
    this.isBusy = true;
    for (let next = this.next(); next !== null; next = this.next()) {
      await next();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.isBusy = false;
  }

  /** Of the tenant whose last turn is the longest ago. */
  private next(): (() => Promise<void>) | null {
    for (const [tenant, readers] of this.tenants) {
      const work = readers.work.shift();
      if (work === undefined) continue;
      this.tenants.delete(tenant);
      this.tenants.set(tenant, readers);
      return work;
    }
    return null;
  }

  private of(tenant: string): TenantReaders {
    const readers = this.tenants.get(tenant) ?? { reading: 0, waiting: [], work: [] };
    this.tenants.set(tenant, readers);
    return readers;
  }

  private forgetIfUnused(tenant: string, { reading, waiting, work }: TenantReaders): void {
    if (reading + waiting.length + work.length === 0) this.tenants.delete(tenant);
  }
}
