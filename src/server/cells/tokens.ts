/**
 * The tokens that leave with answers (G3). They are made with the keys of the cell that hosts the resource, and are what
 * the cell itself would make; for unbound resources the control plane is the cell.
 */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import { mint } from "../../token/index.ts";
import type { CellKey } from "../../token/node/cell-keys.ts";
import type { MasterKeys } from "../../token/node/master-keys.ts";

/** The audience of tokens of unbound resources. No cell may enrol under this name: it would be given these keys. */
export const controlCell = "control";

export class TokenOffice {
  readonly keys: MasterKeys;

  constructor(keys: MasterKeys) {
    this.keys = keys;
  }

  /** null: it has none, or is not to be used now. Never longer than the lease, nor 300 s. */
  tokenOf(lease: Lease, now: Millis): string | null {
    const cell = lease.cell ?? (lease.tokens ? controlCell : null);
    if (cell === null || lease.state !== "ACTIVE" || lease.id === "") return null;
    const { tenant, resource, id, generation, fence, expiresAt } = lease;
    return mint(this.keys, { tenant, cell, resource, lease: id, generation, fence, expiresAt }, now);
  }

  /** For the context of an answer that may show them. */
  at(now: Millis): (lease: Lease) => string | null {
    return (lease) => this.tokenOf(lease, now);
  }

  cellKeys(tenant: string, cell: string): readonly CellKey[] {
    return this.keys.cellKeys(tenant, cell);
  }
}
