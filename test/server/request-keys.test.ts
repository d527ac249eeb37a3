/** Keys of requests beyond what memory keeps: the store answers (W10). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { acquire, register, release } from "../../src/engine/testing/test-engine.ts";
import { limits } from "../../src/kernel/contract/limits.ts";
import type { RunningServer } from "../../src/server/start.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { type Client, held, mutates, serve } from "./harness.ts";
import type { WireGranted } from "./wire-types.ts";

const ask = (key: string, resource = "FILE:/x") => ({ agent_id: "a", intents: mutates(resource), request_id: key });

/** As many requests with keys begin and end as memory keeps; straight to the engine, because they are many. */
async function fillMemory({ service: { engine } }: RunningServer): Promise<void> {
  await engine.command(register("filler"));
  const cycle = async (n: number): Promise<void> => {
    const { reply } = await engine.command(acquire("filler", `FILE:/filler/${n}`, { requestKey: `k${n}` }));
    const [lease] = reply.type === "granted" ? reply.leases : [];
    assert.ok(lease !== undefined);
    await engine.command(release(lease.id));
  };
  for (let n = 0; n < limits.requestMemoryPerTenantMax; n += 1_000) {
    await Promise.all(Array.from({ length: 1_000 }, (_, at) => cycle(n + at)));
  }
}

async function useOnce(client: Client, key: string): Promise<string> {
  const { status, body } = await client.post<WireGranted>("/v1/acquire", ask(key));
  assert.equal(status, 200);
  const leaseId = body.leases[0]?.id ?? "";
  await client.post(`/v1/leases/${leaseId}/release`);
  return leaseId;
}

test("W10: a key that memory has forgotten is answered by the store: 410 as it ended, 422 for another body, also after a restart", async (t) => {
  const data = temporaryFolder("leasehold-keys-");
  const first = await serve(t, { store: "sqlite", data });
  for (const agent of ["old", "a"]) await first.register(agent);
  const leaseId = await useOnce(first, "first");
  await fillMemory(first);
  const known = (server: RunningServer) =>
    server.service.engine.peek(({ tenants }) => tenants.get("default")?.agents.get("a")?.keys.size);
  assert.equal(known(first), 0, "memory has forgotten it");
  const check = async (server: Client): Promise<void> => {
    const over = await server.post<{ error: string; lease_id: string }>("/v1/acquire", ask("first"));
    assert.deepEqual([over.status, over.body.error, over.body.lease_id], [410, "lease_released", leaseId]);
    const other = await server.post("/v1/acquire", ask("first", "FILE:/y"));
    assert.deepEqual([other.status, other.body.error], [422, "request_id_reused"]);
  };
  await check(first);
  await first.close();
  const second = await serve(t, { store: "sqlite", data });
  await check(second);
  // An unknown key is looked up and then granted, once, however many ask at the same time.
  const both = await Promise.all([1, 2, 3].map(() => second.post<WireGranted>("/v1/acquire", ask("new"))));
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal(new Set(both.map(({ body }) => body.request_id)).size, 1);
  // A wait whose key was looked up is held as any other.
  const waiting = second.post<WireGranted>("/v1/acquire", { ...ask("wait"), agent_id: "old", hold_ms: 20_000 });
  await held(second, 1);
  await second.post("/v1/release", { agent_id: "a" });
  assert.equal((await waiting).body.verdict, "GRANTED");
});

test("W10: a request that was granted at once and without a key is 410 with how it ended, by its id", async (t) => {
  const server = await serve(t);
  await server.register("a");
  const { body } = await server.post<WireGranted>("/v1/acquire", {
    agent_id: "a",
    intents: mutates("FILE:/x", "FILE:/y"),
  });
  await server.post("/v1/release", { agent_id: "a" });
  const over = await server.get(`/v1/requests/${body.request_id}`);
  assert.deepEqual([over.status, over.body.error], [410, "lease_released"]);
  assert.equal((await server.call("DELETE", `/v1/requests/${body.request_id}`)).status, 200);
  const never = await server.get("/v1/requests/req_01hf7yat00ae8br4000000");
  assert.deepEqual([never.status, never.body.error], [404, "request_unknown"]);
});
