/** The ledger in PostgreSQL, for checks: read only, in portions, whether servers run or not. */
import { readJournalEntry } from "./postgres-commit.ts";
import { Database } from "./postgres-connection.ts";
import { headRow, receiptRow } from "./rows.ts";
import type { SignedHead, StoredReceipt } from "./store.ts";

export interface PostgresLedger {
  /** All receipts of all tenants, in the order of each tenant's ledger. */
  readonly receipts: () => AsyncGenerator<StoredReceipt>;
  /** By tenant, smallest sequence first. */
  readonly heads: ReadonlyMap<string, readonly SignedHead[]>;
  /** Every key that has ever signed heads. */
  readonly keys: readonly { readonly keyId: string; readonly publicKey: string }[];
  readonly close: () => Promise<void>;
}

const rowsPerPortion = 1_000;

export async function openPostgresLedger(url: string): Promise<PostgresLedger> {
  const db = new Database({ url });
  const { schema } = db;
  try {
    // Heads before receipts: the receipts of a head were committed with it or before it.
    const heads = new Map<string, SignedHead[]>();
    const found = await db.read(`SELECT ${headRow.columns.join()} FROM ${schema}.heads ORDER BY tenant, sequence, key`);
    for (const head of found.map(headRow.read)) {
      const list = heads.get(head.tenant);
      if (list === undefined) heads.set(head.tenant, [head]);
      else list.push(head);
    }
    // Those of the last moment, or of a server that was killed.
    const journal = await db.read(`SELECT number, body FROM ${schema}.journal ORDER BY shard, number`);
    const keys = await db.read(`SELECT body FROM ${schema}.live WHERE kind = 'ledger_key' ORDER BY shard, n`);
    const unfolded = journal
      .flatMap((row) => readJournalEntry(row).puts)
      .filter(({ kind }) => kind === "ledger_key")
      .map(({ body }) => body);
    return {
      heads,
      keys: [...keys.map(({ body }) => String(body)), ...unfolded].map(
        (body) => JSON.parse(body) as PostgresLedger["keys"][number],
      ),
      receipts: () => receiptsIn(db),
      close: () => db.close(),
    };
  } catch (error) {
    await db.close();
    throw error;
  }
}

async function* receiptsIn(db: Database): AsyncGenerator<StoredReceipt> {
  let [shard, tenant, sequence] = [-1, "", 0];
  for (;;) {
    const rows = await db.read(
      `SELECT shard, ${receiptRow.columns.join()} FROM ${db.schema}.receipts
       WHERE (shard, tenant, sequence) > ($1, $2, $3) ORDER BY shard, tenant, sequence LIMIT ${rowsPerPortion}`,
      [shard, tenant, sequence],
    );
    for (const row of rows) yield receiptRow.read(row);
    const last = rows.at(-1);
    if (last === undefined) return;
    [shard, tenant, sequence] = [Number(last["shard"]), String(last["tenant"]), Number(last["sequence"])];
  }
}
