/**
 * Idempotency keys of what has ended (T12, W10). The kernel knows those of what is alive; for the rest the store answers. A
 * key is held while it is looked up, so that of two commands at once the second one finds what the first has done.
 */
import { BatchedLookup } from "./batched-lookup.ts";

export class KeyLookup<Found> {
  private readonly lookup: BatchedLookup<Found>;
  /** By key: what waits for it to be free again. */
  private readonly held = new Map<string, (() => void)[]>();

  constructor(query: (tenant: string, keys: ReadonlySet<string>) => Promise<ReadonlyMap<string, Found>>) {
    this.lookup = new BatchedLookup(query);
  }

  /** Runs at once, or when nobody holds the key any more; until `release` it is held. */
  hold(tenant: string, key: string, run: (release: () => void) => void): void {
    const name = `${tenant}\n${key}`;
    const start = (): void => run(() => this.release(name));
    const waiting = this.held.get(name);
    if (waiting !== undefined) {
      waiting.push(start);
      return;
    }
    this.held.set(name, []);
    start();
  }

  private release(name: string): void {
    const next = this.held.get(name)?.shift();
    if (next === undefined) this.held.delete(name);
    else next();
  }

  async find(tenant: string, key: string): Promise<Found | null> {
    return (await this.lookup.find(tenant, [key])).get(key) ?? null;
  }
}
