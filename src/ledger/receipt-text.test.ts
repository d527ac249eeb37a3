import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  completeStatuses,
  escalationClasses,
  outcomeKinds,
  type Receipt,
  receiptPhases,
} from "../kernel/contract/task-records.ts";
import { sampleReceipt } from "./sample-receipt.ts";
import {
  beginsAs,
  genesisHash,
  hashOf,
  readReceipt,
  readStoredReceipt,
  receiptText,
  seal,
  storedReceipt,
  textStart,
} from "./seal.ts";

const time = fc.integer({ min: 0, max: 4_000_000_000_000 });
const orNull = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: null });
const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 60 }), fc.string({ unit: "binary", maxLength: 20 }));
/** What survives JSON unchanged: it has no negative zero. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

export const anyReceipt: fc.Arbitrary<Receipt> = fc.record(
  {
    tenant: text,
    sequence: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    id: text,
    taskId: text,
    obligationId: orNull(text),
    storedAt: time,
    phase: fc.constantFrom(...receiptPhases),
    parentTaskId: orNull(text),
    causedByReceiptId: orNull(text),
    dedupeKey: orNull(text),
    attempt: fc.nat(),
    fromPrincipal: orNull(text),
    forPrincipal: orNull(text),
    sourceSystem: text,
    recipientAi: text,
    trustDomain: orNull(text),
    status: orNull(fc.constantFrom(...completeStatuses)),
    realtime: fc.boolean(),
    taskType: text,
    taskSummary: orNull(text),
    taskBody: orNull(fc.string({ unit: "grapheme", maxLength: 500 })),
    inputs: json,
    expectedOutcomeKind: orNull(text),
    expectedArtifactMime: orNull(text),
    outcomeKind: orNull(fc.constantFrom(...outcomeKinds)),
    outcomeText: orNull(text),
    artifactLocation: orNull(text),
    artifactPointer: orNull(text),
    artifactChecksum: orNull(text),
    artifactSizeBytes: fc.nat(),
    artifactMime: orNull(text),
    artifactRefs: json,
    escalationClass: orNull(fc.constantFrom(...escalationClasses)),
    escalationReason: orNull(text),
    escalationTo: orNull(text),
    retryRequested: fc.boolean(),
    body: json,
    createdAt: fc.oneof(time, fc.integer({ min: -8.64e15, max: 8.64e15 })),
    startedAt: orNull(time),
    completedAt: orNull(time),
    readAt: orNull(time),
    archivedAt: orNull(time),
    metadata: json,
    submittedBy: orNull(text),
  },
  { noNullPrototype: true },
);

test("R1: a receipt is read back from its text unchanged, whatever it contains", () => {
  fc.assert(
    fc.property(anyReceipt, (receipt) => {
      const sealed = seal(receipt, genesisHash);
      assert.deepEqual(readReceipt(sealed.text), receipt);
      assert.deepEqual(readStoredReceipt(storedReceipt(sealed)), sealed);
    }),
  );
});

test("R6: the text is ASCII on one line, and begins with its number and the hash before it", () => {
  fc.assert(
    fc.property(anyReceipt, (receipt) => {
      const before = hashOf("before");
      const written = receiptText(receipt, before);
      assert.match(written, /^[\x20-\x7f]*$/);
      assert.ok(written.startsWith(`{"sequence":${receipt.sequence},"previous_hash":"${before}",`));
      assert.ok(written.startsWith(textStart(storedReceipt(seal(receipt, before)), before)));
    }),
  );
});

test("a row matches the beginning of its own text, and of no other", () => {
  const row = storedReceipt(seal(sampleReceipt(7), genesisHash));
  assert.ok(beginsAs(row.body, row, genesisHash));
  const changes = {
    sequence: 8,
    tenant: "x",
    id: "x",
    taskId: "T-",
    phase: "x",
    recipientAi: "",
    sourceSystem: "code.70",
  };
  for (const [name, value] of Object.entries({ ...changes, dedupe: null, storedAt: row.storedAt + 1 })) {
    assert.ok(!beginsAs(row.body, { ...row, [name]: value }, genesisHash), name);
  }
  assert.ok(!beginsAs(row.body, row, hashOf("another")));
  const reaching = `${row.id}","task_id":"${row.taskId}`;
  assert.ok(!beginsAs(row.body, { ...row, id: reaching, taskId: "" }, genesisHash));
});

test("a time beyond the range of Date is kept as a number", () => {
  const receipt = sampleReceipt(1, { createdAt: 9e15, startedAt: 1.5 });
  assert.deepEqual(readReceipt(receiptText(receipt, genesisHash)), receipt);
});
