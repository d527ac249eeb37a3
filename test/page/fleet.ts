/** A small fleet with something on every screen: work, waits, a pause, a loss, a fence, tasks, receipts, an escalation. */
import assert from "node:assert/strict";
import type { Client } from "../server/harness.ts";

export interface Fleet {
  readonly taskIds: readonly string[];
  readonly deadTask: string;
  readonly escalatedTask: string;
}

interface Caller {
  readonly key?: string | undefined;
  readonly tenant?: string;
}

const longMs = 300_000;

export async function startFleet(client: Client, as: Caller = {}, suffix = ""): Promise<Fleet> {
  const post = async <T>(path: string, body: object): Promise<T> => (await client.post<T>(path, body, as)).body;
  const file = (name: string): string => `FILE:/shop/src/${name}${suffix}`;
  const acquire = (agent: string, resource: string, purpose: string, more: object = {}) =>
    post("/v1/acquire", {
      agent_id: agent,
      intents: [{ predicate: "MUTATES", resource }],
      ttl_ms: longMs,
      wait_timeout_ms: longMs,
      purpose: `${purpose}${suffix}`,
      ...more,
    });
  const names = ["planner", "refactorer", "reviewer", "tester", "writer", "migrator", "fixer", "watcher"];
  for (const name of names)
    await post("/v1/agents", { agent_id: name, labels: { model: "large", host: `build-1${suffix}` } });

  await acquire("writer", file("checkout/cart.ts"), "rename addItem()");
  await acquire("writer", file("checkout/total.ts"), "rename addItem()");
  await acquire("fixer", file("auth/login.ts"), "fix the redirect");
  await acquire("planner", file("checkout/cart.ts"), "plan discounts");
  await acquire("refactorer", file("checkout/**"), "split the module");
  await acquire("watcher", file("auth/login.ts"), "add metrics", { standby_ms: 50_000 });
  await client.call("PUT", "/v1/resources", { resource: `GPU:/lab/0${suffix}`, capacity: 4 }, as);
  await acquire("tester", `GPU:/lab/0${suffix}`, "train", {
    intents: [{ predicate: "MUTATES", resource: `GPU:/lab/0${suffix}`, units: 3 }],
  });
  await client.call("PUT", "/v1/resources", { resource: `GPU:/lab/1${suffix}` }, as);
  await post("/v1/resources/fence", { resource: `GPU:/lab/1${suffix}`, reason: `smoke${suffix}` });
  await acquire("reviewer", `GPU:/lab/1${suffix}`, "evaluate");
  await acquire("migrator", file("db/schema.sql"), "add a column", { ttl_ms: 100 });
  await client.call(
    "PUT",
    "/v1/agents/writer/digest",
    { checkpoint_id: `c-1${suffix}`, resume_point: `step 4${suffix}`, context: { step: `4${suffix}` } },
    as,
  );

  const taskIds: string[] = [];
  for (let n = 1; n <= 12; n++) {
    const { task_id } = await post<{ task_id: string }>("/v1/tasks", {
      task_type: n % 3 === 0 ? "review" : "build",
      principal_ai: "planner",
      task_summary: `Package ${n}${suffix}`,
      task_body: `body ${n}${suffix}`,
      inputs: { part: `${n}${suffix}` },
      requeue_delay_ms: 0,
      max_attempts: 1,
    });
    assert.ok(task_id !== undefined);
    taskIds.push(task_id);
  }
  const poll = (worker: string) =>
    post<{ lease_id: string; task: { task_id: string } }>("/v1/lease", { worker_id: worker });
  const send = (receipt: object) => post("/v1/receipts", receipt);
  const done = await poll("builder.1");
  await send({ phase: "accepted", lease_id: done.lease_id });
  await send({
    phase: "complete",
    lease_id: done.lease_id,
    status: "success",
    outcome_kind: "response_text",
    outcome_text: `built${suffix}`,
  });
  const asked = await poll("builder.1");
  await send({ phase: "accepted", lease_id: asked.lease_id });
  await send({
    phase: "escalate",
    lease_id: asked.lease_id,
    escalation_class: "owner",
    escalation_reason: `Which registry?${suffix}`,
    escalation_to: "ann",
    recipient_ai: "ann",
  });
  const failed = await poll("builder.2");
  await send({ phase: "accepted", lease_id: failed.lease_id });
  await send({
    phase: "complete",
    lease_id: failed.lease_id,
    status: "failure",
    outcome_kind: "none",
    retry_requested: true,
  });
  const working = await poll("builder.3");
  await send({ phase: "accepted", lease_id: working.lease_id });
  return { taskIds, deadTask: failed.task.task_id, escalatedTask: asked.task.task_id };
}
