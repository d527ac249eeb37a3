import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { receiptIdOf } from "../src/kernel/receipts/receipts.ts";
import { batch, receipt } from "../src/store/contract-fixture.ts";
import { createSqliteStore } from "../src/store/sqlite.ts";

test("the store finds receipts by the ids that the kernel derives from their numbers (R6)", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-receipt-ids-"));
  const store = createSqliteStore(folder);
  try {
    await store.open();
    const made = [1, 31, 32, 1_023, 1_024, 2 ** 40].map((number) => receipt(number, { id: receiptIdOf(number) }));
    await store.commit(batch({ now: 1, receipts: made }));
    assert.deepEqual(
      await store.receiptsById(
        "t",
        made.map(({ id }) => id),
      ),
      made,
    );
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
