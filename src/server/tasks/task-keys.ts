/**
 * T12: idempotency keys of creations. The kernel knows those of live tasks; for ended ones the store answers. A key is
 * held while it is looked up, so that of two creations at once the second one finds the task of the first.
 */
import type { Engine } from "../../engine/engine.ts";
import { endedTasksByKey } from "../../engine/history.ts";
import type { EndedTask } from "../../kernel/contract/task-records.ts";
import { BatchedLookup } from "../answering/batched-lookup.ts";

export class TaskKeys {
  private readonly lookup: BatchedLookup<EndedTask>;
  /** By key: what waits for it to be free again. */
  private readonly held = new Map<string, (() => void)[]>();

  constructor(engine: Engine) {
    this.lookup = new BatchedLookup((tenant, keys) => endedTasksByKey(engine.store, tenant, [...keys]));
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

  async find(tenant: string, key: string): Promise<EndedTask | null> {
    return (await this.lookup.find(tenant, [key])).get(key) ?? null;
  }
}
