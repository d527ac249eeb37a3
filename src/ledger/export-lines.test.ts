import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { ExportCheck, receiptLine } from "./export-lines.ts";
import { headJson, signHead } from "./head.ts";
import { createLedgerKey } from "./keys.ts";
import { sampleReceipt } from "./sample-receipt.ts";
import { genesisHash, seal } from "./seal.ts";
import { Verifier } from "./verify.ts";

const scratch = mkdtempSync(join(tmpdir(), "leasehold-export-"));
after(() => rmSync(scratch, { recursive: true }));

const key = createLedgerKey();

function exportOf(tenants: readonly string[], count: number, signer = key): string[] {
  const lines: string[] = [];
  const ends = new Map<string, string>();
  for (let sequence = 1; sequence <= count; sequence += 1) {
    for (const tenant of tenants) {
      const receipt = sampleReceipt(sequence, { tenant, outcomeText: 'said "žluť 漢 🦊"\n', metadata: { hash: "x" } });
      const { text, hash } = seal(receipt, ends.get(tenant) ?? genesisHash);
      ends.set(tenant, hash);
      lines.push(receiptLine(text, hash));
    }
  }
  for (const [tenant, hash] of ends) {
    const head = signHead({ tenant, sequence: count, hash, at: 1_800_000_000_000 }, signer);
    lines.push(headJson(head, signer.publicKey));
  }
  return lines;
}

function check(lines: readonly string[]) {
  const verifier = new Verifier({});
  const exported = new ExportCheck(verifier);
  for (const line of lines) exported.take(line);
  exported.finish();
  return verifier.finish();
}

const lines = exportOf(["a", "b"], 20);

describe("R6: an export", () => {
  test("is complete as written, and names the key that signed it", () => {
    const { findings, receipts, keyIds } = check(lines);
    assert.deepEqual({ findings, receipts, keyIds }, { findings: [], receipts: 40, keyIds: [key.keyId] });
  });

  test("shows any changed byte, any line that is missing, repeated or out of order", () => {
    const spoiled = fc.oneof(
      fc.record({ how: fc.constant("byte" as const), line: fc.nat(lines.length - 1), at: fc.nat(), bit: fc.nat(7) }),
      fc.record({ how: fc.constantFrom("remove" as const, "double" as const), line: fc.nat(lines.length - 1) }),
      fc.record({ how: fc.constant("swap" as const), line: fc.nat(19), with: fc.nat(19) }),
      fc.record({ how: fc.constant("cut" as const), line: fc.integer({ min: 1, max: lines.length - 1 }) }),
    );
    fc.assert(
      fc.property(spoiled, (change) => {
        const line = lines[change.line] ?? "";
        const isHead = change.line >= 40;
        switch (change.how) {
          case "byte": {
            const bytes = Buffer.from(line, "latin1");
            const place = change.at % bytes.length;
            bytes[place] = (bytes[place] ?? 0) ^ (1 << change.bit);
            assert.notDeepEqual(check(lines.with(change.line, bytes.toString("latin1"))).findings, []);
            break;
          }
          case "remove":
            assert.notDeepEqual(check(lines.toSpliced(change.line, 1)).findings, []);
            break;
          case "double":
            // A repeated head is still true.
            if (!isHead) assert.notDeepEqual(check(lines.toSpliced(change.line, 0, line)).findings, []);
            break;
          case "swap": {
            const [one, other] = [2 * change.line, 2 * change.with];
            if (one === other) return;
            const swapped = lines.with(one, lines[other] ?? "").with(other, lines[one] ?? "");
            assert.notDeepEqual(check(swapped).findings, []);
            break;
          }
          case "cut":
            assert.notDeepEqual(check(lines.slice(0, change.line)).findings, []);
            break;
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test("that was written again with another key is recognised only by the key's id", () => {
    const other = createLedgerKey();
    const forged = exportOf(["a"], 5, other);
    const { findings, keyIds } = check(forged);
    assert.deepEqual([findings, keyIds], [[], [other.keyId]]);
    const pretending = (forged.at(-1) ?? "").replace(other.keyId, key.keyId);
    assert.deepEqual(
      check(forged.with(-1, pretending)).findings.map(({ code }) => code),
      ["key_unknown", "end_unsigned"],
    );
  });
});

describe("R6: the program in docs/ledger.md", () => {
  const program = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/ledger.md", "utf8"))?.[1] ?? "";
  const script = join(scratch, "check.mjs");
  writeFileSync(script, program);
  const run = (checked: readonly string[]): string => {
    const file = join(scratch, "ledger.jsonl");
    writeFileSync(file, `${checked.join("\n")}\n`, "latin1");
    return execFileSync(process.execPath, [script, file], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  };

  test("accepts a complete export", () => {
    const { hash } = JSON.parse(lines.at(-1) ?? "") as { readonly hash: string };
    assert.match(run(lines), new RegExp(`^a 20 [0-9a-f]{64} ${key.keyId}\nb 20 ${hash} ${key.keyId}\n$`));
  });

  test("finds a changed, a missing and a moved receipt, a forged head and a truncated end", () => {
    const line = lines[6] ?? "";
    const changed = line.replace("Nothing", "nothing").replace("said", "Said");
    assert.throws(() => run(lines.with(6, changed)), /a, receipt 4: was changed/);
    assert.throws(() => run(lines.toSpliced(6, 1)), /a, receipt 5: does not follow/);
    assert.throws(() => run(lines.with(6, lines[8] ?? "").with(8, line)), /a, receipt 5: does not follow/);
    const forged = (lines[40] ?? "").replace("2027", "2028");
    assert.throws(() => run(lines.with(40, forged)), /a, receipt 20: the signature is wrong/);
    assert.throws(() => run(lines.slice(0, -1)), /b: the end is not signed/);
  });
});
