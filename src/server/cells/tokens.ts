/**
 * The tokens that leave with answers (G3). They are signed with the keys of the cell that hosts the resource, as the cell
 * itself would sign them; for unbound resources the control plane is the cell.
 */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import { mint } from "../../token/index.ts";
import type { CellKey } from "../../token/node/cell-keys.ts";
import type { MasterKeys } from "../../token/node/master-keys.ts";

/** The audience of tokens of unbound resources. No cell may enrol under this name: it would be given these keys. */
export const controlCell = "control";

export class LeaseTokens {
  readonly keys: MasterKeys;

  /** Where the keys are stored beside their file; null: nowhere else. */
  store: (() => Promise<void>) | null = null;

  constructor(keys: MasterKeys) {
    this.keys = keys;
  }

  /** null if the lease carries no token or is not ACTIVE. A token expires with its lease, after 300 s at most. */
  readonly tokenOf = (lease: Lease, now: Millis): string | null => {
    const cell = lease.cell ?? (lease.tokens ? controlCell : null);
    if (cell === null || lease.state !== "ACTIVE" || lease.id === "") return null;
    const { tenant, resource, id, generation, fence, expiresAt, predicate } = lease;
    return mint(this.keys, { tenant, cell, resource, lease: id, generation, fence, expiresAt, predicate }, now);
  };

  cellKeys(tenant: string, cell: string): readonly CellKey[] {
    return this.keys.cellKeys(tenant, cell);
  }
}
