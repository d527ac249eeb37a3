import assert from "node:assert/strict";
import { test } from "node:test";
import { blank } from "../contract/field.ts";
import { receiptInput, taskInput } from "../contract/inputs.ts";
import {
  isSameReceipt,
  isSameTask,
  oldReceiptFingerprint,
  oldTaskFingerprint,
  receiptFingerprint,
  taskFingerprint,
  withoutNew,
} from "./fingerprint.ts";

const intent = { predicate: "MUTATES", resource: "FILE:/a", units: 2, to: null, pick: null };
const task = {
  ...blank(taskInput),
  taskType: "code.generate",
  principalAi: "me",
  intents: [intent],
  idempotencyKey: "k",
};
const receipt = { ...blank(receiptInput), phase: "complete", taskId: "T-1", leaseId: "l", fence: 3, dedupeKey: "d" };

test("T12, R3: the fingerprints that databases of version 0.1 hold still match", () => {
  assert.equal(oldTaskFingerprint(task), "i34baa.lugcnp");
  assert.equal(oldReceiptFingerprint(receipt), "1r7695x.xd26yi");
  assert.equal(isSameTask("i34baa.lugcnp", task), true);
  assert.equal(isSameTask("i34baa.lugcnp", { ...task, principalAi: "you" }), false);
  assert.equal(isSameReceipt("1r7695x.xd26yi", receipt), true);
  assert.equal(isSameReceipt("1r7695x.xd26yi", { ...receipt, outcomeText: "x" }), false);
});

test("T12, R3: today's fingerprints are what databases hold from now on", () => {
  assert.equal(taskFingerprint(task), "gurnyv:15hv12g");
  assert.equal(receiptFingerprint(receipt), "1ydhdtf:1gwn23v");
});

test("T12, R3: a field that a fingerprint did not have counts only where it is given", () => {
  const before = { taskType: "x", taskBody: null };
  const text = (values: object): string => JSON.stringify(withoutNew(values, ["colour"]));
  assert.equal(text({ ...before, colour: null }), JSON.stringify(before));
  assert.equal(text({ ...before, colour: "red" }), JSON.stringify({ ...before, colour: "red" }));
});

test("T12, R3: what is said differs if any one field does, and only then", () => {
  const others: Partial<typeof task>[] = [
    { taskType: "code" },
    { intents: [] },
    { intents: [intent, intent] },
    { intents: [{ ...intent, resource: "FILE:/b" }] },
    { inputs: { a: 1 } },
    { inputs: { a: "1" } },
    { taskBody: "b" },
    { taskSummary: "b" },
    // A text that reads like another field.
    { taskType: "code.generate;principalAi=2:me" },
    { maxAttempts: 1 },
    { speculative: true },
  ];
  const sums = [task, ...others.map((other) => ({ ...task, ...other }))].map(taskFingerprint);
  assert.equal(new Set(sums).size, sums.length);
  assert.equal(taskFingerprint({ ...task, traceparent: "00-1" }), taskFingerprint(task));
  assert.equal(isSameTask(taskFingerprint(task), task), true);
  assert.equal(isSameTask(null, task), false);
});
