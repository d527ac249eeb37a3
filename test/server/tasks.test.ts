import assert from "node:assert/strict";
import { test } from "node:test";
import { failingStore, serve, until, withoutShards } from "./harness.ts";
import { type Refused, taskClientOf } from "./task-client.ts";
import type { WireCreatedTask, WireOffer, WireOffers, WireTask, WireTaskLease } from "./wire-types.ts";

/** Long enough to accept in time, also on a busy machine. */
const brief = { lease_duration_ms: 1_000, requeue_delay_ms: 0 };

test("a task is created, offered, accepted, completed, and shown with its result and receipts", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, show } = taskClientOf(server);
  const taskId = await create({ task_summary: "parse CSV", task_body: "reads CSV", inputs: { language: "python" } });
  assert.equal((await show(taskId)).status, "queued");

  const offer = await offered("worker.codegen-1");
  assert.equal(offer.task.task_id, taskId);
  assert.deepEqual([offer.attempt, offer.task.task_body, offer.task.inputs], [1, "reads CSV", { language: "python" }]);
  assert.equal((await show(taskId)).status, "leased");

  const accepted = await accept(offer);
  assert.equal(accepted.source_system, "worker.codegen-1");
  assert.equal((await show(taskId)).obligation?.state, "OPEN");

  const beat = await server.post<WireTaskLease>(`/lease/${offer.lease_id}/heartbeat`, { progress: { percent: 50 } });
  assert.deepEqual([beat.status, beat.body.directives], [200, []]);
  assert.deepEqual((await show(taskId)).progress, { percent: 50 });

  const done = await complete(offer, { outcome_kind: "response_text", outcome_text: "done" });
  const task = await show(taskId);
  assert.deepEqual(
    [task.status, task.result?.receipt_id, task.obligation?.state],
    ["succeeded", done.receipt_id, "CLOSED"],
  );
  assert.deepEqual(
    task.receipts.map(({ phase, sequence }) => [phase, sequence]),
    [
      ["accepted", 1],
      ["complete", 2],
    ],
  );
  assert.equal(task.receipts[1]?.previous_hash, task.receipts[0]?.hash);
  assert.equal(task.receipts[1]?.caused_by_receipt_id, accepted.receipt_id);
  assert.equal(await taskClientOf(server).poll("worker.codegen-1"), null);
});

test("the AsyncGate document's own request and receipts work unchanged", async (t) => {
  const server = await serve(t);
  const { create, show, send } = taskClientOf(server);
  const taskId = await create({
    principal_ai: "delegate.root",
    task_type: "code.generate",
    task_summary: "Generate Python function for CSV parsing",
    task_body: "Create a function that reads CSV...",
    payload_pointer: "depotgate://artifact/01HTZQ8S3C8Y8Y1QJQ5Y8Z9F6G",
    inputs: { language: "python", framework: "pandas" },
    expected_outcome_kind: "artifact_pointer",
    expected_artifact_mime: "text/x-python",
  });
  const poll = await server.post<WireOffer>("/lease", {
    worker_id: "worker.codegen-aws-i-1234567",
    capabilities: ["python", "rust", "code-generation"],
    max_tasks: 1,
    preferred_kinds: ["code.generate", "code.refactor"],
  });
  assert.equal(poll.status, 200);
  assert.match(poll.headers.get("content-type") ?? "", /^application\/json/);
  assert.match(poll.body.lease_expires_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(poll.body.task, {
    task_id: taskId,
    principal_ai: "delegate.root",
    task_type: "code.generate",
    task_summary: "Generate Python function for CSV parsing",
    task_body: "Create a function that reads CSV...",
    payload_pointer: "depotgate://artifact/01HTZQ8S3C8Y8Y1QJQ5Y8Z9F6G",
    inputs: { language: "python", framework: "pandas" },
    expected_outcome_kind: "artifact_pointer",
    expected_artifact_mime: "text/x-python",
  });
  const accepted = await send({
    phase: "accepted",
    task_id: taskId,
    recipient_ai: "worker.codegen",
    source_system: "worker.codegen-aws-i-1234567",
  });
  assert.equal(accepted.status, 201, accepted.text);
  assert.equal((await show(taskId)).obligation?.custodian, "worker.codegen");
  const complete = await send({
    phase: "complete",
    task_id: taskId,
    status: "success",
    outcome_kind: "artifact_pointer",
    artifact_location: "s3://bucket/result.py",
  });
  assert.equal(complete.status, 201, complete.text);
  assert.deepEqual(
    [complete.body.artifact_pointer, complete.body.artifact_mime, complete.body.source_system],
    ["s3://bucket/result.py", "text/x-python", "worker.codegen-aws-i-1234567"],
  );
});

test("no work available: 204 with an empty body, and a back-off of 5 s", async (t) => {
  const { post } = await serve(t);
  for (const path of ["/lease", "/v1/lease"]) {
    const { status, text, headers } = await post(path, { worker_id: "worker.a" });
    assert.deepEqual([status, text, headers.get("retry-after")], [204, "", "5"]);
    assert.equal(headers.get("content-length"), null);
  }
});

test("worker behaviour: an offer that is not accepted expires and is requeued without a receipt", async (t) => {
  const server = await serve(t);
  const { create, offered, reach } = taskClientOf(server);
  const taskId = await create({ ...brief, lease_duration_ms: 150 });
  const first = await offered("worker.small");
  const task = await reach(taskId, "queued");
  assert.deepEqual([task.attempts, task.offers, task.receipts], [0, 1, []]);
  const second = await offered("worker.large");
  assert.ok(second.fence > first.fence);
  assert.equal(second.attempt, 1);
});

test("worker behaviour: a worker that crashes after accepting leaves an escalate receipt, and the task is retried", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, phases, complete, show } = taskClientOf(server);
  const taskId = await create({ ...brief, requeue_delay_ms: 50 });
  await accept(await offered("worker.crashes"));
  await until(async () => ((await show(taskId)).receipts.length > 1 ? true : null), "the expiry is on record");
  const pending = await show(taskId);
  assert.deepEqual(
    [pending.receipts[1]?.escalation_class, pending.receipts[1]?.escalation_reason, pending.obligation?.state],
    ["policy", "lease_expired", "OVERDUE"],
  );
  const again = await until(() => taskClientOf(server).poll("worker.other"), "it is offered again");
  assert.equal(again.attempt, 2);
  await accept(again);
  await complete(again);
  await reach(taskId, "succeeded");
  assert.deepEqual(await phases(taskId), ["accepted", "escalate lease_expired", "accepted", "complete success"]);
});

test("worker behaviour: after its last attempt a task is a dead letter, and can be redriven", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, reach, phases, complete } = taskClientOf(server);
  const taskId = await create({ ...brief, max_attempts: 1 });
  await accept(await offered("worker.crashes"));
  const dead = await reach(taskId, "dead");
  assert.deepEqual((await phases(taskId)).at(-1), "escalate max_retries_exceeded");
  assert.equal(dead.obligation?.state, "OVERDUE");
  const inbox = await server.get<{ obligations: readonly { task_id: string }[] }>("/v1/inbox/delegate.root");
  assert.deepEqual(
    inbox.body.obligations.map(({ task_id: id }) => id),
    [taskId],
  );
  const redriven = await server.post<WireTask>(`/v1/tasks/${taskId}/redrive`);
  assert.deepEqual([redriven.status, redriven.body.status], [200, "queued"]);
  assert.equal((await server.post<Refused>(`/v1/tasks/${taskId}/redrive`)).body.error, "task_not_dead");
  const offer = await offered("worker.b");
  await accept(offer);
  await complete(offer);
});

test("worker behaviour: a type of task that the worker does not know is passed on with an escalate receipt", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, reach } = taskClientOf(server);
  const taskId = await create({ task_type: "data.transform" });
  const offer = await offered("worker.codegen-1");
  await accept(offer);
  const { status, body, text } = await send({
    phase: "escalate",
    lease_id: offer.lease_id,
    escalation_class: "capability",
    escalation_reason: "unsupported task_type",
  });
  assert.equal(status, 201, text);
  assert.deepEqual([body.escalation_to, body.recipient_ai], ["delegate.root", "delegate.root"]);
  assert.equal((await reach(taskId, "dead")).obligation?.custodian, "delegate.root");
});

test("error handling: no database connection is 503 database_unavailable, for polls and receipts alike", async (t) => {
  const { store, failNextCommit, comeBack } = failingStore();
  const server = await serve(t, { store });
  const { create, offered, accept, complete, show } = taskClientOf(server);
  const taskId = await create();
  failNextCommit("lost");
  const lost = await server.post("/lease", { worker_id: "worker.a" });
  assert.deepEqual([lost.status, lost.body.error], [503, "database_unavailable"]);
  assert.equal((await server.post("/v1/receipts", { phase: "accepted", task_id: taskId })).status, 503);
  comeBack();
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  assert.equal((await show(taskId)).status, "queued", "the lost offer was never made");
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
});

test("error handling: an internal error is 500 internal_error, changes nothing, and the worker can try again", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, show } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const { store } = server.service.engine;
  const look = store.receiptsByDedupe.bind(store);
  store.receiptsByDedupe = () => Promise.reject(new TypeError("a bug"));
  const said = { phase: "complete", status: "success", lease_id: offer.lease_id, dedupe_key: "k" } as const;
  const failed = await send(said);
  assert.deepEqual([failed.status, failed.body.error], [500, "internal_error"]);
  assert.equal((await show(taskId)).status, "accepted");
  store.receiptsByDedupe = look;
  assert.equal((await send(said)).status, 201, "and nobody else holds the key");
});

test("error handling: an invalid worker_id is refused in the document's words", async (t) => {
  const { post } = await serve(t);
  for (const workerId of ["codegen", ".a", "a.", "", "a b.c", "x".repeat(200), "ä.b"]) {
    const { status, text } = await post("/lease", { worker_id: workerId });
    assert.equal(status, 400, workerId);
    assert.deepEqual(JSON.parse(text), {
      error: "invalid_worker_id",
      detail: "must match pattern {type}.{instance}",
    });
  }
});

test("T7: one poll returns several offers, and one call takes many receipts, each with its own reply", async (t) => {
  const server = await serve(t);
  const { create, reach } = taskClientOf(server);
  const ids = await Promise.all(Array.from({ length: 5 }, () => create()));
  const { body } = await server.post<WireOffers>("/lease", { worker_id: "worker.batch", max_tasks: 10 });
  assert.deepEqual(body.offers.map(({ task }) => task.task_id).toSorted(), ids.toSorted());
  const accepts = body.offers.map(({ lease_id }) => ({ phase: "accepted", lease_id }));
  const accepted = await server.post<{
    results: readonly { status: number; body: { receipt_id: string; sequence: number } }[];
  }>("/v1/receipts/batch", {
    receipts: [...accepts, { phase: "accepted", lease_id: "lse_never" }, { phase: "dance" }],
  });
  assert.deepEqual(
    accepted.body.results.map(({ status }) => status),
    [201, 201, 201, 201, 201, 404, 422],
  );
  assert.deepEqual(
    accepted.body.results.slice(0, 5).map((one) => one.body.sequence),
    [1, 2, 3, 4, 5],
  );
  const completes = body.offers.map(({ lease_id }) => ({ phase: "complete", status: "success", lease_id }));
  await server.post("/v1/receipts/batch", { receipts: completes });
  for (const id of ids) await reach(id, "succeeded");
});

test("T1: with max_tasks over 1 even one offer comes in a list", async (t) => {
  const server = await serve(t);
  const { create } = taskClientOf(server);
  await create();
  const { body } = await server.post<WireOffers>("/lease", { worker_id: "worker.batch", max_tasks: 2 });
  assert.equal(body.offers.length, 1);
});

test("T1: a poll repeated with its request_id returns the same offers, and nothing is offered twice", async (t) => {
  const server = await serve(t);
  const { create, offered, poll } = taskClientOf(server);
  await create();
  const first = await offered("worker.a", { request_id: "r-1" });
  const again = await offered("worker.a", { request_id: "r-1" });
  assert.deepEqual([again.lease_id, again.fence], [first.lease_id, first.fence]);
  assert.equal(await poll("worker.a", { request_id: "r-2" }), null);
});

test("T1: a restarted worker reclaims its leases with new fences, and its older instance is refused", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, send, complete } = taskClientOf(server);
  const [one, two] = [await create(), await create()];
  const first = await offered("worker.a");
  await accept(first);
  await offered("worker.a");
  const { body } = await server.post<WireOffers>("/lease", { worker_id: "worker.a", reclaim: true });
  assert.deepEqual(body.offers.map(({ task }) => task.task_id).toSorted(), [one, two].toSorted());
  const mine = body.offers.find(({ task }) => task.task_id === one);
  assert.ok(mine !== undefined && mine.fence > first.fence && mine.attempt === 1);
  const stale = await send({ phase: "complete", status: "success", task_id: one, fence: first.fence });
  assert.deepEqual([stale.status, stale.body.error], [409, "stale_fence"]);
  await complete(mine);
});

test("T2: an offer that is given back is offered again at once and costs no attempt; giving back twice succeeds", async (t) => {
  const server = await serve(t);
  const { create, offered, show } = taskClientOf(server);
  const taskId = await create();
  const offer = await offered("worker.a");
  for (const _ of [1, 2]) assert.equal((await server.post(`/lease/${offer.lease_id}/release`)).status, 200);
  assert.equal((await show(taskId)).attempts, 0);
  assert.ok((await offered("worker.b")).fence > offer.fence);
  const gone = await server.post(`/lease/${offer.lease_id}/heartbeat`);
  assert.deepEqual([gone.status, gone.body.error], [410, "lease_released"]);
});

test("T2: after max_offers without acceptance the task is dead (policy, never_accepted)", async (t) => {
  const server = await serve(t);
  const { create, offered, show, phases } = taskClientOf(server);
  const taskId = await create({ max_offers: 2 });
  for (const worker of ["worker.a", "worker.b"]) {
    const { lease_id } = await offered(worker);
    await server.post(`/lease/${lease_id}/release`);
  }
  assert.equal((await show(taskId)).status, "dead");
  assert.deepEqual(await phases(taskId), ["escalate never_accepted"]);
});

test("T6: the settings of a task type can be changed and listed", async (t) => {
  const server = await serve(t);
  const { create, show } = taskClientOf(server);
  const set = await server.call("PUT", "/v1/task-types/quick", { lease_duration_ms: 2_000, max_attempts: 7 });
  assert.equal(set.status, 200);
  const task = await show(await create({ task_type: "quick" }));
  assert.deepEqual([task.lease_duration_ms, task.max_attempts, task.requeue_delay_ms], [2_000, 7, 30_000]);
  const { body } = await server.get<{ task_types: readonly { task_type: string }[] }>("/v1/task-types");
  assert.deepEqual(
    body.task_types.map(({ task_type: type }) => type),
    ["quick"],
  );
});

test("T8: workers are listed with their capabilities and health", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  await create();
  const offer = await offered("worker.a", { capabilities: ["python"] });
  await accept(offer);
  await complete(offer);
  interface Worker {
    readonly worker_id: string;
    readonly capabilities: readonly string[];
    readonly completed: number;
    readonly leases: number;
  }
  const { body } = await server.get<{ workers: readonly Worker[] }>("/v1/workers");
  const [worker] = body.workers;
  assert.deepEqual(
    [worker?.worker_id, worker?.capabilities, worker?.completed, worker?.leases],
    ["worker.a", ["python"], 1, 0],
  );
});

test("T11: explain names what a task waits for: a worker, a slot, a time, a task, a lease", async (t) => {
  const server = await serve(t);
  const { create, offered } = taskClientOf(server);
  interface Waits {
    readonly kind: string;
    readonly detail: string;
    readonly task_ids?: readonly string[];
    readonly blocked_by?: readonly unknown[];
  }
  const explain = async (id: string) => {
    const { body } = await server.get<{ waiting_for: readonly Waits[] }>(`/v1/tasks/${id}/explain`);
    return body.waiting_for;
  };
  const kinds = async (id: string) => (await explain(id)).map((one) => one.kind);
  const gpu = await create({ requires: ["gpu"] });
  assert.deepEqual(await kinds(gpu), ["worker"]);
  const running = await create({ concurrency_key: "one" });
  const { lease_id } = await offered("worker.a");
  assert.deepEqual(await kinds(running), ["running"]);
  assert.deepEqual(await kinds(await create({ concurrency_key: "one" })), ["concurrency_key"]);
  assert.deepEqual(await kinds(await create({ delay_ms: 60_000 })), ["delay"]);
  const [dependency] = await explain(await create({ depends_on: [running] }));
  assert.deepEqual([dependency?.kind, dependency?.task_ids], ["dependency", [running]]);
  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/a");
  const [resource] = await explain(await create({ intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] }));
  assert.equal(resource?.kind, "resource");
  assert.ok(JSON.stringify(resource?.blocked_by).includes(lease.id));
  assert.match(String(resource?.detail), new RegExp(`${lease.id} of alice`));
  assert.ok(lease_id);
});

test("T12: creation is idempotent by key, also after the task has ended; another body under the key is refused", async (t) => {
  const server = await serve(t);
  const { offered, accept, complete } = taskClientOf(server);
  const asked = { task_type: "t", principal_ai: "p", idempotency_key: "once" };
  const first = await server.post<WireCreatedTask>("/v1/tasks", asked);
  const again = await server.post<WireCreatedTask>("/v1/tasks", asked);
  assert.deepEqual([first.status, again.status, again.body.task_id], [201, 200, first.body.task_id]);
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
  const late = await server.post<WireCreatedTask>("/v1/tasks", asked);
  assert.deepEqual([late.status, late.body], [200, { task_id: first.body.task_id, status: "succeeded" }]);
  const other = await server.post("/v1/tasks", { ...asked, task_priority: 1 });
  assert.deepEqual([other.status, other.body.error], [422, "idempotency_key_reused"]);
});

test("T12: a task runs after its dependencies, live or ended; an unknown dependency is refused", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete, poll, show } = taskClientOf(server);
  const first = await create();
  const second = await create({ depends_on: [first] });
  const offer = await offered("worker.a");
  assert.equal(offer.task.task_id, first);
  assert.equal(await poll("worker.a"), null);
  await accept(offer);
  await complete(offer);
  const next = await offered("worker.a");
  assert.equal(next.task.task_id, second);
  // By now the first is in history, and the kernel no longer has it.
  const third = await create({ depends_on: [first, second] });
  assert.deepEqual((await show(third)).waiting_on, [second]);
  const unknown = await server.post("/v1/tasks", { task_type: "t", principal_ai: "p", depends_on: ["T-never"] });
  assert.deepEqual([unknown.status, unknown.body.error, unknown.body.field], [404, "dependency_unknown", "depends_on"]);
});

test("many tasks are created in one call, each with its own reply, and a bad one does not affect the others", async (t) => {
  const server = await serve(t);
  const good = { task_type: "t", principal_ai: "p" };
  const { status, body } = await server.post<{
    results: readonly { status: number; body: Refused & WireCreatedTask }[];
  }>("/v1/tasks/batch", {
    tasks: [
      good,
      { ...good, idempotency_key: "k" },
      { ...good, idempotency_key: "k" },
      { task_type: "t" },
      { ...good, max_attempts: 0 },
      { ...good, depends_on: ["T-never"] },
      { ...good, intents: [{ predicate: "MUTATES", resource: "nonsense" }] },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual(
    body.results.map((one) => [one.status, one.body.error ?? one.body.status]),
    [
      [201, "queued"],
      [201, "queued"],
      [200, "queued"],
      [400, "invalid_request"],
      [400, "invalid_task"],
      [404, "dependency_unknown"],
      [400, "invalid_resource"],
    ],
  );
  assert.equal(body.results[2]?.body.task_id, body.results[1]?.body.task_id);
  assert.deepEqual([body.results[3]?.body.field, body.results[4]?.body.field], ["principal_ai", "max_attempts"]);
  const { body: listed } = await server.get<{ tasks: readonly WireTask[] }>("/v1/tasks");
  assert.equal(listed.tasks.length, 2);
});

test("tasks are listed page by page, first live and then ended ones, by status and by type", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const ids: string[] = [];
  for (let count = 0; count < 7; count++) ids.push(await create({ task_type: count % 2 === 0 ? "even" : "odd" }));
  for (let count = 0; count < 3; count++) {
    const offer = await offered("worker.a");
    await accept(offer);
    await complete(offer);
  }
  interface Page {
    readonly tasks: readonly WireTask[];
    readonly next_cursor: string | null;
  }
  const all: WireTask[] = [];
  let cursor = "";
  do {
    const { body } = await server.get<Page>(`/v1/tasks?limit=2&cursor=${cursor}`);
    assert.ok(body.tasks.length <= 2);
    all.push(...body.tasks);
    cursor = body.next_cursor ?? "";
  } while (cursor !== "");
  assert.deepEqual(all.map(({ task_id: id }) => id).toSorted(), ids.toSorted());
  assert.deepEqual(
    all.map(({ status }) => status),
    ["queued", "queued", "queued", "queued", "succeeded", "succeeded", "succeeded"],
  );
  const { body: odd } = await server.get<Page>("/v1/tasks?task_type=odd&status=succeeded");
  assert.ok(
    odd.tasks.length > 0 && odd.tasks.every(({ task_type: type, status }) => type === "odd" && status === "succeeded"),
  );
  const { body: wrong } = await server.get("/v1/tasks?cursor=bm9uc2Vuc2U");
  assert.equal(wrong.error, "invalid_request");
});

test("an unknown task is task_unknown for every operation", async (t) => {
  const { get, post } = await serve(t);
  for (const { status, body } of [
    await get("/v1/tasks/T-never"),
    await get("/v1/tasks/T-never/explain"),
    await post("/v1/tasks/T-never/cancel"),
    await post("/v1/tasks/T-never/redrive"),
    await post("/v1/receipts", { phase: "accepted", task_id: "T-never" }),
  ])
    assert.deepEqual([status, body.error], [404, "task_unknown"]);
});

test("each step of a task has an event, in order", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const seen: string[] = [];
  server.service.engine.subscribe((events) => {
    for (const { event: happened } of events) {
      const event = JSON.parse(server.service.engine.encodeEvent(happened)) as { type: string; task_id?: string };
      if (event.task_id !== undefined) seen.push(event.type);
    }
  });
  const taskId = await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
  await until(() => (seen.length >= 6 ? true : null), "all is reported");
  assert.deepEqual(
    seen.filter((type) => type.startsWith("task.")),
    ["task.created", "task.offered", "task.accepted", "task.completed"],
  );
  assert.equal(seen.filter((type) => type === "receipt.stored").length, 2);
  const metrics = withoutShards((await server.get("/metrics")).text);
  for (const line of [
    "leasehold_task_offers_total 1",
    'leasehold_task_completions_total{status="succeeded"} 1',
    'leasehold_tasks{status="queued"} 0',
    'leasehold_receipts_total{phase="accepted"} 1',
    "leasehold_task_queue_wait_seconds_count 1",
  ])
    assert.ok(metrics.includes(line), line);
  assert.ok(taskId);
});
