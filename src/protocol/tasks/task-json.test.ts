import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Offer } from "../../kernel/contract/replies.ts";
import * as receiptShapes from "../receipts/receipt-shapes.ts";
import { checkOf } from "../schema/check.ts";
import { answerOf } from "../testing/sample-answers.ts";
import { sampleLease, sampleNow, samplePayload, sampleTask } from "../testing/sample-records.ts";
import { obligationObject, offerForm, taskObject } from "./task-json.ts";
import * as shapes from "./task-shapes.ts";

const lease = sampleLease({ resource: "TASK:/tsk_1", agentId: "worker.codegen-1", holder: "tsk_1" });
const offer = { task: sampleTask(), payload: samplePayload(), lease, leases: [], attempt: 1, acceptedAs: null };

test("an offer has the AsyncGate document's fields under its names, and fence and attempt beside them (T1)", () => {
  assert.deepEqual(JSON.parse(offerForm.text(offer, { now: sampleNow })), {
    lease_id: "lse_01jcs8qm5t6w8y0a",
    lease_expires_at: "2026-11-15T21:00:51.123Z",
    expires_in_ms: 60_000,
    fence: 4711,
    attempt: 1,
    task: {
      task_id: "T-01jcs8qm5t6w8y0a2b4d6f",
      principal_ai: "delegate.root",
      task_type: "code.generate",
      task_summary: "Generate Python function for CSV parsing",
      task_body: "Create a function that reads CSV…",
      payload_pointer: null,
      inputs: { language: "python" },
      expected_outcome_kind: "artifact_pointer",
      expected_artifact_mime: "text/x-python",
    },
  });
});

test("an offer's text is well-formed JSON whatever its texts hold", () => {
  const anyText = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom('"', "\\", "\u2028", "\ud800", "\0"));
  fc.assert(
    fc.property(anyText, anyText, fc.jsonValue(), (summary, body, inputs) => {
      const task = sampleTask({ spec: { ...sampleTask().spec, taskSummary: summary } });
      const any = { ...offer, task, payload: samplePayload({ taskBody: body, inputs }) };
      const text = offerForm.text(any, { now: sampleNow });
      assert.equal(text, JSON.stringify(offerForm.object(any, { now: sampleNow })));
      const shown = JSON.parse(text) as { readonly task: { readonly inputs: unknown } };
      assert.ok(checkOf(shapes.offer)(shown).ok || /[\0\ud800-\udfff]/.test(summary + body));
      assert.deepEqual(shown.task.inputs, JSON.parse(JSON.stringify(inputs)));
    }),
  );
});

test("no work is 204 with an empty body and a back-off of 5 s; one offer is bare, several come in a list (T1, T6)", () => {
  const none = operationAnswer([], false);
  assert.deepEqual([none.status, none.body, none.retryAfter], [204, "", 5]);
  assert.ok("lease_id" in JSON.parse(operationAnswer([offer], false).body));
  assert.equal(JSON.parse(operationAnswer([offer], true).body).offers.length, 1);
  assert.equal(JSON.parse(operationAnswer([offer, offer], false).body).offers.length, 2);
});

function operationAnswer(offers: readonly Offer[], inList: boolean) {
  return answerOf("poll_tasks", { type: "offers", offers, more: false }, { now: sampleNow, inList });
}

test("the leases of a task's manifest come with its offer and its heartbeat, and directives tell the worker (T8, T10)", () => {
  const withLeases = { ...offer, leases: [sampleLease()] };
  assert.equal(JSON.parse(operationAnswer([withLeases], false).body).leases[0].resource, "FILE:/src/auth.ts");
  const beat = { type: "task_lease", lease, leases: [sampleLease()], directives: ["cancel"] } as const;
  const { body } = answerOf("heartbeat_task", beat);
  assert.deepEqual(JSON.parse(body).directives, ["cancel"]);
  assert.equal(JSON.parse(body).leases.length, 1);
});

test("tasks and obligations are what their schemas say", () => {
  const live = {
    leaseId: "lse_1",
    fence: 3,
    workerId: "w.1",
    offeredAt: sampleNow,
    acceptedAt: null,
    receiptId: null,
    canceled: false,
    custodian: null,
    preemptFor: null,
    preemptBy: null,
  };
  const obligation = { id: "obl_1", state: "OPEN", custodian: "w.1", openedAt: sampleNow } as const;
  const task = sampleTask({ live: [live], obligation, notBefore: sampleNow });
  assert.deepEqual(checkOf(shapes.task)(taskObject(task)), { ok: true, value: taskObject(task) });
  assert.ok(checkOf(receiptShapes.obligation)(obligationObject({ task, obligation })).ok);
  answerOf("create_task", { type: "task", task, created: true, warnings: [] });
  answerOf("cancel_task", { type: "task", task, created: false, warnings: [] });
});

test("a receipt that comes too late is 409, a heartbeat of the same lease 410", () => {
  const late = { type: "refused", code: "lease_expired", detail: "It is over.", leaseId: "lse_1" } as const;
  assert.equal(answerOf("submit_receipt", late).status, 409);
  assert.equal(answerOf("heartbeat_task", late).status, 410);
});

test("an invalid worker_id is refused in the document's own words", () => {
  const refusal = { type: "refused", code: "invalid_worker_id", detail: "Whatever.", field: "worker_id" } as const;
  const { status, body } = answerOf("poll_tasks", refusal);
  assert.deepEqual(
    [status, body],
    [400, '{"error":"invalid_worker_id","detail":"must match pattern {type}.{instance}"}'],
  );
});
