import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import {
  type Client,
  type TaskEnd,
  TaskEscalated,
  TaskFailed,
  TaskStopped,
  type WorkerOptions,
} from "../../src/sdk/index.ts";
import { clientFor, pause, proxyTo, serve, until, untilAborted } from "./harness.ts";

const task = { task_type: "code.generate", principal_ai: "delegate.root" };

function workerFor(t: TestContext, client: Client, options: WorkerOptions) {
  const worker = client.worker({ drainMs: 0, onError: (error) => t.diagnostic(String(error)), ...options });
  t.after(() => worker.drain().catch(() => undefined));
  return worker;
}

/** The task, once it has this status. */
function untilStatus(client: Client, taskId: string, status: string) {
  return until(async () => {
    const found = await client.call("get_task", { task_id: taskId });
    return found.status === status ? found : null;
  }, `${taskId} is ${status}`);
}

test("a task is offered, accepted and completed, and its result is in the ledger", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const seen: unknown[] = [];
  workerFor(t, client, {
    types: ["code.generate"],
    capabilities: ["python"],
    concurrency: 4,
    handler: ({ inputs }, { attempt, fence, leases, traceparent }) => {
      seen.push(inputs, attempt, leases.length, traceparent);
      assert.ok(fence > 0);
      return { text: "done", artifactLocation: "s3://bucket/result.py", artifactMime: "text/x-python" };
    },
  });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const intents = [{ predicate: "MUTATES" as const, resource: "FILE:/src/csv.py" }];
  const { task_id: id } = await client.call("create_task", {
    ...task,
    inputs: { n: 1 },
    intents,
    requires: ["python"],
    traceparent,
  });
  const done = await untilStatus(client, id, "succeeded");
  assert.deepEqual(seen, [{ n: 1 }, 1, 1, traceparent]);
  assert.deepEqual(
    done.receipts.map(({ phase }) => phase),
    ["accepted", "complete"],
  );
  assert.equal(done.result?.outcome_kind, "mixed");
  assert.equal(done.result?.artifact_pointer, "s3://bucket/result.py");
  const { leases } = await client.call("list_leases", { resource: "FILE:/src/csv.py" });
  assert.deepEqual(leases, []);
});

test("a worker runs at most its concurrency at once, and each task once", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const done = new Map<string, number>();
  let inside = 0;
  let most = 0;
  workerFor(t, client, {
    concurrency: 5,
    handler: async ({ task_id: id }) => {
      most = Math.max(most, ++inside);
      if (done.size === 0) await until(() => (most === 5 || done.size > 0 ? true : null), "there are five");
      inside--;
      done.set(id, (done.get(id) ?? 0) + 1);
    },
  });
  const tasks = Array.from({ length: 60 }, () => task);
  await client.call("create_tasks", { tasks });
  await until(() => (done.size === 60 ? true : null), "all are done");
  assert.deepEqual([...new Set(done.values())], [1]);
  assert.equal(most, 5);
});

test("an error is a retryable failure unless the handler says otherwise; an escalation names its recipient", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const attempts: number[] = [];
  workerFor(t, client, {
    handler: ({ task_summary: what }, { attempt }) => {
      if (what === "hopeless") throw new TaskFailed("no such thing", { retry: false });
      if (what === "delicate") throw new TaskEscalated("a human has to look", { class: "policy", to: "boss" });
      attempts.push(attempt);
      if (attempt === 1) throw new RangeError("not yet");
      return "at last";
    },
  });
  const create = async (summary: string) =>
    (await client.call("create_task", { ...task, task_summary: summary, requeue_delay_ms: 0 })).task_id;
  const [flaky, hopeless, delicate] = await Promise.all([create("flaky"), create("hopeless"), create("delicate")]);
  const first = await untilStatus(client, flaky, "succeeded");
  assert.deepEqual(attempts, [1, 2]);
  assert.equal(first.result?.outcome_text, "at last");
  const failed = await untilStatus(client, hopeless, "failed");
  assert.match(failed.result?.outcome_text ?? "", /no such thing/);
  const dead = await untilStatus(client, delicate, "dead");
  const escalation = dead.receipts.find(({ phase }) => phase === "escalate");
  assert.equal(escalation?.escalation_class, "policy");
  assert.equal(escalation?.escalation_to, "boss");
});

test("a handler that blocks its event loop for longer than its lease keeps the lease", async (t) => {
  const server = await serveElsewhere(t);
  const client = clientFor(t, server);
  const ends: TaskEnd[] = [];
  workerFor(t, client, {
    onEnd: (_id, end) => ends.push(end),
    handler: (_task, { signal, remainingMs }) => {
      const end = performance.now() + 4_500;
      while (performance.now() < end);
      assert.ok(remainingMs() > 0);
      assert.ok(!signal.aborted);
      return "busy but well";
    },
  });
  const { task_id: id } = await client.call("create_task", { ...task, lease_duration_ms: 3_000 });
  const done = await untilStatus(client, id, "succeeded");
  assert.deepEqual(
    done.receipts.map(({ phase }) => phase),
    ["accepted", "complete"],
  );
  assert.deepEqual(ends, ["succeeded"]);
});

test("a handler that is stuck past its limit loses its lease, whether it blocks or only never ends", async (t) => {
  const server = await serveElsewhere(t);
  const client = clientFor(t, server);
  const blocked = workerFor(t, client, {
    maxBusyMs: 300,
    handler: (_task, { remainingMs }) => {
      const end = performance.now() + 1_500;
      while (performance.now() < end);
      if (remainingMs() === 0) throw new Error("too late");
    },
  });
  const brief = { ...task, lease_duration_ms: 300, max_attempts: 1 };
  const first = await client.call("create_task", brief);
  const dead = await untilStatus(client, first.task_id, "dead");
  assert.deepEqual(
    dead.receipts.filter(({ phase }) => phase === "escalate").map(({ escalation_class: kind }) => kind)[0],
    "policy",
  );
  await blocked.drain();

  const ends: TaskEnd[] = [];
  const reasons: unknown[] = [];
  workerFor(t, client, {
    maxRunMs: 200,
    onEnd: (_id, end) => ends.push(end),
    handler: async (_task, { signal }) => {
      await untilAborted(signal).catch((error: unknown) => {
        reasons.push(error instanceof TaskStopped && error.reason);
        throw error;
      });
    },
  });
  // Long enough that the lease is not lost before the run limit.
  const second = await client.call("create_task", { ...brief, lease_duration_ms: 3_000 });
  await untilStatus(client, second.task_id, "dead");
  assert.deepEqual(ends, ["dropped"]);
  assert.deepEqual(reasons, ["overrun"]);
});

test("a canceled task stops its handler with the reason", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const reasons: unknown[] = [];
  let isRunning = false;
  workerFor(t, client, {
    handler: async (_task, { signal, progress }) => {
      progress({ percent: 40 });
      isRunning = true;
      await untilAborted(signal).catch((error: unknown) => {
        reasons.push(error instanceof TaskStopped && error.reason);
        throw error;
      });
    },
  });
  const { task_id: id } = await client.call("create_task", { ...task, lease_duration_ms: 1_500 });
  await until(() => (isRunning ? true : null), "it runs");
  await until(async () => {
    const { progress } = (await client.call("get_task", { task_id: id })) as { progress?: unknown };
    return JSON.stringify(progress) === '{"percent":40}' ? true : null;
  }, "its progress is shown");
  await client.call("cancel_task", { task_id: id });
  await until(() => (reasons.length > 0 ? true : null), "it has stopped");
  assert.ok(reasons[0] === "cancel" || reasons[0] === "lost", String(reasons[0]));
  assert.equal((await client.call("get_task", { task_id: id })).status, "canceled");
});

test("cut off from the server, the handler is stopped before its lease can have ended", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  const far = clientFor(t, proxy.url);
  const stops: { at: number; reason: unknown }[] = [];
  workerFor(t, far, {
    handler: async (_task, { signal, attempt }) => {
      if (attempt > 1) return;
      proxy.hush();
      await untilAborted(signal).catch((error: unknown) => {
        stops.push({ at: Date.now(), reason: error instanceof TaskStopped && error.reason });
        proxy.heal();
        throw error;
      });
    },
  });
  const { task_id: id } = await near.call("create_task", { ...task, lease_duration_ms: 8_000, requeue_delay_ms: 0 });
  const events = near.events({ since: 0, types: ["lease.expired", "task.requeued"] });
  const { value: ended } = await events.next();
  await events.return();
  await untilStatus(near, id, "succeeded");
  assert.equal(stops[0]?.reason, "lost");
  assert.ok((stops[0]?.at ?? Number.POSITIVE_INFINITY) < Date.parse(ended?.at ?? ""));
});

test("a drain gives back running tasks and costs no attempt; on SIGTERM the process drains and ends by the signal", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const child = startWorker(t, server.address.url);
  const { task_id: id } = await client.call("create_task", task);
  await untilStatus(client, id, "accepted");
  child.kill("SIGTERM");
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  assert.deepEqual([code, signal], [null, "SIGTERM"]);
  await untilStatus(client, id, "queued");
  let attempt = 0;
  workerFor(t, client, {
    handler: (_task, context) => {
      attempt = context.attempt;
    },
  });
  await untilStatus(client, id, "succeeded");
  assert.equal(attempt, 1);
});

test("a drained worker gives back an offer that arrives at the last moment", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const worker = workerFor(t, client, { handler: () => undefined });
  await pause(50);
  const created = client.call("create_task", task);
  await worker.drain();
  const { task_id: id } = await created;
  const { status } = await client.call("get_task", { task_id: id });
  assert.ok(status === "queued" || status === "succeeded", status);
});

test("a worker that restarts under its id reclaims its orphaned task", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const child = startWorker(t, server.address.url, "worker.one");
  const { task_id: id } = await client.call("create_task", task);
  await untilStatus(client, id, "accepted");
  child.kill("SIGKILL");
  await once(child, "exit");
  workerFor(t, client, { workerId: "worker.one", handler: () => "reclaimed" });
  const done = await untilStatus(client, id, "succeeded");
  assert.equal(done.result?.outcome_text, "reclaimed");
});

test("a task of a type that the worker does not handle is given back", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const seen: string[] = [];
  workerFor(t, client, { types: ["code.review"], handler: ({ task_type: type }) => void seen.push(type) });
  const { task_id: other } = await client.call("create_task", task);
  await untilStatus(client, other, "queued");
  workerFor(t, client, { types: ["code.generate"], handler: ({ task_type: type }) => void seen.push(type) });
  await untilStatus(client, other, "succeeded");
  assert.deepEqual(seen, ["code.generate"]);
});

test("T3: a worker looks at an offer and declines it before accepting, which costs no attempt", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const asked: number[] = [];
  const ends: TaskEnd[] = [];
  workerFor(t, client, {
    accept: ({ task: { inputs }, attempt }) => {
      asked.push(attempt);
      if (asked.length === 1) throw new Error("cannot say");
      return asked.length > 2 && inputs !== null;
    },
    backOff: { noWorkMs: 20 },
    handler: () => "done",
    onEnd: (_taskId, end) => ends.push(end),
  });
  const { task_id: id } = await client.call("create_task", { ...task, inputs: { n: 1 } });
  const { receipts } = await untilStatus(client, id, "succeeded");
  assert.deepEqual(asked, [1, 1, 1]);
  await until(() => (ends.length === 3 ? true : null), "all three ends were reported");
  assert.deepEqual(ends, ["declined", "declined", "succeeded"]);
  assert.deepEqual(
    receipts.map(({ phase }) => phase),
    ["accepted", "complete"],
  );
});

test("T6: a worker pauses without work and after errors, longer each time, and obeys Retry-After", async (t) => {
  const server = await serve(t);
  const polls: number[] = [];
  const answers = [
    () => new Response(null, { status: 204 }),
    () => new Response("away", { status: 503, headers: { "retry-after": "1" } }),
    () => Response.json({ error: "database_unavailable", detail: "", retry_after_ms: 0 }, { status: 503 }),
  ];
  const answering: typeof fetch = (url, init) => {
    if (!String(url).endsWith("/lease")) return fetch(url, init);
    const answer = answers[polls.length];
    polls.push(performance.now());
    return answer === undefined ? fetch(url, init) : Promise.resolve(answer());
  };
  const client = clientFor(t, server.address.url, { fetch: answering, transport: "http", retries: 0 });
  workerFor(t, client, { handler: () => "done", backOff: { noWorkMs: 120, errorMs: 60, errorMsMax: 100 } });
  await until(() => (polls.length > 3 ? true : null), "it has polled again");
  const pauses = polls.slice(1).map((at, index) => at - (polls[index] ?? 0));
  assert.deepEqual(
    pauses.slice(0, 3).map((ms, index) => ms >= ([100, 999, 55][index] ?? 0)),
    [true, true, true],
    String(pauses),
  );
});

test("a refused key ends the worker with the code", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url, { key: "wrong" });
  const worker = client.worker({ handler: () => undefined });
  await assert.rejects(worker.done, (error) => (error as { readonly code?: unknown }).code === "unauthorized");
});

function startWorker(t: TestContext, url: string, workerId?: string): ChildProcess {
  const path = new URL("./stuck-worker.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [path, url, ...(workerId === undefined ? [] : [workerId])], {
    stdio: "inherit",
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}

/** In a separate process, because this one's event loop is blocked. */
async function serveElsewhere(t: TestContext): Promise<string> {
  const main = new URL("../../src/main.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [main, "--port", "0", "--store", "memory"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  for await (const chunk of child.stdout ?? []) {
    said += String(chunk);
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
    if (found !== null) return found[0];
  }
  throw new Error(`the server said only: ${said}`);
}
