import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import { answerForLateReceipt, receiptFingerprint } from "../kernel.ts";
import { createTaskWorld, plainReceipt, type TaskWorld } from "../testing/tasks-world.ts";
import { actor, found } from "../testing/test-world.ts";

const described = {
  taskSummary: "Parse CSV",
  taskBody: "Read it",
  inputs: { language: "python" },
  expectedOutcomeKind: "artifact_pointer",
  expectedArtifactMime: "text/x-python",
  parentTaskId: "T-parent",
} as const;

/** A world in which w.1 was offered a task, and has accepted it unless told not to. */
function createOffered(accepts = true, wish: Parameters<TaskWorld["create"]>[0] = described) {
  const world = createTaskWorld();
  const id = world.create(wish);
  const offer = world.offered("w.1");
  if (accepts) world.accept(offer);
  return { world, id, offer };
}

test("R2: the document's short receipts are enough: task_id, phase, source_system, and the rest is filled", () => {
  const { world, id } = createOffered(false);
  const accepted = world.submit("accepted", id, { sourceSystem: "w.1", recipientAi: "worker.codegen" });
  assert.deepEqual(
    { ...accepted, ...described },
    accepted,
    "summary, body, inputs, what was expected and the parent are the task's",
  );
  assert.deepEqual(
    [accepted.recipientAi, accepted.fromPrincipal, accepted.forPrincipal, accepted.attempt],
    ["worker.codegen", "delegate.root", "worker.codegen", 1],
  );
  assert.deepEqual([accepted.createdAt, accepted.storedAt, accepted.startedAt], [world.now, world.now, null]);
  assert.equal(world.task(id).obligation?.custodian, "worker.codegen", "the one that it names is bound");
  world.pass(5_000);
  const complete = world.submit("complete", id, { status: "success", artifactLocation: "s3://bucket/result.py" });
  assert.deepEqual(
    [complete.outcomeKind, complete.artifactPointer, complete.artifactLocation, complete.artifactMime],
    ["artifact_pointer", "s3://bucket/result.py", "s3://bucket/result.py", "text/x-python"],
  );
  assert.deepEqual([complete.sourceSystem, complete.recipientAi], ["w.1", "delegate.root"]);
  assert.deepEqual([complete.startedAt, complete.completedAt], [world.now - 5_000, world.now]);
  assert.equal(complete.causedByReceiptId, accepted.id);
});

test("R2: what is said stands: a full receipt is kept as it was sent", () => {
  const { world, offer } = createOffered();
  const said: Partial<ReceiptInput> = {
    receiptId: "my-receipt-1",
    parentTaskId: "T-other",
    causedByReceiptId: "another",
    dedupeKey: "k",
    attempt: 1,
    fromPrincipal: "w",
    forPrincipal: "boss",
    sourceSystem: "w.1",
    recipientAi: "boss",
    trustDomain: "here",
    status: "success",
    realtime: true,
    taskType: "build",
    taskSummary: "mine",
    taskBody: "body",
    inputs: { a: [1] },
    expectedOutcomeKind: "none",
    expectedArtifactMime: "text/plain",
    outcomeKind: "mixed",
    outcomeText: "text",
    artifactLocation: "file:///a",
    artifactPointer: "depot://a",
    artifactChecksum: "sha256:1",
    artifactSizeBytes: 7,
    artifactMime: "text/html",
    artifactRefs: [{ a: 1 }],
    retryRequested: false,
    body: { any: "thing" },
    createdAt: 1,
    startedAt: 2,
    completedAt: 3,
    readAt: 4,
    archivedAt: 5,
    metadata: { m: 1 },
  };
  const { receiptId, ...stored } = said;
  const receipt = world.submit("complete", offer, said);
  assert.deepEqual({ ...receipt, ...stored }, receipt);
  assert.deepEqual([receipt.id, receipt.storedAt], [receiptId, world.now]);
});

test("R2: the outcome's kind is what there is, where it was not said", () => {
  for (const [change, kind] of [
    [{}, "none"],
    [{ outcomeText: "t" }, "response_text"],
    [{ artifactPointer: "p" }, "artifact_pointer"],
    [{ outcomeText: "t", artifactLocation: "l" }, "mixed"],
  ] as const) {
    const { world, offer } = createOffered(true, {});
    assert.equal(world.succeed(offer, change).outcomeKind, kind);
  }
  const { world, offer } = createOffered(true, {});
  assert.equal(world.succeed(offer, { artifactPointer: "p" }).artifactMime, "application/octet-stream");
});

test("R2: escalation_to is the task's principal where it was not said, and recipient_ai follows it", () => {
  const { world, offer } = createOffered();
  const { escalationTo, recipientAi } = world.escalate(offer);
  assert.deepEqual([escalationTo, recipientAi], ["delegate.root", "delegate.root"]);
  for (const change of [
    { recipientAi: "boss" },
    { escalationTo: "boss" },
    { recipientAi: "boss", escalationTo: "boss" },
  ]) {
    const other = createOffered();
    const receipt = other.world.escalate(other.offer, change);
    assert.deepEqual([receipt.escalationTo, receipt.recipientAi], ["boss", "boss"]);
  }
});

const long = (bytes: number) => "x".repeat(bytes + 1);
const escalation = { escalationClass: "other", escalationReason: "because" };

/** By phase: what LegiVellum's invariants forbid, and the field that is named. */
const broken: readonly (readonly [string, Partial<ReceiptInput>, string])[] = [
  ["accepted", { status: "success" }, "status"],
  ["accepted", { completedAt: 1 }, "completed_at"],
  ["accepted", { outcomeKind: "none" }, "outcome_kind"],
  ["accepted", { outcomeText: "t" }, "outcome_text"],
  ["accepted", { artifactLocation: "a" }, "artifact_location"],
  ["accepted", { artifactPointer: "a" }, "artifact_pointer"],
  ["accepted", { artifactChecksum: "a" }, "artifact_checksum"],
  ["accepted", { artifactMime: "a" }, "artifact_mime"],
  ["accepted", { artifactSizeBytes: 1 }, "artifact_size_bytes"],
  ["accepted", { escalationClass: "other" }, "escalation_class"],
  ["accepted", { escalationReason: "r" }, "escalation_reason"],
  ["accepted", { escalationTo: "a" }, "escalation_to"],
  ["accepted", { retryRequested: true }, "retry_requested"],
  ["complete", {}, "status"],
  ["complete", { status: "done" }, "status"],
  ["complete", { status: "success", outcomeKind: "some" }, "outcome_kind"],
  ["complete", { status: "success", outcomeKind: "artifact_pointer" }, "artifact_pointer"],
  ["complete", { status: "success", outcomeKind: "mixed", outcomeText: "t" }, "artifact_pointer"],
  ["complete", { status: "success", escalationClass: "other" }, "escalation_class"],
  ["complete", { status: "success", escalationReason: "r" }, "escalation_reason"],
  ["complete", { status: "success", escalationTo: "a" }, "escalation_to"],
  ["escalate", { escalationReason: "r" }, "escalation_class"],
  ["escalate", { escalationClass: "boredom", escalationReason: "r" }, "escalation_class"],
  ["escalate", { escalationClass: "other" }, "escalation_reason"],
  ["escalate", { ...escalation, status: "failure" }, "status"],
  ["escalate", { ...escalation, escalationTo: "a", recipientAi: "b" }, "recipient_ai"],
  ["progress", { status: "success" }, "status"],
  ["progress", { completedAt: 1 }, "completed_at"],
  ["progress", { escalationClass: "other" }, "escalation_class"],
  ["progress", { retryRequested: true }, "retry_requested"],
  ["progress", { attempt: 0 }, "attempt"],
  ["progress", { attempt: 1.5 }, "attempt"],
  ["progress", { artifactSizeBytes: -1 }, "artifact_size_bytes"],
  ["progress", { taskBody: long(102_400) }, "task_body"],
  ["progress", { outcomeText: long(102_400) }, "outcome_text"],
  ["progress", { inputs: long(65_536) }, "inputs"],
  ["progress", { metadata: { m: long(16_384) } }, "metadata"],
  ["progress", { body: long(limits.receiptBodyBytesMax) }, "body"],
  ["progress", { taskSummary: long(limits.receiptTextMax) }, "task_summary"],
  ["progress", { dedupeKey: "" }, "dedupe_key"],
  ["progress", { dedupeKey: long(limits.keyLengthMax) }, "dedupe_key"],
  ["progress", { receiptId: "rcp_0000000009" }, "receipt_id"],
  ["progress", { tenantId: "t2" }, "tenant_id"],
  ["progress", { sourceSystem: "w.2" }, "source_system"],
  ["finished", {}, "phase"],
  ["Accepted", {}, "phase"],
];

for (const [phase, change, field] of broken) {
  const what = JSON.stringify(change).slice(0, 80);
  test(`R2: a receipt of phase ${phase} with ${what} is refused for its ${field}, and nothing is stored`, () => {
    const { world, offer } = createOffered(phase !== "accepted");
    const refusal = world.refusedReceipt("invalid_receipt", phase, offer, change);
    assert.equal(refusal.field, field);
    assert.ok((refusal.problem?.length ?? 0) > 3, "it says what is wrong");
  });
}

test("R2: limits are in bytes, and what is at the limit is taken", () => {
  const { world, offer } = createOffered();
  world.refusedReceipt("invalid_receipt", "progress", offer, { outcomeText: "é".repeat(51_201) });
  world.submit("progress", offer, {
    outcomeText: "é".repeat(51_200),
    taskBody: long(102_399),
    inputs: long(65_533),
    metadata: long(16_381),
    dedupeKey: long(limits.keyLengthMax - 1),
  });
});

test("R2: the attempt is named by its lease, by the task with a fence or with the worker, and by nothing else", () => {
  const { world, id, offer } = createOffered();
  world.submit("progress", "ignored", { taskId: null, leaseId: offer.lease.id });
  world.submit("progress", id, { fence: offer.lease.fence });
  world.submit("progress", id, { sourceSystem: "w.1" });
  world.submit("progress", id);
  world.refusedReceipt("stale_fence", "progress", id, { fence: offer.lease.fence + 1 });
  world.refusedReceipt("stale_fence", "progress", id, { leaseId: "lse_other" });
  world.refusedReceipt("stale_fence", "progress", offer, { fence: offer.lease.fence - 1 });
  world.refusedReceipt("not_lease_holder", "progress", id, { sourceSystem: "w.2" });
  const nameless = world.refusedReceipt("invalid_receipt", "progress", id, { taskId: null });
  assert.equal(nameless.field, "task_id");
  world.refusedReceipt("lease_unknown", "progress", id, { taskId: null, leaseId: "lse_other" });
  assert.equal(world.refusedReceipt("task_unknown", "progress", "T-never").taskId, "T-never");
});

test("R2: a lease of another task, of an agent or of a manifest does not name an attempt", () => {
  const world = createTaskWorld("a");
  const agents = world.grant("a", "MUTATES FILE:/a");
  world.create({ intents: "MUTATES FILE:/b" });
  const offer = world.start("w.1");
  for (const leaseId of [agents.id, found(offer.leases[0], "manifest").id]) {
    assert.equal(world.refusedReceipt("invalid_receipt", "progress", offer, { leaseId }).field, "lease_id");
  }
  const other = world.create();
  assert.equal(world.refusedReceipt("invalid_receipt", "progress", offer, { taskId: other }).field, "lease_id");
});

test("R3: the same dedupe_key and content is the first receipt, the same key with other content is refused", () => {
  const { world, id, offer } = createOffered();
  const said = { dedupeKey: "k", outcomeText: "half" };
  const { id: receiptId } = world.submit("progress", offer, said);
  assert.deepEqual(world.ask(world.receipt("progress", offer, said)), { type: "receipt_known", receiptId });
  // How the attempt was named does not matter.
  const otherwise = world.receipt("progress", id, { ...said, fence: offer.lease.fence });
  assert.deepEqual(world.ask(otherwise), { type: "receipt_known", receiptId });
  world.refusedReceipt("dedupe_conflict", "progress", offer, { ...said, outcomeText: "most" });
  world.refusedReceipt("dedupe_conflict", "complete", offer, { ...said, status: "success" });
  assert.equal(world.receipts.length, 2);
});

test("R3: a given receipt_id is a key too", () => {
  const { world, offer } = createOffered();
  const said = { receiptId: "r-1", outcomeText: "half" };
  assert.equal(world.submit("progress", offer, said).id, "r-1");
  assert.deepEqual(world.ask(world.receipt("progress", offer, said)), { type: "receipt_known", receiptId: "r-1" });
  world.refusedReceipt("dedupe_conflict", "progress", offer, { receiptId: "r-1" });
});

test("R3: a key is known to its task and to its sender, so that nobody can use up another's; an id is the tenant's", () => {
  const { world, offer } = createOffered();
  const [mine, others] = ["key-1", "key-2"].map((keyId) => ({ ...actor("supervisor"), keyId }));
  const first = world.submit("progress", offer, { dedupeKey: "k", receiptId: "given" }, mine);
  world.create();
  const other = world.start("w.2");
  world.refused("dedupe_conflict", world.receipt("progress", other, { receiptId: "given" }, others));
  world.refused("dedupe_conflict", world.receipt("progress", other, { dedupeKey: "k" }, mine));
  const second = world.submit("progress", other, { dedupeKey: "k" }, others);
  for (const [held, receiptId, said] of [
    [offer, first.id, { dedupeKey: "k", receiptId: "given" }],
    [other, second.id, { dedupeKey: "k" }],
  ] as const) {
    for (const sender of [mine, others])
      assert.deepEqual(world.ask(world.receipt("progress", held, said, sender)), { type: "receipt_known", receiptId });
  }
});

test("T4: a late complete that names only its lease is found with its task, and gets the first answer again", () => {
  const { world, offer } = createOffered();
  world.pass(limits.taskLeaseMsDefault);
  const sent = { taskId: null, status: "success", dedupeKey: "k" };
  world.refusedReceipt("lease_unknown", "complete", offer, sent);
  const late = { ...world.receipt("complete", offer, sent), taskOfLease: offer.task.id };
  const { id: receiptId } = world.expect("receipt", world.ask(late)).receipt;
  const ended = world.endedTask(offer.task.id);
  assert.deepEqual(answerForLateReceipt(late.receipt, ended), { type: "receipt_known", receiptId });
});

test("R3: a repeated receipt is answered with the first one also after its lease was lost", () => {
  const { world, offer } = createOffered(false);
  const said = { dedupeKey: "a" };
  const { id: receiptId } = world.accept(offer, said);
  world.pass(limits.taskLeaseMsDefault);
  assert.deepEqual(world.ask(world.receipt("accepted", offer, said)), { type: "receipt_known", receiptId });
});

test("R3: past its limit a task forgets its first keys, and then says nothing of them", () => {
  const { world, id, offer } = createOffered();
  for (let n = 0; n <= limits.dedupeKeysPerTaskMax; n++) world.submit("progress", offer, { dedupeKey: `k${n}` });
  assert.deepEqual([world.marksOf(id).length, world.marksOf(id)[0]?.key], [limits.dedupeKeysPerTaskMax, "key:k1"]);
  world.submit("progress", offer, { dedupeKey: "k0" });
});

test("R3: which receipts are the same does not depend on how the attempt is named, and on all else", () => {
  const one = { ...plainReceipt, dedupeKey: "k" };
  assert.equal(receiptFingerprint({ ...one, leaseId: "l", fence: 3 }), receiptFingerprint(one));
  assert.notEqual(receiptFingerprint({ ...one, metadata: { a: 1 } }), receiptFingerprint(one));
});

test("R1, R6: receipts are numbered from 1 without a gap, per tenant, whatever is refused between", () => {
  const world = createTaskWorld();
  world.create({ maxAttempts: 1 });
  const offer = world.start("w.1");
  world.refusedReceipt("invalid_receipt", "complete", offer, { status: "perhaps" });
  world.submit("progress", offer);
  world.pass(limits.taskLeaseMsDefault);
  const other = world.beside("t2");
  other.ask({ ...world.creation(), tenant: "t2" });
  other.ask({ ...world.polling("w.1"), tenant: "t2" });
  const [task] = other.base.state.tenants.get("t2")?.tasks.values() ?? [];
  const reply = other.ask({ ...world.receipt("accepted", task?.record.id ?? ""), tenant: "t2" });
  assert.equal(reply.type === "receipt" && reply.receipt.sequence, 1);
  assert.deepEqual(
    world.receipts.map(({ sequence }) => sequence),
    [1, 2, 3, 4],
  );
  assert.equal(new Set(world.receipts.map(({ id }) => id)).size, 4);
});

test("R4: no lease, heartbeat, poll or queue position is in the ledger", () => {
  const { world, offer } = createOffered();
  world.beat(offer, { done: 0.5 });
  world.giveBack(offer);
  world.offered("w.2");
  const text = JSON.stringify(world.receipts);
  assert.ok(!text.includes(offer.lease.id) && !text.includes("lse_") && !text.includes("fence"));
  assert.deepEqual(world.phasesOf(offer.task.id), ["accepted", "escalate released"]);
});

test("R5: each receipt names the one that caused it: a worker's its acceptance, a policy's what it is about", () => {
  const { world, id } = createOffered(true, { maxAttempts: 1 });
  world.submit("progress", id);
  world.pass(limits.taskLeaseMsDefault);
  const [accepted, progress, expired, dead] = world.receiptsOf(id);
  assert.equal(accepted?.causedByReceiptId, null);
  assert.deepEqual([progress?.causedByReceiptId, expired?.causedByReceiptId], [accepted?.id, accepted?.id]);
  assert.equal(dead?.causedByReceiptId, expired?.id);
});

test("R5: an open obligation is in one custodian's inbox at a time, and in none when it is closed", () => {
  const { world, id, offer } = createOffered();
  const inboxes = () => {
    const { custodians } = found(world.base.state.tenants.get("t1"), "tenant").book;
    return [...custodians].map(([custodian, tasks]) => [
      custodian,
      [...tasks].map((one) => (one.kind === "task" ? one.record.id : null)),
    ]);
  };
  assert.deepEqual(inboxes(), [["w.1", [id]]]);
  world.pass(limits.taskLeaseMsDefault);
  assert.deepEqual([inboxes(), world.task(id).obligation?.state], [[["delegate.root", [id]]], "OVERDUE"]);
  world.pass(30_000);
  const second = world.start("w.2");
  assert.deepEqual(inboxes(), [["w.2", [id]]]);
  world.escalate(second, { escalationTo: "boss" });
  assert.deepEqual([inboxes(), world.task(id).obligation?.state], [[["boss", [id]]], "OPEN"]);
  world.cancelTask(id);
  assert.deepEqual([inboxes(), world.endedTask(id).obligation?.state], [[], "CLOSED"]);
  assert.equal(new Set(world.receiptsOf(id).map(({ obligationId }) => obligationId)).size, 1, offer.task.id);
});

test("L13: a receipt takes the key of the attempt's worker, or a supervisor's", () => {
  const world = createTaskWorld("a");
  const key = (keyId: string) => ({ role: "worker", agentId: null, epoch: null, keyId }) as const;
  world.create();
  const offer = world.offered("w.1", { actor: key("k1") });
  for (const who of [key("k2"), world.as("a")]) {
    world.refused("not_lease_holder", world.receipt("accepted", offer, {}, who));
  }
  world.submit("accepted", offer, {}, key("k1"));
});
