/** The part of the contract about the audit log (S7). */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { batch, type Check } from "./contract-fixture.ts";
import type { AuditRow } from "./store.ts";

function row(sequence: number, parts: Partial<AuditRow> = {}): AuditRow {
  const usual = { tenant: "t", at: sequence * 10, actor: "key_1", action: "revoke", hash: `h${sequence}`, body: "{}" };
  return { sequence, ...usual, ...parts };
}

export function describeAudit(name: string, check: Check): void {
  describe(`${name}: the audit log`, () => {
    check(
      "S7: entries are found by time, actor and action, page by page, by their own tenant only",
      async (_, store) => {
        await store.open();
        const mine = [row(1), row(2, { actor: "key_2" }), row(3, { action: "create_key" }), row(4)];
        await store.commit(batch({ now: 100, audits: [...mine, row(1, { tenant: "other" })] }));
        const page = (query: object) =>
          store.auditPage({ tenant: "t", after: 0, since: null, actor: null, action: null, limit: 10, ...query });
        assert.deepEqual(await page({}), mine);
        assert.deepEqual(await page({ limit: 2, after: 1 }), mine.slice(1, 3));
        assert.deepEqual(await page({ since: 30 }), mine.slice(2));
        assert.deepEqual(await page({ actor: "key_2" }), [mine[1]]);
        assert.deepEqual(await page({ action: "create_key" }), [mine[2]]);
        assert.deepEqual(await page({ tenant: "none" }), []);
        assert.deepEqual(await store.auditHeads(), [row(1, { tenant: "other" }), mine[3]]);
      },
    );
  });
}
