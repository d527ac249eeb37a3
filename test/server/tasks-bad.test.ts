import assert from "node:assert/strict";
import { test } from "node:test";
import { newReceipt } from "../../src/protocol/receipts/receipt-fields.ts";
import type { TSchema } from "../../src/protocol/schema/schema.ts";
import { newTask, taskExample } from "../../src/protocol/tasks/task-fields.ts";
import { serve } from "./harness.ts";
import { brokenInputs, jsonOf } from "./hostile-values.ts";
import { type Refused, taskClientOf } from "./task-client.ts";

const long = "x".repeat(102_401);

test("bad tasks are refused with the field, and nothing is stored", async (t) => {
  const server = await serve(t);
  const good = { task_type: "t", principal_ai: "p" };
  const cases: readonly (readonly [object, number, string, string])[] = [
    [{ task_type: "" }, 400, "invalid_task", "task_type"],
    [{ principal_ai: null }, 400, "invalid_request", "principal_ai"],
    [{ task_type: "two\nlines" }, 400, "invalid_task", "task_type"],
    [{ task_body: long }, 400, "invalid_task", "task_body"],
    [{ inputs: { big: "x".repeat(70_000) } }, 400, "invalid_task", "inputs"],
    [{ inputs: { __proto__x: 1, constructor: 2 } }, 400, "invalid_request", "inputs"],
    [{ task_priority: 1_001 }, 400, "invalid_task", "task_priority"],
    [{ max_attempts: 0 }, 400, "invalid_task", "max_attempts"],
    [{ lease_duration_ms: 99 }, 400, "invalid_task", "lease_duration_ms"],
    [{ requeue_delay_ms: -1 }, 400, "invalid_task", "requeue_delay_ms"],
    [{ requires: ["a", ""] }, 400, "invalid_task", "requires.1"],
    [{ concurrency_limit: 2 }, 400, "invalid_task", "concurrency_limit"],
    [
      { speculative: true, intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] },
      400,
      "invalid_task",
      "speculative",
    ],
    [{ intents: [{ predicate: "MUTATES", resource: "TASK:/a" }] }, 400, "reserved_resource", "intents.0.resource"],
    [{ intents: [{ predicate: "WRITES", resource: "FILE:/a" }] }, 400, "invalid_predicate", "intents.0.predicate"],
    [{ depends_on: ["T-never"] }, 404, "dependency_unknown", "depends_on"],
    [{ surprise: 1 }, 400, "invalid_request", "surprise"],
  ];
  for (const [over, status, error, field] of cases) {
    const answered = await server.post<Refused>("/v1/tasks", { ...good, ...over });
    assert.deepEqual(
      [answered.status, answered.body.error, answered.body.field],
      [status, error, field],
      answered.text,
    );
    if (error === "invalid_task") assert.ok((answered.body.reason ?? "").length > 0, answered.text);
  }
  const { body } = await server.get<{ tasks: readonly unknown[] }>("/v1/tasks");
  assert.deepEqual(body.tasks, []);
  assert.equal(
    server.service.engine.peek(({ tenants }) => tenants.get("default")?.tasks.size),
    0,
  );
});

test("bad receipts are 422 invalid_receipt with field and reason, and nothing is stored (R2)", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, show } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const { lease_id } = offer;
  const complete = { phase: "complete", status: "success", lease_id };
  const cases: readonly (readonly [object, string])[] = [
    [{ phase: "dance", lease_id }, "phase"],
    [{ lease_id }, "phase"],
    [{ phase: "complete", lease_id }, "status"],
    [{ ...complete, status: "done" }, "status"],
    [{ ...complete, outcome_kind: "miracle" }, "outcome_kind"],
    [{ ...complete, outcome_kind: "artifact_pointer" }, "artifact_pointer"],
    [{ ...complete, escalation_class: "policy" }, "escalation_class"],
    [{ ...complete, outcome_text: long }, "outcome_text"],
    [{ ...complete, metadata: { big: "x".repeat(17_000) } }, "metadata"],
    [{ ...complete, attempt: -1 }, "attempt"],
    [{ ...complete, completed_at: "soon" }, "completed_at"],
    [{ ...complete, schema_version: "2" }, "schema_version"],
    [{ ...complete, worker: "me" }, "worker"],
    [{ ...complete, realtime: "yes" }, "realtime"],
    [{ phase: "escalate", lease_id }, "escalation_class"],
    [{ phase: "escalate", lease_id, escalation_class: "policy" }, "escalation_reason"],
    [{ phase: "escalate", lease_id, escalation_class: "karma", escalation_reason: "r" }, "escalation_class"],
    [
      {
        phase: "escalate",
        lease_id,
        escalation_class: "policy",
        escalation_reason: "r",
        escalation_to: "a",
        recipient_ai: "b",
      },
      "recipient_ai",
    ],
    [{ phase: "progress", lease_id, status: "success" }, "status"],
    [{ phase: "accepted" }, "task_id"],
  ];
  for (const [receipt, field] of cases) {
    const { status, body, text } = await send(receipt);
    assert.deepEqual([status, body.error, body.field], [422, "invalid_receipt", field], text);
    assert.ok((body.reason ?? "").length > 0, text);
  }
  const task = await show(taskId);
  assert.deepEqual([task.status, task.receipts.length], ["accepted", 1]);
});

test("S3: in a batch every broken task and receipt is refused in its own place, and nothing is stored", async (t) => {
  const server = await serve(t);
  const receiptExample = { phase: "accepted", lease_id: "lse_1", attempt: 1, inputs: { a: 1 } };
  const lists = [
    { path: "/v1/tasks/batch", list: "tasks", cases: brokenInputs(newTask as TSchema, taskExample) },
    { path: "/v1/receipts/batch", list: "receipts", cases: brokenInputs(newReceipt as TSchema, receiptExample) },
  ];
  let count = 0;
  for (const { path, list, cases } of lists) {
    for (let first = 0; first < cases.length; first += 3) {
      const some = cases.slice(first, first + 3);
      const response = await fetch(`${server.address.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: `{"${list}":[${some.map(({ value }) => jsonOf(value)).join(",")}]}`,
      });
      if (response.status === 413) continue;
      assert.equal(response.status, 200, some.map(({ what }) => what).join("; "));
      const { results } = (await response.json()) as { results: readonly { status: number; body: Refused }[] };
      for (const [index, { what }] of some.entries()) {
        const { status, body } = results[index] ?? {};
        count++;
        assert.ok(status !== undefined && status >= 400 && status < 500, `${list} ${what}: ${JSON.stringify(body)}`);
        assert.equal(typeof body?.error, "string");
      }
    }
  }
  t.diagnostic(`${count} broken items`);
  assert.ok(count > 300);
  assert.equal(
    server.service.engine.peek(({ tenants }) => tenants.get("default")?.tasks.size),
    0,
  );
});
