/** Looks things up in the store by name. All lookups of one turn share one query. */

interface Query<Found> {
  readonly names: Set<string>;
  readonly answer: Promise<ReadonlyMap<string, Found>>;
}

export class BatchedLookup<Found> {
  private readonly query: (tenant: string, names: ReadonlySet<string>) => Promise<ReadonlyMap<string, Found>>;
  private readonly asking = new Map<string, Query<Found>>();

  constructor(query: (tenant: string, names: ReadonlySet<string>) => Promise<ReadonlyMap<string, Found>>) {
    this.query = query;
  }

  /** What is known of these names, and perhaps of others. */
  find(tenant: string, names: readonly string[]): Promise<ReadonlyMap<string, Found>> {
    let asking = this.asking.get(tenant);
    if (asking === undefined) {
      const all = new Set<string>();
      const answer = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        this.asking.delete(tenant);
        return this.query(tenant, all);
      });
      asking = { names: all, answer };
      this.asking.set(tenant, asking);
    }
    for (const name of names) asking.names.add(name);
    return asking.answer;
  }
}
