import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyObject, faultAnswer } from "../answers/answer.ts";
import { findOperation } from "../operations.ts";
import { checkOf } from "../schema/check.ts";
import { sampleReceipt } from "../testing/sample-records.ts";
import { decodeReceipt, type NewReceipt, newReceipt, receiptFault } from "./receipt-fields.ts";
import { receiptForm } from "./receipt-json.ts";
import { receipt as receiptShape } from "./receipt-shapes.ts";

/** Every field of a full receipt of version 1, with nothing to say. */
const absent = {
  schema_version: "1.0",
  tenant_id: "NA",
  receipt_id: "NA",
  task_id: "NA",
  obligation_id: "NA",
  parent_task_id: "NA",
  caused_by_receipt_id: "NA",
  dedupe_key: "NA",
  attempt: 0,
  from_principal: "NA",
  for_principal: "NA",
  source_system: "NA",
  recipient_ai: "NA",
  trust_domain: "NA",
  phase: "accepted",
  status: "NA",
  realtime: null,
  task_type: "NA",
  task_summary: "TBD",
  task_body: "TBD",
  inputs: {},
  expected_outcome_kind: "NA",
  expected_artifact_mime: "NA",
  outcome_kind: "NA",
  outcome_text: "NA",
  artifact_location: "NA",
  artifact_pointer: "NA",
  artifact_checksum: "NA",
  artifact_size_bytes: 0,
  artifact_mime: "NA",
  artifact_refs: [],
  escalation_class: "NA",
  escalation_reason: "TBD",
  escalation_to: "NA",
  retry_requested: null,
  body: {},
  created_at: null,
  stored_at: null,
  started_at: null,
  completed_at: null,
  read_at: null,
  archived_at: null,
  metadata: {},
} satisfies NewReceipt;

test("R2: NA, TBD, null, {}, [] and 0 all say that a field is left out", () => {
  assert.deepEqual(decodeReceipt(absent), decodeReceipt({ phase: "accepted" }));
  assert.deepEqual(
    Object.entries(decodeReceipt(absent)).filter(([, value]) => value !== null),
    [["phase", "accepted"]],
  );
});

test("what is given is kept, times as milliseconds", () => {
  const decoded = decodeReceipt({
    phase: "complete",
    attempt: 2,
    completed_at: "2026-01-04T15:45:00Z",
    started_at: "2026-01-04T16:44:59.5+01:00",
    inputs: { a: 0 },
    artifact_refs: ["x"],
    retry_requested: false,
  });
  assert.equal(decoded.completedAt, Date.UTC(2026, 0, 4, 15, 45));
  assert.equal(decoded.startedAt, Date.UTC(2026, 0, 4, 15, 44, 59, 500));
  assert.deepEqual([decoded.attempt, decoded.inputs, decoded.artifactRefs], [2, { a: 0 }, ["x"]]);
  assert.equal(decoded.retryRequested, false);
});

test("whatever is wrong with a receipt's body is 422 invalid_receipt with field and reason", () => {
  const submit = findOperation("submit_receipt");
  assert.ok(submit !== undefined);
  const cases: readonly (readonly [object, string, string])[] = [
    [{ surprise: 1 }, "surprise", '"surprise" is not a known field'],
    [{ attempt: "2" }, "attempt", "attempt is a string"],
    [{ completed_at: "yesterday" }, "completed_at", "completed_at is not a time in ISO 8601 with a zone"],
    [{ schema_version: "2.0" }, "schema_version", "schema_version is not of version 1"],
    [{ inputs: { constructor: 1 } }, "inputs", 'inputs has the key "constructor", which cannot be stored safely'],
    [{ receipt_id: "x".repeat(129) }, "receipt_id", "receipt_id has 129 characters"],
    [{ phase: 7 }, "phase", "phase is an integer"],
  ];
  for (const [over, field, reason] of cases) {
    const checked = submit.check({ phase: "accepted", ...over });
    assert.ok(!checked.ok);
    const answer = faultAnswer(checked);
    const { status } = answer;
    const shown = bodyObject(answer) as { error: string; field: string; reason: string };
    assert.deepEqual([status, shown.error, shown.field, shown.reason], [422, "invalid_receipt", field, reason]);
  }
  const missing = submit.check({});
  assert.ok(!missing.ok);
  assert.deepEqual([missing.code, missing.field], ["invalid_receipt", "phase"]);
});

test("a receipt is shown in full, with the marks of what is absent, and can be sent again as it was shown", () => {
  const shown = JSON.parse(
    receiptForm.text({ receipt: sampleReceipt(), hash: "ab".repeat(32), previousHash: "0".repeat(64) }, { now: 0 }),
  ) as Record<string, unknown>;
  assert.ok(checkOf(receiptShape)(shown).ok);
  const { hash: _hash, previous_hash: _previous, sequence: _sequence, ...sent } = shown;
  assert.deepEqual(Object.keys(sent).toSorted(), [...Object.keys(absent), "submitted_by"].toSorted());
  const checked = checkOf(newReceipt)(sent);
  assert.ok(checked.ok, JSON.stringify(checked));
  assert.equal(receiptFault(checked.value), null);
  const decoded = decodeReceipt(checked.value);
  assert.deepEqual([decoded.receiptId, decoded.status, decoded.taskBody, decoded.inputs], ["rcp_7", null, null, null]);
});

test("in a batch a bad receipt costs its own answer and no other", () => {
  const submit = findOperation("submit_receipts");
  assert.ok(submit?.kind === "command");
  const input = { receipts: [{ phase: "accepted", lease_id: "lse_1" }, { phase: "accepted", surprise: 1 }, 7] };
  const checked = submit.check(input);
  assert.ok(checked.ok);
  const decoded = submit.decode(checked.value, {
    tenant: "default",
    actor: { role: "operator", agentId: null, epoch: null },
    entropy: [1, 2],
  });
  assert.ok(decoded.type === "submit_receipts");
  assert.deepEqual(
    decoded.items.map((item) => (item.ok ? "good" : [item.fault.code, item.fault.field])),
    ["good", ["invalid_receipt", "surprise"], ["invalid_receipt", ""]],
  );
});
