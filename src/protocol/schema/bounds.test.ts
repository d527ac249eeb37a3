import assert from "node:assert/strict";
import { test } from "node:test";
import { digestInput } from "../../kernel/contract/commands.ts";
import { blank, type FieldData, type Fields, wireName, without } from "../../kernel/contract/field.ts";
import {
  checkDigest,
  checkPoll,
  checkReceipt,
  checkTask,
  checkTaskTypeSettings,
} from "../../kernel/contract/inputs.gen.ts";
import { receiptInput, taskInput, taskTypeSettings } from "../../kernel/contract/inputs.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import { taskCommands } from "../../kernel/contract/task-commands.ts";
import { findOperation } from "../operations.ts";

/** An operation, the description of its input, and the kernel's check of it. */
const cases: readonly (readonly [string, Fields, (input: never) => Refusal | null])[] = [
  ["create_task", taskInput, checkTask],
  ["submit_receipt", receiptInput, checkReceipt],
  ["set_task_type", taskTypeSettings, checkTaskTypeSettings],
  ["poll_tasks", without(taskCommands.poll_tasks, "workerId"), checkPoll],
  ["save_digest", digestInput, checkDigest],
];

/** The values around a field's bounds. What the wire takes for a mark of absence is none of them. */
function edges({ kind, min, max, cap, bytesMax }: FieldData): readonly unknown[] {
  switch (kind) {
    case "text": {
      const most = max ?? bytesMax ?? 10;
      return [
        "",
        "x",
        "x".repeat(most),
        "x".repeat(most + 1),
        ...(max ? ["🙂".repeat(max), "🙂".repeat(max + 1)] : []),
      ];
    }
    case "integer": {
      const least = min ?? 0;
      const most = max ?? cap ?? 1_000;
      return [least - 1, least, most, most + 1, 1.5].filter((value) => value !== 0);
    }
    case "number":
      return [0, min, max, (max ?? 0) + 1];
    case "list":
      return [min ?? 0, max ?? 10, (max ?? 10) + 1].map((length) => Array.from({ length }, () => "x"));
    default:
      return [];
  }
}

test("what the schema publishes is what the kernel enforces, at every bound of every field (S3, D3–D7)", () => {
  for (const [name, fields, check] of cases) {
    const operation = findOperation(name);
    assert.ok(operation !== undefined);
    for (const [key, field] of Object.entries(fields)) {
      if (field.wire === null || field.items?.kind === "record") continue;
      for (const value of edges(field)) {
        const wire = operation.check({ ...operation.example, [wireName(key, field)]: value });
        const sample = { taskType: "t", principalAi: "p", phase: "accepted", checkpointId: "c", resumePoint: "r" };
        const kernel = check({ ...blank(fields), intentBacklog: [], ...sample, [key]: value } as never);
        const shown = JSON.stringify(value).slice(0, 40);
        assert.equal(wire.ok, kernel === null, `${name} ${key} ${shown}: ${JSON.stringify(wire.ok ? kernel : wire)}`);
      }
    }
  }
});

test("L2: a duration above the cap passes the schema, to be capped with a warning", () => {
  const day = 86_400_000;
  for (const name of ["create_task", "set_task_type"]) {
    const operation = findOperation(name);
    assert.ok(operation?.check({ ...operation.example, lease_duration_ms: day + 1 }).ok);
  }
});
