import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { RefusalCode } from "../contract/refusals.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { actor, found, operator } from "../testing/test-world.ts";
import { openObligations } from "../views.ts";

const own: Actor = { ...actor("worker"), keyId: "key-1" };
const other: Actor = { ...actor("worker"), keyId: "key-2" };
const accepted: Partial<ReceiptInput> = { taskSummary: "Parse the file", sourceSystem: "worker.x-1" };
const handed: Partial<ReceiptInput> = {
  escalationClass: "owner",
  escalationReason: "not mine",
  escalationTo: "worker.y",
};

function createLedger(...agents: readonly string[]) {
  const world = createTaskWorld(...agents);
  world.settings({ foreignReceipts: true });
  const command = (phase: string, change: Partial<ReceiptInput>, by: Actor, taskId = "X-1") => ({
    ...world.receipt(phase, taskId, change, by),
    unowned: true,
  });
  const send = (phase: string, change: Partial<ReceiptInput> = {}, by: Actor = own, taskId?: string) =>
    world.expect("receipt", world.ask(command(phase, change, by, taskId))).receipt;
  const refused = (
    code: RefusalCode,
    phase: string,
    change: Partial<ReceiptInput> = {},
    by: Actor = own,
    id?: string,
  ) => world.refused(code, command(phase, change, by, id));
  const known = (phase: string, change: Partial<ReceiptInput> = {}, by: Actor = own) =>
    world.expect("receipt_known", world.ask(command(phase, change, by))).receiptId;
  const owed = (custodian: string | null = null) =>
    [...openObligations(world.base.state, world.tenant, custodian)].map(({ obligation }) => obligation);
  return { world, send, refused, known, owed };
}

test("R1: receipts about tasks of others are taken only where the tenant has said so, and history does not know the task", () => {
  const { world, send, refused } = createLedger();
  world.settings({ foreignReceipts: false });
  assert.equal(refused("task_unknown", "accepted", accepted).taskId, "X-1");
  world.settings({ foreignReceipts: true });
  world.refused("task_unknown", world.receipt("accepted", "X-1", accepted, own));
  refused("task_unknown", "accepted", { ...accepted, fence: 3 });
  refused("lease_unknown", "accepted", { ...accepted, leaseId: "lse_none", taskId: null });
  send("accepted", accepted);
  // What was accepted can be completed after it is switched off.
  world.settings({ foreignReceipts: false });
  send("complete", { status: "success", sourceSystem: "worker.x-1" });
  refused("task_unknown", "accepted", accepted);
});

test("R5: accepted opens an obligation on another's task, escalate moves its custody, complete closes it", () => {
  const { world, send, owed } = createLedger();
  const first = send("accepted", { ...accepted, forPrincipal: "worker.x", fromPrincipal: "delegate.root" });
  const [open] = owed("worker.x");
  assert.deepEqual([open?.state, open?.id], ["OPEN", first.obligationId]);
  assert.deepEqual(
    [first.taskId, first.taskType, first.fromPrincipal, first.forPrincipal, first.attempt, first.submittedBy],
    ["X-1", "NA", "delegate.root", "worker.x", 1, "key-1"],
  );
  const progress = send("progress", { sourceSystem: "worker.x-1", outcomeText: "half" });
  const passed = send("escalate", { ...handed, sourceSystem: "worker.x-1" });
  assert.deepEqual([owed("worker.x"), owed("worker.y").length], [[], 1]);
  send("accepted", { ...accepted, sourceSystem: "worker.y" }, other);
  const last = send("complete", { status: "success", sourceSystem: "worker.y", outcomeText: "done" }, other);
  assert.deepEqual([owed(), last.obligationId, last.recipientAi], [[], first.obligationId, "delegate.root"]);
  assert.deepEqual([progress.causedByReceiptId, passed.causedByReceiptId], [first.id, progress.id]);
  assert.deepEqual(
    world.receipts.map(({ sequence, phase }) => [sequence, phase]),
    [
      [1, "accepted"],
      [2, "progress"],
      [3, "escalate"],
      [4, "accepted"],
      [5, "complete"],
    ],
  );
});

test("R5: custody of another's task follows for_principal, else recipient_ai, else the sender", () => {
  for (const [said, by, custodian] of [
    [{ sourceSystem: "a", forPrincipal: "b", recipientAi: "c" }, operator, "b"],
    [{ sourceSystem: "a", recipientAi: "c" }, operator, "c"],
    [{ sourceSystem: "a" }, operator, "a"],
    [{ sourceSystem: "worker.x-1", recipientAi: "worker.x" }, own, "worker.x"],
    [{ sourceSystem: "worker.x-1", recipientAi: "innocent" }, own, "worker.x-1"],
  ] as const) {
    const { send, owed } = createLedger();
    send("accepted", { taskSummary: "s", ...said }, by);
    assert.deepEqual(
      owed().map((one) => one.custodian),
      [custodian],
    );
  }
  const { refused } = createLedger();
  assert.equal(refused("invalid_receipt", "accepted", { taskSummary: "s" }, operator).field, "for_principal");
});

test("R2: the invariants of each phase are checked for others' tasks too", () => {
  const { send, refused } = createLedger();
  const field = (phase: string, change: Partial<ReceiptInput>) =>
    refused("invalid_receipt", phase, change, operator).field;
  assert.equal(field("accepted", { ...accepted, taskSummary: null }), "task_summary");
  assert.equal(field("accepted", { ...accepted, status: "success" }), "status");
  assert.equal(field("accepted", { ...accepted, retryRequested: true }), "retry_requested");
  assert.equal(field("accepted", { ...accepted, obligationId: "obl_mine" }), "obligation_id");
  send("accepted", { ...accepted, obligationId: "mine" });
  assert.equal(field("complete", {}), "status");
  assert.equal(field("complete", { status: "success", escalationTo: "x" }), "escalation_to");
  assert.equal(field("complete", { status: "success", outcomeKind: "artifact_pointer" }), "artifact_pointer");
  assert.equal(field("complete", { status: "success", obligationId: "another" }), "obligation_id");
  assert.equal(field("escalate", { ...handed, escalationReason: null }), "escalation_reason");
  assert.equal(field("escalate", { ...handed, recipientAi: "z" }), "recipient_ai");
  const { taskId } = send("accepted", accepted, own, "X-2");
  assert.equal(taskId, "X-2");
  assert.equal(field("escalate", { ...handed, obligationId: "obl_none" }), "obligation_id");
});

test("T4: what closes no open obligation is refused, so that another's task is completed once", () => {
  const { world, send, refused } = createLedger();
  const done = { status: "success", sourceSystem: "worker.x-1" } as const;
  assert.equal(refused("complete_without_accept", "complete", done).taskId, "X-1");
  refused("complete_without_accept", "progress", { sourceSystem: "worker.x-1" });
  refused("complete_without_accept", "escalate", { ...handed, sourceSystem: "worker.x-1" });
  send("accepted", accepted);
  send("complete", done);
  refused("complete_without_accept", "complete", done);
  const again = send("accepted", accepted);
  assert.notEqual(again.obligationId, world.receipts[0]?.obligationId, "a new acceptance is a new obligation");
});

test("R7: a worker's key and an agent's token speak for others' tasks only in their own name", () => {
  const { world, send, refused } = createLedger("lead", "rival");
  const lead = world.as("lead");
  assert.equal(refused("invalid_receipt", "accepted", { taskSummary: "s" }).field, "source_system");
  refused("invalid_worker_id", "accepted", { ...accepted, sourceSystem: "nodot" });
  assert.equal(
    refused("invalid_receipt", "accepted", { ...accepted, forPrincipal: "innocent" }).field,
    "for_principal",
  );
  send("accepted", accepted);
  refused("forbidden", "accepted", accepted, other, "X-9");
  refused("forbidden", "complete", { status: "success", sourceSystem: "worker.y" }, other);
  refused("forbidden", "escalate", handed, lead);
  assert.equal(
    refused("invalid_receipt", "accepted", { taskSummary: "s", forPrincipal: "rival" }, lead, "X-2").field,
    "for_principal",
  );
  assert.equal(
    refused("invalid_receipt", "accepted", { taskSummary: "s", sourceSystem: "rival" }, lead, "X-2").field,
    "source_system",
  );
  refused("forbidden", "accepted", { taskSummary: "s" }, { ...lead, agentId: null }, "X-2");
  assert.equal(send("accepted", { taskSummary: "s" }, lead, "X-2").sourceSystem, "lead");
  refused("forbidden", "complete", { status: "success" }, world.as("rival"), "X-2");
  send("complete", { status: "success" }, lead, "X-2");
  assert.equal(send("complete", { status: "canceled" }, actor("supervisor")).sourceSystem, "worker.x-1");
});

test("R7: who accepted in its family's name speaks for it until it is escalated", () => {
  const { world, send, refused, known } = createLedger();
  send("accepted", { ...accepted, forPrincipal: "worker.x" });
  refused("forbidden", "complete", { status: "success", sourceSystem: "worker.x-2" });
  // Another of the family does not get the first one's answer, or both would do the work.
  refused("forbidden", "accepted", { ...accepted, sourceSystem: "worker.x-2", forPrincipal: "worker.x" });
  assert.equal(known("accepted", { ...accepted, forPrincipal: "worker.x" }), world.receipts[0]?.id);
  assert.equal(refused("invalid_receipt", "accepted", { ...accepted, forPrincipal: "worker" }).field, "for_principal");
  send("escalate", { ...handed, sourceSystem: "worker.x-1" });
  refused("forbidden", "complete", { status: "success", sourceSystem: "worker.x-1" });
  const [open] = [...openObligations(world.base.state, world.tenant, "worker.y")];
  world.refused("obligation_not_overdue", {
    type: "recover_obligation",
    obligationId: found(open, "obligation").obligation.id,
    custodian: "boss",
    reason: "gone",
  });
});

test("R3: the same key and content about another's task is the first receipt, other content is refused", () => {
  const { world, send, refused, known } = createLedger();
  const keyed = { ...accepted, dedupeKey: "k" };
  const first = send("accepted", keyed);
  assert.equal(known("accepted", keyed), first.id);
  refused("dedupe_conflict", "accepted", { ...keyed, taskSummary: "Other" });
  refused("dedupe_conflict", "accepted", keyed, own, "X-2");
  assert.equal(known("accepted", accepted), first.id, "without a key the first answer stands too");
  const task = world.create();
  const offer = world.offered("worker.x-1", { actor: own });
  world.refused("dedupe_conflict", world.receipt("accepted", offer, { dedupeKey: "k" }, own));
  for (let nth = 0; nth < limits.foreignDedupeKeysMax; nth++)
    send("progress", { sourceSystem: "worker.x-1", dedupeKey: `p${nth}` });
  const { book } = found(world.base.state.tenants.get(world.tenant), "tenant");
  assert.equal(book.dedupes.size, limits.foreignDedupeKeysMax, "the first key is left to the ledger");
  send("complete", { status: "success", sourceSystem: "worker.x-1" });
  assert.deepEqual([book.dedupes.size, book.foreign.size, book.obligations.size], [0, 0, 0]);
  assert.equal(world.task(task).status, "leased");
});

test("R8: open obligations on others' tasks count against a quota, and a full ledger still takes what ends them", () => {
  const { world, send, refused } = createLedger();
  world.quotas({ foreignObligationsMax: 1 });
  send("accepted", accepted);
  const { quota, used, limit } = refused("quota_exceeded", "accepted", accepted, own, "X-2");
  assert.deepEqual([quota, used, limit], ["foreign_obligations_max", 1, 1]);
  world.quotas({ foreignObligationsMax: 9, receiptsMax: 1 });
  assert.equal(refused("quota_exceeded", "accepted", accepted, own, "X-2").quota, "receipts_max");
  refused("quota_exceeded", "progress", { sourceSystem: "worker.x-1" });
  send("complete", { status: "success", sourceSystem: "worker.x-1" });
  world.quotas({ receiptsMax: 100 });
  world.suspend();
  refused("tenant_suspended", "accepted", accepted, own, "X-2");
});

test("S1: a restored kernel knows the open obligations on others' tasks, their custodians and keys", () => {
  const { world, send, known, owed } = createLedger();
  send("accepted", { ...accepted, forPrincipal: "worker.x", dedupeKey: "k" });
  send("accepted", accepted, own, "X-2");
  send("complete", { status: "success", sourceSystem: "worker.x-1" }, own, "X-2");
  const before = owed();
  world.crash();
  assert.deepEqual(owed(), before);
  assert.equal(known("accepted", { ...accepted, forPrincipal: "worker.x", dedupeKey: "k" }), world.receipts[0]?.id);
  send("complete", { status: "success", sourceSystem: "worker.x-1" });
  assert.deepEqual(owed(), []);
});
