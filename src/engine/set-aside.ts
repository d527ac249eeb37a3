/**
 * S2: a deadline that makes the kernel throw would do so again after every recovery, and nobody would ever be served. The
 * second time it is set aside: it stays as it is, and everything else goes on.
 */
import { type DueItem, type State, setAside } from "../kernel/kernel.ts";
import type { EngineLog } from "./engine-types.ts";

const failuresMax = 2;

export class SetAside {
  private readonly failures = new Map<string, { readonly item: DueItem; count: number }>();

  note(item: DueItem | null): void {
    if (item === null) return;
    const key = `${item.tenant} ${item.kind} ${item.id}`;
    const known = this.failures.get(key);
    if (known === undefined) this.failures.set(key, { item, count: 1 });
    else known.count++;
  }

  /** On a state that was just restored. */
  apply(state: State, log: EngineLog): void {
    for (const { item, count } of this.failures.values()) {
      if (count < failuresMax || !setAside(state, item)) continue;
      const { kind, id } = item;
      log.error(
        { ...item, count },
        `a bug: settling ${kind} ${id} threw ${count} times; it is set aside until a restart`,
      );
    }
  }
}
