/**
 * The receipts that a worker's tasks end with. Those of one turn of the event loop leave in one call, ahead of the poll for
 * the places that they free; so both are decided, and stored, together.
 */
import type { Client } from "./client.ts";
import { errorOf } from "./errors.ts";
import { atEndOfTurn } from "./platform.ts";
import type { ReceiptInput } from "./task-outcome.ts";

/** A call has to fit into a frame of the stream; what is larger goes alone. */
const charsMax = 100_000;
const countMax = 500;
/** About what a receipt takes beside its text and its metadata. */
const usualChars = 400;

interface Posted {
  readonly receipt: ReceiptInput;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class ReceiptBox {
  private readonly client: Client;
  private posted: Posted[] = [];

  constructor(client: Client) {
    this.client = client;
  }

  /** Settles when the ledger has it; rejects where it is refused, or where that cannot be known. */
  post(receipt: ReceiptInput): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.posted.length === 0) atEndOfTurn(() => this.flush());
      this.posted.push({ receipt, resolve, reject });
    });
  }

  flush(): void {
    const { posted } = this;
    this.posted = [];
    let batch: Posted[] = [];
    let chars = 0;
    for (const one of posted) {
      const size = sizeOf(one.receipt);
      if (batch.length >= countMax || (batch.length > 0 && chars + size > charsMax)) {
        this.send(batch);
        batch = [];
        chars = 0;
      }
      batch.push(one);
      chars += size;
    }
    if (batch.length > 0) this.send(batch);
  }

  private send(batch: readonly Posted[]): void {
    const failed = (error: unknown): void => {
      for (const { reject } of batch) reject(error);
    };
    const [first] = batch;
    if (batch.length === 1 && first !== undefined) {
      this.client.call("submit_receipt", first.receipt).then(() => first.resolve(), failed);
      return;
    }
    const receipts = batch.map(({ receipt }) => receipt);
    this.client.call("submit_receipts", { receipts }).then(({ results }) => {
      for (const [index, { resolve, reject }] of batch.entries()) {
        const { status = 500, body = {} } = results[index] ?? {};
        if (status < 300) resolve();
        else reject(errorOf(status, body));
      }
    }, failed);
  }
}

function sizeOf({ outcome_text, metadata, escalation_reason }: ReceiptInput): number {
  const free = metadata === undefined || metadata === null ? 0 : JSON.stringify(metadata).length;
  return usualChars + (outcome_text?.length ?? 0) + (escalation_reason?.length ?? 0) + free;
}
