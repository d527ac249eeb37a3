/**
 * Looks up in the ledger whether receipts' keys and ids were used before. All lookups of one turn share one query. A key is
 * held until its receipt is durable, so that no other receipt with it can slip in between.
 */
import type { Engine } from "../../engine/engine.ts";

export interface KnownReceipt {
  readonly receiptId: string;
  readonly taskId: string;
}

/** By mark: "key:…" or "id:…", as the kernel writes them. */
export type KnownReceipts = ReadonlyMap<string, KnownReceipt>;

interface Query {
  readonly marks: Set<string>;
  readonly answer: Promise<KnownReceipts>;
}

export class DedupeLookup {
  private readonly engine: Engine;
  private readonly held = new Map<string, Promise<void>>();
  private readonly asking = new Map<string, Query>();

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** Waits until none of them is held; returns how to release them. */
  async hold(tenant: string, marks: readonly string[]): Promise<() => void> {
    const names = marks.map((mark) => `${tenant}\n${mark}`);
    const before = names.flatMap((name) => this.held.get(name) ?? []);
    let release = (): void => undefined;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (const name of names) this.held.set(name, mine);
    await Promise.all(before);
    return () => {
      for (const name of names) if (this.held.get(name) === mine) this.held.delete(name);
      release();
    };
  }

  find(tenant: string, marks: readonly string[]): Promise<KnownReceipts> {
    let asking = this.asking.get(tenant);
    if (asking === undefined) {
      const all = new Set<string>();
      const answer = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        this.asking.delete(tenant);
        return this.query(tenant, all);
      });
      asking = { marks: all, answer };
      this.asking.set(tenant, asking);
    }
    for (const mark of marks) asking.marks.add(mark);
    return asking.answer;
  }

  private async query(tenant: string, marks: ReadonlySet<string>): Promise<KnownReceipts> {
    const { store } = this.engine;
    const named = (kind: string) =>
      [...marks].filter((mark) => mark.startsWith(kind)).map((mark) => mark.slice(kind.length));
    const [keys, ids] = [named("key:"), named("id:")];
    const [byKey, byId] = await Promise.all([
      keys.length === 0 ? [] : store.receiptsByDedupe(tenant, keys),
      ids.length === 0 ? [] : store.receiptsById(tenant, ids),
    ]);
    const known = new Map<string, KnownReceipt>();
    // In the order of the ledger: the first of a key is the one that counts.
    for (const { id, taskId, dedupe } of byKey) {
      if (dedupe !== null && !known.has(`key:${dedupe}`)) known.set(`key:${dedupe}`, { receiptId: id, taskId });
    }
    for (const { id, taskId } of byId) if (!known.has(`id:${id}`)) known.set(`id:${id}`, { receiptId: id, taskId });
    return known;
  }
}
