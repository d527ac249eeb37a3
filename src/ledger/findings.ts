/** What a check of the ledger can find, and where (R6). */

export type FindingCode =
  | "receipt_changed"
  | "receipts_missing"
  | "receipt_out_of_place"
  | "chain_broken"
  | "column_changed"
  | "ledger_cut"
  | "head_mismatch"
  | "signature_wrong"
  | "key_unknown"
  | "line_unreadable"
  | "end_unsigned";

export interface Finding {
  readonly code: FindingCode;
  readonly tenant: string;
  /** The receipt, or the head of that sequence, that does not fit; in a file without such a number, the line. */
  readonly sequence: number;
  /** A sentence for people. */
  readonly detail: string;
}

/** More findings than this are not collected, to bound memory. */
export const findingsMax = 100;
