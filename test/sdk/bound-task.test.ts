/** Tasks on what a cell hosts, with real parts: a server, a cell with a gateway, a service behind it, and a worker. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Client, LeaseLost, type TaskContext, type WorkerOptions } from "../../src/sdk/index.ts";
import { clientFor, serve, until, untilAborted } from "./harness.ts";
import { service, startCell } from "./real-cell.ts";

const gpus = ["GPU:/lab/a", "GPU:/lab/b"];
const task = { task_type: "train", principal_ai: "delegate.root" };

function workerFor(t: TestContext, client: Client, options: WorkerOptions) {
  const worker = client.worker({ drainMs: 0, onError: (error) => t.diagnostic(String(error)), ...options });
  t.after(() => worker.drain().catch(() => undefined));
  return worker;
}

function untilStatus(client: Client, taskId: string, status: string) {
  return until(async () => {
    const found = await client.call("get_task", { task_id: taskId });
    return found.status === status ? found : null;
  }, `${taskId} is ${status}`);
}

async function fenceShown({ live }: TaskContext): Promise<number> {
  const [lease] = live;
  assert.ok(lease !== undefined);
  const response = await lease.fetch("work", { method: "POST", body: "hello" });
  assert.equal(response.status, 200);
  return Number(((await response.json()) as { fence: string }).fence);
}

test("T10: a task on a cell's resource is offered when that is set up; its handler uses it across renewals, and the next task waits for the teardown", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, gpus.slice(0, 1));
  const client = clientFor(t, server.address.url);
  const fences: number[] = [];
  const generations = new Set<number>();
  workerFor(t, client, {
    handler: async (_task, context) => {
      const lease = context.leaseOf(0);
      assert.equal(lease.resource, gpus[0]);
      assert.ok(context.leases[0]?.token !== undefined && lease.coordinate !== null);
      fences.push(await fenceShown(context));
      context.progress({ percent: 50 });
      await until(() => (lease.generation > 1 ? true : null), "a heartbeat has renewed it");
      fences.push(await fenceShown(context));
      generations.add(lease.generation);
      return "done";
    },
  });
  const intents = [{ predicate: "MUTATES" as const, resource: gpus[0] ?? "" }];
  const created = [];
  for (let nth = 0; nth < 2; nth++) created.push(await client.call("create_task", { ...task, intents }));
  for (const { task_id } of created) await untilStatus(client, task_id, "succeeded");
  assert.equal(fences.length, 4);
  assert.deepEqual(
    [...fences].sort((a, b) => a - b),
    fences,
    "each use shows a greater fence",
  );
});

test("T10, G9: a revocation of what the task has ends its attempt, and what the handler does with it fails with how", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, gpus);
  const client = clientFor(t, server.address.url);
  const begun = Promise.withResolvers<TaskContext>();
  const failed = Promise.withResolvers<unknown>();
  workerFor(t, client, {
    handler: async (_task, context) => {
      begun.resolve(context);
      await untilAborted(context.signal).catch(() => undefined);
      failed.resolve(
        await context
          .leaseOf(0)
          .fetch("work")
          .catch((error: unknown) => error),
      );
      throw new Error("stopped");
    },
  });
  const intents = [{ predicate: "MUTATES" as const, resource: "GPU:/lab/*", pick: "any" as const }];
  const { task_id } = await client.call("create_task", { ...task, intents, lease_duration_ms: 2_000 });
  const { leases } = await begun.promise;
  assert.ok(gpus.includes(leases[0]?.resource ?? ""), "one of them was picked");
  await client.call("revoke", { lease_id: leases[0]?.id ?? "", reason: "maintenance" });
  assert.ok((await failed.promise) instanceof LeaseLost);
  const { receipts } = await client.call("get_task", { task_id });
  assert.deepEqual(
    receipts.slice(0, 2).map(({ phase, escalation_reason }) => [phase, escalation_reason]),
    [
      ["accepted", "TBD"],
      ["escalate", "maintenance"],
    ],
  );
});
