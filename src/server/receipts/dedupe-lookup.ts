/**
 * Looks up in the ledger whether receipts' keys and ids were used before. A key is
 * held until its receipt is durable, so that no other receipt with it can slip in between.
 */
import type { Engine } from "../../engine/engine.ts";
import { readReceipt } from "../../ledger/seal.ts";
import { BatchedLookup } from "../answering/batched-lookup.ts";

export interface KnownReceipt {
  readonly receiptId: string;
  readonly taskId: string;
  readonly submittedBy: string | null;
}

/** By mark, "key:…" or "id:…" as the kernel writes them, in the order of the ledger. Each caller has its own. */
export type FoundReceipts = Map<string, readonly KnownReceipt[]>;

/** The receipt that was sent before under one of the marks: about this task, or by this sender (R3). An id is the tenant's. */
export function findBefore(
  known: FoundReceipts,
  marks: readonly string[],
  taskId: string | null,
  submittedBy: string | null,
): KnownReceipt | undefined {
  for (const mark of marks) {
    const all = known.get(mark) ?? [];
    const before = mark.startsWith("id:")
      ? all[0]
      : (all.find((one) => one.taskId === taskId) ?? all.find((one) => one.submittedBy === submittedBy));
    if (before !== undefined) return before;
  }
  return undefined;
}

export class DedupeLookup {
  private readonly engine: Engine;
  private readonly held = new Map<string, Promise<void>>();
  private readonly lookup = new BatchedLookup<readonly KnownReceipt[]>((tenant, marks) => this.query(tenant, marks));

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

  async find(tenant: string, marks: readonly string[]): Promise<FoundReceipts> {
    const found = await this.lookup.find(tenant, marks);
    return new Map(marks.map((mark) => [mark, found.get(mark) ?? []]));
  }

  private async query(tenant: string, marks: ReadonlySet<string>): Promise<FoundReceipts> {
    const { store } = this.engine;
    const named = (kind: string) =>
      [...marks].filter((mark) => mark.startsWith(kind)).map((mark) => mark.slice(kind.length));
    const [keys, ids] = [named("key:"), named("id:")];
    const [byKey, byId] = await Promise.all([
      keys.length === 0 ? [] : store.receiptsByDedupe(tenant, keys),
      ids.length === 0 ? [] : store.receiptsById(tenant, ids),
    ]);
    const found = new Map<string, KnownReceipt[]>();
    const add = (mark: string, body: string): void => {
      const { id: receiptId, taskId, submittedBy } = readReceipt(body);
      const before = found.get(mark);
      if (before === undefined) found.set(mark, [{ receiptId, taskId, submittedBy }]);
      else before.push({ receiptId, taskId, submittedBy });
    };
    for (const { dedupe, body } of byKey) add(`key:${dedupe}`, body);
    for (const { id, body } of byId) add(`id:${id}`, body);
    return found;
  }
}
