import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/sdk/index.ts";
import { clientFor, serve, until, withCode } from "./harness.ts";

test("with an agent key, each piece of work registers an agent and uses its token", async (t) => {
  const server = await serve(t);
  const open = clientFor(t, server.address.url);
  const { key: operator } = await open.call("create_key", { role: "operator" });
  const { key } = await clientFor(t, server.address.url, { key: operator }).call("create_key", { role: "agent" });
  for (const transport of ["http", "stream", "auto"] as const) {
    const client = clientFor(t, server.address.url, { key, transport });
    const values = await Promise.all(
      Array.from({ length: 12 }, (_, index) => client.withLease("FILE:/shared", () => index)),
    );
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
    );
    await assert.rejects(client.call("list_tenants", {}), withCode("forbidden"));
  }
  const { leases } = await clientFor(t, server.address.url, { key: operator }).call("list_leases", {});
  assert.deepEqual(leases, []);
});

test("with a worker key, tasks are completed, including heartbeats from the thread", async (t) => {
  const server = await serve(t);
  const { key: operator } = await clientFor(t, server.address.url).call("create_key", { role: "operator" });
  const above = clientFor(t, server.address.url, { key: operator });
  const { key } = await above.call("create_key", { role: "worker" });
  const worker = clientFor(t, server.address.url, { key }).worker({
    handler: async (_task, { remainingMs }) => {
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      assert.ok(remainingMs() > 0);
      return "kept";
    },
  });
  t.after(() => worker.drain().catch(() => undefined));
  const task = { task_type: "a.b", principal_ai: "me", lease_duration_ms: 3_000 };
  const { task_id: id } = await above.call("create_task", task);
  const done = await until(async () => {
    const found = await above.call("get_task", { task_id: id });
    return found.status === "succeeded" ? found : null;
  }, "it is done");
  assert.deepEqual(
    done.receipts.map(({ phase }) => phase),
    ["accepted", "complete"],
  );
});

test("agents that the server has forgotten, as after a restore, are replaced automatically", async (t) => {
  const first = await serve(t);
  const client = createClient({ url: first.address.url });
  t.after(() => client.close());
  await client.withLease("FILE:/a", () => undefined);
  const { port } = first.address;
  await first.close();
  await serve(t, { port }); // Without its former state.
  assert.equal(await client.withLease("FILE:/a", () => "new"), "new");
});

test("an agent's token is renewed by itself before it runs out, and what it holds is kept", async (t) => {
  const server = await serve(t, { agentTokenMs: 1_500 });
  const { key: operator } = await clientFor(t, server.address.url).call("create_key", { role: "operator" });
  const { key } = await clientFor(t, server.address.url, { key: operator }).call("create_key", { role: "agent" });
  const client = clientFor(t, server.address.url, { key });
  const agent = await client.agent({ id: "long-lived" });
  const shown = new Set([agent.token]);
  await agent.withLease("FILE:/kept", async ({ signal }) => {
    await until(() => (shown.add(agent.token).size >= 4 ? true : null), "three renewals");
    assert.equal(signal.aborted, false);
  });
  const [first = ""] = shown;
  await assert.rejects(client.call("list_leases", {}, { token: first }), withCode("unauthorized"));
  assert.equal(agent.epoch, 1);
});

test("a client reads its key from a file that is its owner's alone", async (t) => {
  const server = await serve(t);
  const { key } = await clientFor(t, server.address.url).call("create_key", { role: "operator" });
  const folder = mkdtempSync(join(tmpdir(), "leasehold-key-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
  const client = clientFor(t, server.address.url, { keyFile });
  assert.equal((await client.call("list_keys", {})).keys.length, 1);
  chmodSync(keyFile, 0o644);
  assert.throws(() => createClient({ url: server.address.url, keyFile }), /others may read the key in .*chmod 600/);
  assert.throws(() => createClient({ keyFile: join(folder, "none") }), /cannot be read: ENOENT/);
});
