/** Bound leases with real parts: a server, a cell with a gateway, and a service behind it. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Client } from "../../src/sdk/client.ts";
import type { Hold } from "../../src/sdk/hold.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import { narrow } from "../../src/sdk/tokens.ts";
import { clientFor, pause, proxyTo, serve, until } from "./harness.ts";
import { service, startCell } from "./real-cell.ts";

const gpu = "GPU:/lab/a";
const ttlMs = 6_000;

async function heldGpu(t: TestContext, client: Client, more: object = {}): Promise<Hold> {
  const hold = await client.hold(gpu, { ttlMs, ...more });
  t.after(() => hold.release());
  return hold;
}

function lossOf({ signal }: Hold): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

test("through a cell, requests and an open stream survive renewals; a revocation cuts them with a typed error", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, [gpu]);
  const client = clientFor(t, server.address.url);
  const { lease, ...hold } = await heldGpu(t, client, { marginMs: 50 });

  const stream = await lease.fetch("stream");
  const reader = stream.body?.getReader();
  assert.ok(reader !== undefined);
  assert.equal(Buffer.from((await reader.read()).value ?? []).toString(), "begun\n");

  const fences = new Set<number>();
  while (lease.generation < 3) {
    const response = await lease.fetch("work", { method: "POST", body: "hello" });
    assert.equal(response.status, 200);
    const { text, fence } = (await response.json()) as { text: string; fence: string };
    assert.equal(text, "hello");
    fences.add(Number(fence));
    await pause(5);
  }
  assert.ok(fences.size >= 2);
  for (const open of behind.streams) open.write("still here\n");
  assert.equal(Buffer.from((await reader.read()).value ?? []).toString(), "still here\n");

  const readOnly = narrow(lease.token, { operations: ["read"] });
  const headers = { authorization: `Bearer ${readOnly}` };
  const written = await fetch(`${lease.coordinate}/x`, { method: "POST", headers, body: "no" });
  assert.deepEqual([written.status, ((await written.json()) as { error: string }).error], [401, "caveat_failed"]);

  const { token } = lease;
  await client.call("revoke", { lease_id: lease.id, reason: "maintenance" });
  await assert.rejects(reader.read());
  const lost = await lossOf({ ...hold, lease });
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.deepEqual([lost.end, lost.reason], ["lease_revoked", "revoked"]);
  assert.match(lost.message, /maintenance/);
  assert.throws(() => lease.token, LeaseLost);
  const after = await fetch(`${lease.coordinate}/x`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual([after.status, ((await after.json()) as { error: string }).error], [410, "lease_revoked"]);
});

test("a fence is reported as resource_fenced, and no more tokens are handed out", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, [gpu]);
  const client = clientFor(t, server.address.url);
  const hold = await heldGpu(t, client, { ttlMs: 60_000 });
  await until(() => (server.service.events.size > 0 ? true : null), "the stream of events is open");
  await client.call("fence_resource", { resource: gpu, reason: "smoke" });
  const lost = await lossOf(hold);
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.equal(lost.end, "resource_fenced");
  await assert.rejects(hold.lease.fetch(""), (error) => error === lost);
});

test("a cell without its server ends the lease at its expiry, and the holder has stopped before that", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const behind = await service(t);
  await startCell(t, proxy.url, behind.url, [gpu]);
  const client = clientFor(t, server.address.url);
  const hold = await heldGpu(t, client);
  const { token, coordinate } = hold.lease;
  // A response that is in progress when the lease ends is cut off, not finished.
  const ask = async (): Promise<string> => {
    try {
      const response = await fetch(coordinate ?? "", { headers: { authorization: `Bearer ${token}` } });
      return response.ok ? "ok" : ((await response.json()) as { error: string }).error;
    } catch {
      return "cut";
    }
  };
  proxy.hush();
  proxy.cut();
  const lost = await lossOf(hold);
  assert.ok(Date.now() < Date.parse(hold.leases[0]?.expires_at ?? ""));
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.deepEqual([lost.end, lost.reason], ["lease_expired", "cell_not_ready"]);
  await until(async () => ((await ask()) === "lease_expired" ? true : null), "the cell's own clock has ended it");
  proxy.heal();
});

test("with pick any matching resource is acquired, under the requested name", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, [gpu, "GPU:/lab/b"]);
  const client = clientFor(t, server.address.url);
  const any = { predicate: "MUTATES", resource: "GPU:/lab/*", pick: "any" } as const;
  const picked = await client.withLease(any, ({ leaseOf }) =>
    client.withLease(any, async (inner) => {
      assert.equal((await inner.leaseOf("GPU:/lab/*").fetch("")).status, 200);
      return [leaseOf("GPU:/lab/*").resource, inner.leaseOf("GPU:/lab/*").resource];
    }),
  );
  assert.deepEqual(picked.toSorted(), [gpu, "GPU:/lab/b"]);
});
