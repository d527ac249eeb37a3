import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { SignedHead, StoredReceipt } from "../store/store.ts";
import { signHead } from "./head.ts";
import { createLedgerKey } from "./keys.ts";
import { sampleReceipt } from "./sample-receipt.ts";
import { genesisHash, hashOf, seal, storedReceipt } from "./seal.ts";
import { type VerifyOptions, verifyLedger } from "./verify.ts";

const key = createLedgerKey();
const size = 30;

/** The ledgers of two tenants as a store has them, one receipt of each in turn. */
function ledger(count = size): StoredReceipt[] {
  const rows: StoredReceipt[] = [];
  const ends = new Map<string, string>();
  for (let sequence = 1; sequence <= count; sequence += 1) {
    for (const tenant of ["a", "b"]) {
      const sealed = seal(sampleReceipt(sequence, { tenant }), ends.get(tenant) ?? genesisHash);
      ends.set(tenant, sealed.hash);
      rows.push(storedReceipt(sealed));
    }
  }
  return rows;
}

function headOf(rows: readonly StoredReceipt[], tenant: string, sequence: number, signer = key): SignedHead {
  const hash = rows.find((row) => row.tenant === tenant && row.sequence === sequence)?.hash ?? genesisHash;
  return signHead({ tenant, sequence, hash, at: 1_800_000_000_000 }, signer);
}

function check(rows: readonly StoredReceipt[], options: VerifyOptions = {}) {
  const { findings } = verifyLedger(rows, { keys: [key], ...options });
  return findings.map(({ code, tenant, sequence }) => ({ code, tenant, sequence }));
}

/** The rows of the store, with one change at a time. */
const whole = ledger();
const heads = new Map([["a", [10, 20, size].map((sequence) => headOf(whole, "a", sequence))]]);
const at = (tenant: string, sequence: number): number =>
  whole.findIndex((row) => row.tenant === tenant && row.sequence === sequence);

describe("R6: what a check finds", () => {
  test("nothing, if nothing was changed", () => {
    const verdict = verifyLedger(whole, {
      keys: [key],
      heads,
      anchors: [headOf(whole, "b", 7), headOf(whole, "b", 0)],
    });
    assert.deepEqual(verdict.findings, []);
    assert.deepEqual([verdict.receipts, verdict.heads, verdict.keyIds], [2 * size, 5, [key.keyId]]);
    const hash = whole[at("a", size)]?.hash;
    assert.deepEqual(verdict.ends[0], { tenant: "a", sequence: size, hash });
  });

  test("any flipped bit of any text, at the receipt that it is in", () => {
    fc.assert(
      fc.property(fc.nat({ max: whole.length - 1 }), fc.nat(), fc.nat({ max: 6 }), (index, place, bit) => {
        const row = whole[index];
        if (row === undefined) return;
        const bytes = Buffer.from(row.body);
        const offset = place % bytes.length;
        bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
        const found = check(whole.with(index, { ...row, body: bytes.toString() }));
        assert.deepEqual(found, [{ code: "receipt_changed", tenant: row.tenant, sequence: row.sequence }]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("any changed column, at its receipt", () => {
    const changes: Partial<StoredReceipt> = {
      id: "rcp_other",
      taskId: "T-other",
      phase: "progress",
      recipientAi: "other",
      sourceSystem: "other.1",
      dedupe: null,
      storedAt: 1,
    };
    for (const [index, row] of whole.entries()) {
      for (const [name, value] of Object.entries(changes)) {
        const found = check(whole.with(index, { ...row, [name]: value }));
        assert.deepEqual(found, [{ code: "column_changed", tenant: row.tenant, sequence: row.sequence }], name);
      }
      const { tenant, sequence } = row;
      const hash = hashOf("other");
      assert.deepEqual(check(whole.with(index, { ...row, hash })), [{ code: "receipt_changed", tenant, sequence }]);
    }
  });

  test("a changed text with a matching hash, at the next receipt or at the head that was signed for it", () => {
    for (const sequence of [5, 19, size]) {
      const index = at("a", sequence);
      const sealed = seal(
        sampleReceipt(sequence, { tenant: "a", outcomeText: "forged" }),
        whole[at("a", sequence - 1)]?.hash ?? "",
      );
      const found = check(whole.with(index, storedReceipt(sealed)), { heads });
      const expected = sequence === size ? ["head_mismatch", size] : ["chain_broken", sequence + 1];
      assert.deepEqual(found, [{ code: expected[0], tenant: "a", sequence: expected[1] }]);
    }
  });

  test("a whole tail that was written again, at the first head that does not match", () => {
    const forged = whole.filter((row) => row.tenant === "b" || row.sequence < 12);
    let previous = whole[at("a", 11)]?.hash ?? "";
    for (let sequence = 12; sequence <= size; sequence += 1) {
      const sealed = seal(sampleReceipt(sequence, { tenant: "a", outcomeText: "forged" }), previous);
      previous = sealed.hash;
      forged.push(storedReceipt(sealed));
    }
    const found = check(forged, { heads });
    assert.deepEqual(found[0], { code: "head_mismatch", tenant: "a", sequence: 20 });
  });

  test("any removed receipt but the last, at its number", () => {
    for (const [index, { tenant, sequence }] of whole.entries()) {
      if (sequence === size) continue;
      assert.deepEqual(check(whole.toSpliced(index, 1)), [{ code: "receipts_missing", tenant, sequence }]);
    }
  });

  test("any two receipts that were swapped, at the first of them", () => {
    fc.assert(
      fc.property(fc.nat({ max: size - 1 }), fc.nat({ max: size - 1 }), fc.boolean(), (one, other, wholeRows) => {
        if (one === other) return;
        const [first, second] = [at("a", Math.min(one, other) + 1), at("a", Math.max(one, other) + 1)];
        const [early, late] = [whole[first], whole[second]];
        if (early === undefined || late === undefined) return;
        // Whole rows, or only their contents under the existing numbers.
        const swapped = wholeRows
          ? whole.with(first, late).with(second, early)
          : whole
              .with(first, { ...early, body: late.body, hash: late.hash })
              .with(second, { ...late, body: early.body, hash: early.hash });
        const [found] = check(swapped);
        assert.deepEqual(
          { tenant: found?.tenant, sequence: found?.sequence },
          { tenant: "a", sequence: early.sequence },
        );
      }),
    );
  });

  test("a receipt that was inserted, repeated, or moved from another tenant", () => {
    for (let sequence = 2; sequence <= size; sequence += 1) {
      const index = at("a", sequence);
      const before = whole[at("a", sequence - 1)];
      if (before === undefined) return;
      const extra = storedReceipt(seal(sampleReceipt(sequence, { tenant: "a", taskId: "T-extra" }), before.hash));
      const slippedIn = check(whole.toSpliced(index, 0, extra));
      assert.deepEqual(slippedIn, [{ code: "receipt_out_of_place", tenant: "a", sequence: sequence + 1 }]);
      assert.deepEqual(check(whole.toSpliced(index, 0, before)), [
        { code: "receipt_out_of_place", tenant: "a", sequence },
      ]);
    }
    const moved = whole.map((row) => (row.tenant === "b" ? { ...row, tenant: "c" } : row));
    assert.deepEqual(check(moved), [{ code: "column_changed", tenant: "c", sequence: 1 }]);
  });

  test("a cut tail: against the ledger's own heads, and against an anchor if those were cut too", () => {
    for (let length = 0; length < size; length += 1) {
      const cut = whole.filter((row) => row.tenant === "b" || row.sequence <= length);
      const expected = [{ code: "ledger_cut", tenant: "a", sequence: length + 1 }];
      assert.deepEqual(check(cut, { heads }), expected);
      assert.deepEqual(check(cut, { anchors: [headOf(whole, "a", size)] }), expected);
      assert.deepEqual(check(cut), [], "without a head nothing can be found");
    }
  });

  test("a forged head: another hash, another signature, another key, or a time that was not signed", () => {
    const good = headOf(whole, "a", 10);
    const stranger = headOf(whole, "a", 10, createLedgerKey());
    const forgeries: readonly (readonly [SignedHead, string])[] = [
      [{ ...good, hash: hashOf("other") }, "signature_wrong"],
      [{ ...good, at: good.at + 1 }, "signature_wrong"],
      [{ ...good, signature: stranger.signature }, "signature_wrong"],
      [{ ...good, signature: "" }, "signature_wrong"],
      [{ ...good, sequence: 9 }, "signature_wrong"],
      [stranger, "key_unknown"],
      [{ ...stranger, keyId: key.keyId }, "signature_wrong"],
      [signHead({ ...good, hash: hashOf("other") }, key), "head_mismatch"],
    ];
    for (const [head, code] of forgeries) {
      const expected = [{ code, tenant: "a", sequence: head.sequence }];
      assert.deepEqual(check(whole, { heads: new Map([["a", [head]]]) }), expected);
      assert.deepEqual(check(whole, { anchors: [head] }), expected);
    }
    const impostor = { keyId: key.keyId, publicKey: createLedgerKey().publicKey };
    assert.deepEqual(check(whole, { keys: [impostor], anchors: [good] })[0]?.code, "key_unknown");
  });

  test("a break in one tenant's ledger does not affect another's", () => {
    const found = check(whole.toSpliced(at("b", 9), 1).toSpliced(at("a", 3), 1));
    assert.deepEqual(
      found.map(({ tenant }) => tenant),
      ["a", "b"],
    );
  });

  test("empty or malformed rows are findings, not faults", () => {
    const row = whole[4];
    if (row === undefined) return;
    for (const body of ["", "null", "[]", "{", '{"sequence":3}']) {
      assert.equal(check(whole.with(4, { ...row, body, hash: hashOf(body) })).length, 1, body);
    }
    assert.equal(check(whole.with(4, { ...row, sequence: Number.NaN })).length, 1);
    assert.equal(check([{ ...row, tenant: "", sequence: 0 }]).length, 1);
  });

  test("an unpaired surrogate in a key, which a store cannot keep, is not a finding", () => {
    const sealed = seal(sampleReceipt(1, { tenant: "a", dedupeKey: "\ud83e-" }), genesisHash);
    const row = storedReceipt(sealed);
    assert.deepEqual(check([{ ...row, dedupe: "\ufffd-" }]), []);
    assert.equal(check([{ ...row, dedupe: "\ufffd+" }]).length, 1);
  });
});
