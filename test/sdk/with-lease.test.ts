import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../src/sdk/client.ts";
import { Died, LeaseholdError } from "../../src/sdk/errors.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import { inspectToken } from "../../src/sdk/tokens.ts";
import { clientFor, pause, serve, until, untilAborted, withCode } from "./harness.ts";

const file = "FILE:/src/auth.ts";

async function holdersOf(client: Client, resource = file): Promise<readonly string[]> {
  const { leases } = await client.call("list_leases", { resource });
  return leases.map(({ agent_id: id }) => id);
}

test("work longer than its TTL keeps its lease, and releases it with the reported version", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const from = await lastSeq(client);
  const value = await client.withLease(
    file,
    async ({ leases, fenceOf, remainingMs, setVersion, attempt }) => {
      assert.equal(leases.length, 1);
      assert.equal(attempt, 1);
      assert.equal(fenceOf(file), leases[0]?.fence);
      await pause(3_000);
      assert.ok(remainingMs() > 0);
      assert.equal((await holdersOf(client)).length, 1);
      setVersion(file, "sha256:1");
      return 42;
    },
    { ttlMs: 2_000, purpose: "rename login()" },
  );
  assert.equal(value, 42);
  assert.deepEqual(await holdersOf(client), []);
  for await (const event of client.events({ since: from, types: ["lease.released"] })) {
    assert.equal(event.version, "sha256:1");
    assert.equal(event.lease?.purpose, "rename login()");
    break;
  }
});

test("A4: work that had to wait finds in held.observationUpdate what others wrote meanwhile, and other work finds null", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const [elder, younger] = [await client.agent({ id: "elder" }), await client.agent({ id: "younger" })];
  const isHeld = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const first = younger.withLease(file, async ({ observationUpdate, setVersion }) => {
    assert.equal(observationUpdate, null);
    isHeld.resolve();
    await mayEnd.promise;
    setVersion(file, "v2");
  });
  await isHeld.promise;
  const second = elder.withLease(file, ({ observationUpdate }) => observationUpdate, {
    onWait: () => mayEnd.resolve(),
  });
  await first;
  const changes = (await second)?.changes.map((one) => [one.agent_id, one.predicate, one.resource, one.version]);
  assert.deepEqual(changes, [["younger", "MUTATES", file, "v2"]]);
});

test("concurrent work on the same resource runs one after the other, whether by DIE or WAIT", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  let inside = 0;
  let most = 0;
  const fences: number[] = [];
  const work = () =>
    client.withLease(file, async ({ fenceOf }) => {
      inside++;
      most = Math.max(most, inside);
      fences.push(fenceOf(file));
      await pause(5);
      inside--;
    });
  await Promise.all(Array.from({ length: 12 }, work));
  assert.equal(most, 1);
  assert.equal(fences.length, 12);
  assert.deepEqual(
    fences,
    fences.toSorted((a, b) => a - b),
  );
});

test("a younger agent that dies comes back with the same timestamp until it gets its turn", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const died: Died[] = [];
  const order: string[] = [];
  let wait: Promise<void> | undefined;
  await older.withLease(file, async () => {
    wait = younger.withLease(file, () => void order.push("younger"), {
      standby: false,
      onWait: (verdict) => {
        if (verdict instanceof Died) died.push(verdict);
      },
    });
    await until(() => (died.length >= 2 ? true : null), "it has died twice");
    order.push("older");
  });
  await wait;
  assert.deepEqual(order, ["older", "younger"]);
  assert.deepEqual([...new Set(died.map((one) => one.priorityTimestamp))], [younger.priorityTimestamp]);
  assert.deepEqual(
    died.slice(0, 2).map((one) => one.attempt),
    [1, 2],
  );
});

test("an older agent waits, and a lease granted after a long wait lasts its whole TTL", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const seen: string[] = [];
  let waited: Promise<number> | undefined;
  await younger.withLease(file, async () => {
    waited = older.withLease(file, ({ remainingMs }) => remainingMs(), {
      ttlMs: 8_000,
      onWait: (verdict) => seen.push("verdict" in verdict ? verdict.verdict : "DIE"),
    });
    await pause(3_000);
  });
  // Counted from the request, it would be less than 5 s.
  assert.ok(((await waited) ?? 0) > 5_000);
  assert.deepEqual(seen, ["WAIT"]);
});

test("DIE inside other work of the agent rolls that work back, and all of it begins again", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const other = await client.agent({ id: "other" });
  const agent = await client.agent({ id: "agent" });
  const attempts: number[] = [];
  let wasHeldWhileBlocked: readonly string[] = [];
  let done: Promise<string> | undefined;
  await other.withLease("FILE:/b", async () => {
    done = agent.withLease("FILE:/a", ({ attempt }) => {
      attempts.push(attempt);
      return agent.withLease("FILE:/b", () => "both");
    });
    await until(() => (attempts.length >= 2 ? true : null), "the work has begun again");
    wasHeldWhileBlocked = await until(async () => {
      const holders = await holdersOf(client, "FILE:/a");
      return holders.length === 0 ? holders : null;
    }, "the first lease is let go of");
  });
  assert.equal(await done, "both");
  assert.deepEqual(wasHeldWhileBlocked, []);
  assert.ok(attempts.length >= 2);
  const { priority_timestamp: priority } = await client.call("get_agent", { agent_id: "agent" });
  assert.equal(priority, agent.priorityTimestamp);
});

test("without a wait timeout, work begins at once or not at all", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  await younger.withLease(file, async () => {
    await assert.rejects(
      older.withLease(file, () => undefined, { timeoutMs: 0 }),
      withCode("would_wait"),
    );
    await assert.rejects(
      older.withLease(file, () => undefined, { timeoutMs: 1_000 }),
      withCode("wait_timeout"),
    );
  });
  await older.withLease(file, async () => {
    await assert.rejects(
      younger.withLease(file, () => undefined, { timeoutMs: 0 }),
      withCode("die"),
    );
  });
});

test("a revoked lease stops the work, and the error says why and who has it now", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const next = await client.agent({ id: "next" });
  const work = client.withLease(
    file,
    async ({ leases, signal }) => {
      await client.call("revoke", { lease_id: leases[0]?.id, reason: "needed elsewhere" });
      await next.call("acquire", { intents: [{ predicate: "MUTATES", resource: file }], ttl_ms: 60_000 });
      await untilAborted(signal);
    },
    { ttlMs: 2_000 },
  );
  const lost = await work.catch((error: unknown) => error);
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.equal(lost.reason, "revoked");
  assert.deepEqual(
    lost.holders?.map(({ agent_id: id }) => id),
    ["next"],
  );
  assert.match(lost.message, /next \(MUTATES/);
});

test("running work learns of a revocation at once, long before its next heartbeat", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const work = client.withLease(
    file,
    async ({ leases, signal }) => {
      await until(() => (server.service.events.size > 0 ? true : null), "the stream of events is open");
      await client.call("revoke", { lease_id: leases[0]?.id, reason: "maintenance" });
      await untilAborted(signal);
    },
    { ttlMs: 300_000 },
  );
  const lost = await work.catch((error: unknown) => error);
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.deepEqual([lost.reason, lost.end, lost.said], ["revoked", "lease_revoked", "maintenance"]);
});

test("work learns of its lease's end from the caller's own event iterator", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const following = new AbortController();
  const heard = (async () => {
    for await (const { type } of client.events({ signal: following.signal })) if (type === "lease.revoked") return;
  })();
  const work = client.withLease(
    file,
    async ({ leases, signal }) => {
      await until(() => (server.service.events.size > 0 ? true : null), "it follows");
      await client.call("revoke", { lease_id: leases[0]?.id, reason: "maintenance" });
      await untilAborted(signal);
    },
    { ttlMs: 300_000, watch: false },
  );
  await assert.rejects(work, (error) => error instanceof LeaseLost && error.said === "maintenance");
  await heard;
});

test("an unbound lease with a token has a fresh one after each heartbeat, of the same generation", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const tokens: string[] = [];
  await client.withLease(
    file,
    async ({ leaseOf }) => {
      const lease = leaseOf(file);
      tokens.push(lease.token);
      lease.onToken((token) => tokens.push(token));
      await until(() => (tokens.length >= 3 ? true : null), "two heartbeats");
      assert.equal(lease.token, tokens.at(-1));
      const { lease: live } = await client.call("verify_token", { token: lease.token, resource: file });
      assert.equal(live.id, lease.id);
    },
    { ttlMs: 2_000, tokens: true },
  );
  const said = tokens.map((token) => inspectToken(token));
  assert.deepEqual([...new Set(said.map(({ generation }) => generation))], [1]);
  assert.ok(said.every(({ expiresAt }, index) => expiresAt > (said[index - 1]?.expiresAt ?? 0)));
});

test("work that returns normally after its lease was revoked has failed all the same", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  let runs = 0;
  const work = client.withLease(
    file,
    async ({ leases }) => {
      runs++;
      await client.call("revoke", { lease_id: leases[0]?.id, reason: "needed elsewhere" });
      return "done";
    },
    { retryLost: "always" },
  );
  await assert.rejects(work, (error) => error instanceof LeaseLost && error.reason === "revoked");
  assert.equal(runs, 1);
});

test("an agent that another instance takes up loses its leases at once, and does not begin again", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const agent = await client.agent({ id: "a" });
  const work = agent.withLease(
    file,
    async ({ signal }) => {
      await client.agent({ id: "a" });
      await untilAborted(signal);
    },
    { ttlMs: 2_000, retryLost: "always" },
  );
  await assert.rejects(work, (error) => error instanceof LeaseLost && error.reason === "taken_up");
});

test("work that throws releases its leases, and the caller gets its error", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const mistake = new RangeError("mine");
  await assert.rejects(
    client.withLease([file, { predicate: "CONSUMES", resource: "FILE:/src/**" }], () => {
      throw mistake;
    }),
    (error) => error === mistake,
  );
  assert.deepEqual(await holdersOf(client), []);
});

test("an aborted wait leaves neither a request nor a lease", async (t) => {
  const server = await serve(t);
  for (const transport of ["http", "stream"] as const) {
    const client = clientFor(t, server.address.url, { transport });
    const older = await client.agent({ id: `older-${transport}` });
    const younger = await client.agent({ id: `younger-${transport}` });
    const controller = new AbortController();
    await younger.withLease(file, async () => {
      const waited = older.withLease(file, () => assert.fail("it is not granted"), {
        signal: controller.signal,
        onWait: () => controller.abort(),
      });
      await assert.rejects(waited, withCode("aborted"));
      await until(() => (server.service.requests.size === 0 ? true : null), "nothing is held for it");
    });
    await until(async () => ((await holdersOf(client)).length === 0 ? true : null), "nothing is left");
    const agent = await client.call("get_agent", { agent_id: older.agentId });
    assert.equal(agent.state, "PAUSED");
  }
});

test("aborted work keeps its leases until it has stopped", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const controller = new AbortController();
  let holders: readonly string[] = [];
  const work = client.withLease(
    file,
    async ({ signal }) => {
      controller.abort(new Error("enough"));
      await untilAborted(signal).catch(() => undefined);
      await pause(3_000);
      holders = await holdersOf(client);
      throw new Error("stopped");
    },
    { ttlMs: 2_000, signal: controller.signal },
  );
  await assert.rejects(work, withCode("aborted"));
  assert.equal(holders.length, 1);
  assert.deepEqual(await holdersOf(client), []);
});

test("an acquire that is finally refused fails with the reason, and does not delay the next work", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  await assert.rejects(
    client.withLease("not a resource", () => undefined),
    (error) => error instanceof LeaseholdError && error.code === "invalid_resource",
  );
  await client.withLease(file, () => undefined);
});

async function lastSeq(client: Client): Promise<number> {
  const { agent_id: id } = await client.call("register_agent", {});
  for await (const { seq } of client.events({ since: 0, agentId: id })) return seq;
  return 0;
}
