import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor } from "../contract/commands.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import { createTaskWorld, type TaskWish } from "../testing/tasks-world.ts";
import { actor, found } from "../testing/test-world.ts";
import { isItselfOrFamily, isSameJson } from "./principals.ts";

const lease = 900_000;
const key = (keyId: string): Actor => ({ ...actor("worker"), keyId });

/** A worker's key, and a task that its worker was offered. */
function createOffered(wish: TaskWish = {}, workerId = "worker.codegen-1") {
  const world = createTaskWorld("lead");
  const id = world.create(wish);
  const own = key("key-1");
  const offer = world.offered(workerId, { actor: own });
  const send = (phase: string, change: Partial<ReceiptInput> = {}) => world.submit(phase, offer, change, own);
  const refused = (field: string, phase: string, change: Partial<ReceiptInput> = {}): void => {
    const refusal = world.refused("invalid_receipt", world.receipt(phase, offer, change, own));
    assert.equal(refusal.field, field);
  };
  const custody = () => {
    const { state, custodian } = found(world.task(id).obligation, "obligation");
    return [state, custodian];
  };
  return { world, id, own, offer, send, refused, custody };
}

test("R5: custody follows for_principal of the accepted receipt, else its recipient of the family, else the worker", () => {
  for (const [said, custodian] of [
    [{}, "worker.codegen-1"],
    [{ recipientAi: "worker.codegen" }, "worker.codegen"],
    [{ recipientAi: "agent:innocent" }, "worker.codegen-1"],
    [{ recipientAi: "delegate.root", forPrincipal: "worker.codegen" }, "worker.codegen"],
  ] as const) {
    const { send, custody } = createOffered();
    const { forPrincipal, fromPrincipal } = send("accepted", said);
    assert.deepEqual(custody(), ["OPEN", custodian]);
    assert.deepEqual(
      [fromPrincipal, forPrincipal],
      ["delegate.root", custodian],
      "from the requester, for the executor",
    );
  }
});

test("R7: a worker's key binds itself or its family only; a supervisor may bind anybody", () => {
  const { world, offer, refused, custody } = createOffered();
  refused("for_principal", "accepted", { forPrincipal: "agent:innocent" });
  refused("for_principal", "accepted", { forPrincipal: "worker.codeg" });
  world.submit("accepted", offer, { forPrincipal: "agent:innocent" }, actor("supervisor"));
  assert.deepEqual(custody(), ["OPEN", "agent:innocent"]);
});

test("R7: a family's name is the worker's, up to one of its separators", () => {
  assert.ok(isItselfOrFamily("worker.codegen", "worker.codegen-1"));
  assert.ok(isItselfOrFamily("worker", "worker.codegen-1"));
  assert.ok(isItselfOrFamily("w.1", "w.1"));
  assert.ok(!isItselfOrFamily("worker.code", "worker.codegen-1"));
  assert.ok(!isItselfOrFamily("worker.codegen-1", "worker.codegen"));
  assert.ok(!isItselfOrFamily("", "w.1"));
});

test("R7: a worker's receipt does not change what the task was, nor as whom it is written", () => {
  const expected = { expectedOutcomeKind: "response_text", expectedArtifactMime: "text/plain", parentTaskId: "T-up" };
  const wish = { taskSummary: "Parse", taskBody: "Read it", inputs: { a: 1, b: [2] }, ...expected };
  const { send, refused } = createOffered(wish);
  for (const [field, said] of [
    ["from_principal", { fromPrincipal: "somebody" }],
    ["task_type", { taskType: "deploy" }],
    ["task_summary", { taskSummary: "Other" }],
    ["task_body", { taskBody: "Other" }],
    ["inputs", { inputs: { a: 1, b: [3] } }],
    ["parent_task_id", { parentTaskId: "T-other" }],
    ["expected_outcome_kind", { expectedOutcomeKind: "none" }],
    ["expected_artifact_mime", { expectedArtifactMime: "image/png" }],
    ["attempt", { attempt: 7 }],
  ] as const)
    refused(field, "accepted", said);
  const accepted = send("accepted", {
    ...wish,
    taskType: "build",
    fromPrincipal: "delegate.root",
    inputs: { b: [2], a: 1 },
  });
  assert.deepEqual([accepted.taskBody, accepted.taskSummary], ["Read it", "Parse"]);
});

test("R2: free JSON is the same whatever the order of its members", () => {
  assert.ok(isSameJson({ a: [1, { b: null }], c: "x" }, { c: "x", a: [1, { b: null }] }));
  for (const [a, b] of [
    [{ a: 1 }, { a: 1, b: 1 }],
    [[1], { 0: 1 }],
    [{ a: 1 }, { b: 1 }],
    [null, {}],
    [1, "1"],
  ])
    assert.ok(!isSameJson(a, b));
});

test("R7: each receipt names the key that submitted it; what the rules write names none", () => {
  const { world, id, own, offer } = createOffered();
  assert.equal(world.submit("accepted", offer, {}, own).submittedBy, "key-1");
  world.submit("progress", offer, {}, { ...actor("supervisor"), keyId: "boss-key" });
  world.pass(lease);
  world.ask({ type: "cancel_task", actor: { ...actor("operator"), keyId: "op-key" }, taskId: id, reason: null });
  assert.deepEqual(
    world.receiptsOf(id).map(({ submittedBy }) => submittedBy),
    ["key-1", "boss-key", null, "op-key"],
  );
});

test("R2: a progress receipt does not copy the task's body and inputs; the others have them", () => {
  const { send } = createOffered({ taskBody: "Read it", inputs: { a: 1 } });
  const [accepted, progress, complete] = [
    send("accepted"),
    send("progress", { outcomeText: "half" }),
    send("complete", { status: "success" }),
  ];
  assert.deepEqual([accepted.taskBody, accepted.inputs], ["Read it", { a: 1 }]);
  assert.deepEqual([progress.taskBody, progress.inputs], [null, null]);
  assert.deepEqual([complete.taskBody, complete.inputs], ["Read it", { a: 1 }]);
});

test("R5: the obligation that a receipt names is this lease's, or it is refused; a sender's own id is kept", () => {
  const { world, id, own, send, refused } = createOffered();
  refused("obligation_id", "accepted", { obligationId: "obl_mine" });
  assert.equal(send("accepted", { obligationId: "mine-1" }).obligationId, "mine-1");
  const other = world.create();
  const second = world.offered("w.2", { actor: own });
  assert.equal(
    world.refused("invalid_receipt", world.receipt("accepted", second, { obligationId: "mine-1" }, own)).field,
    "obligation_id",
  );
  world.submit("accepted", second, {}, own);
  const theirs = found(world.task(other).obligation, "obligation").id;
  refused("obligation_id", "complete", { status: "success", obligationId: theirs });
  send("complete", { status: "success", obligationId: "mine-1" });
  assert.deepEqual([world.statusOf(id), world.task(other).obligation?.state], ["succeeded", "OPEN"]);
});

test("R5: an obligation that goes on after a lost lease keeps its id, and another one is refused with it", () => {
  const { world, id, send } = createOffered({ requeueDelayMs: 0 });
  send("accepted", { obligationId: "mine-1" });
  world.pass(lease);
  const again = world.offered("w.2");
  const refusal = world.refusedReceipt("invalid_receipt", "accepted", again, { obligationId: "mine-2" });
  assert.match(refusal.detail, /mine-1/);
  assert.equal(world.accept(again, { obligationId: "mine-1" }).obligationId, "mine-1");
  world.fail(again, { retryRequested: true });
  assert.equal(world.task(id).obligation?.state, "CLOSED");
  const third = world.offered("w.3");
  world.refusedReceipt("invalid_receipt", "accepted", third, { obligationId: "mine-1" });
  const { obligationId } = world.accept(third);
  assert.match(found(obligationId, "id"), /^obl_/);
});

test("R5: an offer binds nobody, so its escalation neither names nor moves the obligation of another attempt", () => {
  const { world, id, send } = createOffered({ requeueDelayMs: 0 });
  send("accepted");
  world.pass(lease);
  const before = found(world.task(id).obligation, "obligation");
  const offer = world.offered("w.2");
  world.refusedReceipt("invalid_receipt", "escalate", offer, {
    escalationClass: "other",
    escalationReason: "no",
    obligationId: before.id,
  });
  assert.equal(world.escalate(offer, { escalationTo: "somebody" }).obligationId, null);
  assert.deepEqual(world.task(id).obligation, before);
});

for (const [named, wish, type, tenant, expected] of [
  ["the task's", { supervisor: "task.boss" }, "type.boss", "tenant.boss", "task.boss"],
  ["its type's", {}, "type.boss", "tenant.boss", "type.boss"],
  ["the tenant's", {}, null, "tenant.boss", "tenant.boss"],
  ["its principal", {}, null, null, "delegate.root"],
] as const) {
  test(`T5: policy escalations go to ${named} ${expected}, in whose inbox the task then is`, () => {
    for (const how of ["lost", "given back", "out of attempts", "never accepted"]) {
      const world = createTaskWorld();
      world.setType("build", { supervisor: type });
      world.settings({ supervisor: tenant });
      const isLast = how === "out of attempts";
      const id = world.create({ ...wish, maxOffers: 1, maxAttempts: isLast ? 1 : 3 });
      if (how === "never accepted") world.giveBack(world.offered("w.1"));
      else if (how === "given back") world.giveBack(world.start("w.1"));
      else {
        world.start("w.1");
        world.pass(lease);
      }
      const last = found(world.receiptsOf(id).at(-1), "receipt");
      assert.deepEqual([last.escalationTo, last.recipientAi], [expected, expected], how);
      assert.equal(world.task(id).obligation?.custodian, expected, how);
      assert.equal(last.obligationId, world.task(id).obligation?.id, how);
    }
  });
}

test("T5: a worker's escalation that names nobody goes to the supervisor too", () => {
  const { world, id, send } = createOffered({ supervisor: "boss" });
  send("accepted");
  const escalation = send("escalate", { escalationClass: "capability", escalationReason: "cannot" });
  assert.deepEqual([escalation.escalationTo, world.task(id).obligation?.custodian], ["boss", "boss"]);
});

test("R5: an overdue obligation is recovered: OPEN under a new custodian, with a receipt and an event", () => {
  const { world, id, send, custody } = createOffered();
  send("accepted");
  world.pass(lease);
  assert.deepEqual(custody(), ["OVERDUE", "delegate.root"]);
  const obligation = found(world.task(id).obligation, "obligation");
  assert.equal(world.recover(obligation.id, "w.9", "its machine is gone").obligation.custodian, "w.9");
  assert.deepEqual(custody(), ["OPEN", "w.9"]);
  const receipt = found(world.receiptsOf(id).at(-1), "receipt");
  assert.deepEqual(
    [receipt.phase, receipt.escalationClass, receipt.escalationReason, receipt.escalationTo, receipt.obligationId],
    ["escalate", "owner", "its machine is gone", "w.9", obligation.id],
  );
  assert.equal(world.happened.at(-1), "task.recovered");
  world.refused("obligation_not_overdue", {
    type: "recover_obligation",
    obligationId: obligation.id,
    custodian: "w.8",
    reason: "again",
  });
  world.refused("forbidden", {
    type: "recover_obligation",
    actor: key("key-1"),
    obligationId: obligation.id,
    custodian: "w.8",
    reason: "mine",
  });
});

/** A task that its worker has escalated to a custodian, and that is dead for it. */
function createEscalated(custodian: string) {
  const made = createOffered();
  made.send("accepted");
  made.send("escalate", { escalationClass: "owner", escalationReason: "not mine", escalationTo: custodian });
  assert.deepEqual([made.world.statusOf(made.id), ...made.custody()], ["dead", "OPEN", custodian]);
  return made;
}

for (const [status, final] of [
  ["success", "succeeded"],
  ["failure", "failed"],
  ["canceled", "canceled"],
] as const) {
  test(`T13: a custodian completes what was escalated to it: ${status} ends obligation and task as ${final}`, () => {
    const { world, id } = createEscalated("w.2");
    const own = key("key-2");
    world.idles("w.2", { actor: own });
    const complete = world.submit("complete", id, { status, sourceSystem: "w.2" }, own);
    assert.deepEqual([complete.sourceSystem, complete.forPrincipal, complete.submittedBy], ["w.2", "w.2", "key-2"]);
    const ended = world.endedTask(id);
    assert.deepEqual([ended.status, ended.winningReceiptId, ended.obligation?.state], [final, complete.id, "CLOSED"]);
    assert.equal(world.happened.at(-1), "task.completed");
  });
}

test("T13: a supervisor, and the agent of that name, complete for the custodian; nobody else does", () => {
  for (const who of ["supervisor", "agent"] as const) {
    const { world, id } = createEscalated("lead");
    const done = { status: "success", sourceSystem: "lead" } as const;
    world.refused("forbidden", world.receipt("complete", id, done, key("key-1")));
    world.refused("forbidden", world.receipt("complete", id, done, actor("reader")));
    world.submit("complete", id, done, who === "agent" ? world.as("lead") : actor("supervisor"));
    assert.equal(world.statusOf(id), "succeeded");
  }
});

test("R5: a custodian escalates further, and custody follows; a retry is for redrive", () => {
  const { world, id, custody } = createEscalated("boss");
  const from = { sourceSystem: "boss" };
  world.refusedReceipt("invalid_receipt", "complete", id, { ...from, status: "failure", retryRequested: true });
  world.escalate(id, { ...from, escalationTo: "chief" });
  assert.deepEqual([world.statusOf(id), ...custody()], ["dead", "OPEN", "chief"]);
  world.refusedReceipt("not_lease_holder", "complete", id, { ...from, status: "success" });
  world.redrive(id);
  world.start("w.3");
  assert.deepEqual(custody(), ["OPEN", "w.3"]);
});

test("T13: the late result of a worker that is the custodian counts as such only if it names the obligation", () => {
  const world = createTaskWorld("a");
  const id = world.create({ supervisor: "w.1", intents: "MUTATES FILE:/a" });
  world.start("w.1");
  world.pass(lease);
  world.grant("a", "MUTATES FILE:/a");
  assert.equal(world.task(id).obligation?.custodian, "w.1");
  const done = { status: "success", sourceSystem: "w.1" };
  world.refusedReceipt("stale_fence", "complete", id, done);
  world.submit("complete", id, { ...done, obligationId: found(world.task(id).obligation, "obligation").id });
  assert.equal(world.statusOf(id), "succeeded");
});

test("R5: after one of two attempts is lost, the other's custodian answers, as its accepted receipt says", () => {
  const world = createTaskWorld();
  const id = world.create({ speculative: true, leaseDurationMs: 60_000 });
  world.start("worker.a-1");
  world.pass(1_000);
  const second = world.offered("worker.b-1");
  world.accept(second, { recipientAi: "worker.b" });
  world.pass(30_000);
  world.beat(second);
  world.pass(29_000);
  assert.equal(world.task(id).obligation?.custodian, "worker.b");
  assert.equal(world.receiptsOf(id).at(-1)?.escalationTo, "worker.b", "the ledger says the same");
});

test("R8: receipts count against quotas in number and bytes; what was accepted can still be completed", () => {
  for (const quotas of [{ receiptsMax: 1 }, { receiptBytesMax: 1_500 }]) {
    const { world, offer } = createOffered();
    world.quotas(quotas);
    world.accept(offer);
    const refusal = world.refusedReceipt("quota_exceeded", "progress", offer);
    const [name = "", limit] = Object.entries(quotas)[0] ?? [];
    assert.equal(refusal.quota, name === "receiptsMax" ? "receipts_max" : "receipt_bytes_max");
    assert.equal(refusal.limit, limit);
    assert.ok((refusal.used ?? 0) > 0);
    world.succeed(offer);
    world.create();
    world.refusedReceipt("quota_exceeded", "accepted", world.offered("w.2"));
  }
});

test("R8: a receipt's size is about what is stored of it, in ASCII", () => {
  const { world, offer } = createOffered();
  const bytes = () => found(world.base.state.tenants.get(world.tenant), "tenant").counters.record.receiptBytes;
  world.accept(offer);
  const before = bytes();
  world.submit("progress", offer, { outcomeText: "é".repeat(1_000), body: { text: "x".repeat(5_000) } });
  const grown = bytes() - before;
  assert.ok(grown > 11_000 && grown < 13_000, String(grown));
});
