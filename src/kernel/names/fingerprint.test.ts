import assert from "node:assert/strict";
import { test } from "node:test";
import { blank } from "../contract/field.ts";
import { receiptInput, taskInput } from "../contract/inputs.ts";
import { receiptFingerprint, taskFingerprint, withoutNew } from "./fingerprint.ts";

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
  assert.equal(taskFingerprint(task), "i34baa.lugcnp");
  assert.equal(receiptFingerprint(receipt), "1r7695x.xd26yi");
});

test("T12, R3: a field that a fingerprint did not have counts only where it is given", () => {
  const before = { taskType: "x", taskBody: null };
  const text = (values: object): string => JSON.stringify(withoutNew(values, ["colour"]));
  assert.equal(text({ ...before, colour: null }), JSON.stringify(before));
  assert.equal(text({ ...before, colour: "red" }), JSON.stringify({ ...before, colour: "red" }));
});
