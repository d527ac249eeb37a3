/**
 * The ledger alone: how fast receipts are sealed and stored, verified and exported, and an export is verified (R6).
 *
 *   npm run bench:ledger [-- --quick | --receipts 1000000]
 */
import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { exportLedger, verifyLedger } from "../src/cli/ledger/ledger.ts";
import { LedgerChain } from "../src/engine/ledger-chain.ts";
import { openLedgerKey } from "../src/ledger/key-file.ts";
import { sampleReceipt } from "../src/ledger/sample-receipt.ts";
import { storedReceipt } from "../src/ledger/seal.ts";
import { createSqliteStore } from "../src/store/sqlite.ts";
import { dataFiles } from "../src/store/sqlite-files.ts";
import type { Batch, SignedHead, StoredReceipt } from "../src/store/store.ts";
import { format, removeFolder } from "./children.ts";

const { values } = parseArgs({ options: { quick: { type: "boolean" }, receipts: { type: "string" } } });
const total = Number(values.receipts ?? (values.quick ? 200_000 : 1_000_000));
const perBatch = 500;
const barPerSecond = 100_000;

const folder = mkdtempSync(join(tmpdir(), "leasehold-ledger-"));
const exported = join(folder, "export.jsonl");
try {
  await fill();
  const mebibytes = statSync(dataFiles(folder).database).size / 2 ** 20;
  console.log(`  the database has ${format(mebibytes)} MiB, ${format((mebibytes * 2 ** 20) / total)} bytes a receipt`);
  const verified = await timed("checked", async () => {
    const { isWhole, text } = verifyLedger({ data: folder, file: null, anchor: null, tenant: null });
    if (!isWhole) throw new Error(text);
  });
  await timed("exported, and checked on the way", () => exportLedger({ data: folder, tenant: null, out: exported }));
  await timed("checked from the export", async () => {
    const { isWhole, text } = verifyLedger({ data: folder, file: exported, anchor: null, tenant: null });
    if (!isWhole) throw new Error(text);
  });
  console.log(`bar ${format(barPerSecond)} checked a second${verified >= barPerSecond ? "" : ": MISSED"}`);
  if (verified < barPerSecond) process.exitCode = 1;
} finally {
  removeFolder(folder);
}

/** As in the engine: sealed on the main thread, one batch being committed while the next one is sealed. */
async function fill(): Promise<void> {
  const store = createSqliteStore(folder);
  const { lastN } = await store.open();
  const key = openLedgerKey(folder);
  const ledger = new LedgerChain(key, []);
  const { keyId, publicKey } = key;
  const body = JSON.stringify({ keyId, publicKey, firstUsedAt: 1 });
  await store.commit(batchOf(1, [], [], [{ n: lastN + 1, kind: "ledger_key", body }]));
  let sealing = 0;
  let underWay: Promise<void> = Promise.resolve();
  await timed("sealed and stored", async () => {
    for (let first = 1; first <= total; first += perBatch) {
      const began = performance.now();
      const receipts = Array.from({ length: perBatch }, (_, index) => sampleReceipt(first + index));
      const now = receipts.at(-1)?.storedAt ?? 0;
      const sealed = receipts.map((receipt) => ledger.seal(receipt, now));
      const batch = batchOf(now, sealed.map(storedReceipt), ledger.dueHeads(now));
      sealing += performance.now() - began;
      await underWay;
      underWay = store.commit(batch);
    }
    await underWay;
  });
  console.log(`  ${((sealing / total) * 1_000).toFixed(2)} µs of the main thread for making and sealing one`);
  await store.close();
}

function batchOf(now: number, receipts: StoredReceipt[], heads: SignedHead[], puts: Batch["puts"] = []): Batch {
  return {
    now,
    puts,
    removes: [],
    payloads: [],
    payloadRemoves: [],
    events: null,
    ended: [],
    endedTasks: [],
    endedRequests: [],
    receipts,
    heads,
    audits: [],
  };
}

async function timed(what: string, work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  const used = process.cpuUsage();
  await work();
  const perSecond = total / ((performance.now() - began) / 1_000);
  const { user, system } = process.cpuUsage(used);
  const ofProcessor = format(total / ((user + system) / 1_000_000));
  console.log(
    `${format(total)} receipts ${what}: ${format(perSecond)} a second (${ofProcessor} a second of processor time)`,
  );
  return perSecond;
}
