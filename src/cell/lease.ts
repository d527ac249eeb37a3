/** A lease as the control plane tells it to the cell that has to bind it. */
export interface CellLease {
  readonly tenant: string;
  readonly id: string;
  readonly resource: string;
  readonly generation: number;
  readonly fence: number;
  readonly units: number;
  /** By the control plane's clock (L7). */
  readonly expiresAt: number;
}
