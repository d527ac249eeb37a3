/** Work inside work (W13), wounds (W7), the limits of trying and keeping (W4, G-32). */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Client } from "../../src/sdk/client.ts";
import { Died } from "../../src/sdk/errors.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import type { Held } from "../../src/sdk/with-lease.ts";
import { clientFor, pause, serve, until, untilAborted, withCode } from "./harness.ts";

type Strategy = "wait_die" | "wound_wait";

async function serveWith(t: TestContext, strategy: Strategy): Promise<string> {
  const { address } = await serve(t);
  const operator = clientFor(t, address.url);
  await operator.call("set_tenant_settings", { tenant_id: "default", strategy });
  return address.url;
}

/** The way in which a program takes its second lease. */
const ways: Readonly<Record<string, (client: Client, held: Held, resource: string) => Promise<string>>> = {
  "client.withLease": (client, _held, resource) => client.withLease(resource, () => "both"),
  "held.withLease": (_client, held, resource) => held.withLease(resource, () => "both"),
};

for (const strategy of ["wait_die", "wound_wait"] as const) {
  for (const [way, inner] of Object.entries(ways)) {
    test(`W13: two programs that nest ${way} in opposite order both finish, under ${strategy}`, async (t) => {
      const url = await serveWith(t, strategy);
      const began = { a: 0, b: 0 };
      const both = (name: "a" | "b", first: string, second: string): Promise<string> => {
        const client = clientFor(t, url);
        return client.withLease(first, async (held) => {
          began[name]++;
          // Each holds its first one before either asks for its second one.
          await until(() => (began.a > 0 && began.b > 0 ? true : null), "both hold their first");
          return inner(client, held, second);
        });
      };
      const outcomes = await Promise.all([both("a", "X:/1", "X:/2"), both("b", "X:/2", "X:/1")]);
      assert.deepEqual(outcomes, ["both", "both"]);
      assert.ok(began.a + began.b > 2, "the younger one was rolled back and has begun again");
      const { leases } = await clientFor(t, url).call("list_leases", {});
      assert.deepEqual(leases, []);
    });
  }
}

test("W13: inside the work of another, work runs as the same agent; beside it, as another", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const again = clientFor(t, address.url);
  const agentIn = ({ leases }: Held): string => leases[0]?.agent_id ?? "";
  await client.withLease("X:/1", async (outer) => {
    const own = agentIn(outer);
    assert.equal(await client.withLease("X:/2", agentIn), own);
    assert.equal(await again.withLease("X:/2", agentIn), own, "another client of the same server");
    assert.equal(await outer.withLease("X:/1", agentIn), own, "what it holds itself is not in its way");
    const hold = await outer.hold("X:/3");
    assert.equal(hold.leases[0]?.agent_id, own);
    assert.equal(await hold.withLease("X:/4", agentIn), own);
    await hold.release();
    assert.notEqual(await client.withLease("X:/2", agentIn, { separate: true }), own);
    await pause(1);
    assert.equal(await client.withLease("X:/2", agentIn), own, "after an await too");
  });
  const agent = await client.agent({ id: "named" });
  await agent.withLease("X:/1", async () => {
    assert.equal(await client.withLease("X:/2", agentIn), "named");
  });
});

test("W13: work that outlives the work that began it keeps the agent to itself", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const end = Promise.withResolvers<void>();
  let straggler: Promise<string> | undefined;
  await client.withLease("X:/1", async () => {
    const begun = Promise.withResolvers<void>();
    straggler = client.withLease("X:/2", async ({ leases }) => {
      begun.resolve();
      await end.promise;
      return leases[0]?.agent_id ?? "";
    });
    await begun.promise;
  });
  const other = await client.withLease("X:/3", ({ leases }) => leases[0]?.agent_id);
  await assert.rejects(
    client.withLease("X:/2", () => undefined, { timeoutMs: 0 }),
    Died,
  );
  end.resolve();
  assert.notEqual(await straggler, other);
});

test("W13: when the outer work has to stop, work inside it stops with it, whether it waits or runs", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const waits = Promise.withResolvers<void>();
  await younger.withLease("X:/2", async () => {
    const outer = older.withLease(
      "X:/1",
      async () => {
        const inner = client.withLease("X:/2", () => undefined, { onWait: () => waits.resolve() });
        await assert.rejects(inner, withCode("aborted"));
        throw new Error("the work has stopped");
      },
      { retryLost: "never" },
    );
    await waits.promise;
    await client.call("revoke", { resource_prefix: "X:/1", reason: "maintenance" });
    const lost = await outer.catch((error: unknown) => error);
    assert.ok(lost instanceof LeaseLost && lost.reason === "revoked" && lost.said === "maintenance", String(lost));
  });
});

test("W7: wounded work begins again by itself, also where it only learns of it at its end", async (t) => {
  const url = await serveWith(t, "wound_wait");
  const client = clientFor(t, url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const attempts: number[] = [];
  const held = Promise.withResolvers<void>();
  const wounded = Promise.withResolvers<void>();
  const work = younger.withLease("X:/1", async ({ attempt }) => {
    attempts.push(attempt);
    held.resolve();
    await wounded.promise;
    return attempt;
  });
  await held.promise;
  await older.withLease("X:/1", () => wounded.resolve());
  assert.equal(await work, 2);
  assert.deepEqual(attempts, [1, 2]);
});

test("W7: a wound is told apart from an operator's revocation, which does not begin the work again", async (t) => {
  const url = await serveWith(t, "wound_wait");
  const client = clientFor(t, url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const wounded = younger.withLease(
    "X:/1",
    async () => {
      await older.withLease("X:/1", () => undefined);
      throw new Error("noticed something");
    },
    { retryLost: "never" },
  );
  const wound = await wounded.catch((error: unknown) => error);
  assert.ok(wound instanceof LeaseLost);
  assert.deepEqual([wound.reason, wound.said, wound.end], ["wounded", "wounded", "lease_revoked"]);
  const revoked = younger.withLease("X:/1", () => client.call("revoke", { agent_id: "younger", reason: "enough" }));
  const revocation = await revoked.catch((error: unknown) => error);
  assert.ok(revocation instanceof LeaseLost);
  assert.deepEqual([revocation.reason, revocation.said], ["revoked", "enough"]);
});

test("W14: work that older work is in the way of stands by, and begins as soon as it fits, without a hint to wait for", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const older = await client.agent({ id: "older" });
  const younger = await client.agent({ id: "younger" });
  const verdicts: string[] = [];
  let standing: Promise<string> | undefined;
  await older.withLease("X:/1", async () => {
    const onWait = (verdict: object): void =>
      void verdicts.push("verdict" in verdict ? String(verdict.verdict) : "DIE");
    standing = younger.withLease("X:/1", () => "begun", { onWait });
    await until(() => (verdicts.length > 0 ? true : null), "it stands by");
  });
  assert.equal(await standing, "begun");
  assert.deepEqual(verdicts, ["STANDBY"]);
});

test("W4: after a wait that ran out it pauses before it asks again, longer each time", async (t) => {
  const { address } = await serve(t);
  const asked: { readonly at: number; readonly waitMs: unknown }[] = [];
  const listening: typeof fetch = (url, init) => {
    const body: unknown = typeof init?.body === "string" ? JSON.parse(init.body) : null;
    if (String(url).endsWith("/v1/acquire")) {
      asked.push({ at: performance.now(), waitMs: (body as { wait_timeout_ms?: unknown }).wait_timeout_ms });
      if (asked.length < 4)
        return Promise.resolve(Response.json({ error: "wait_timeout", detail: "" }, { status: 409 }));
    }
    return fetch(url, init);
  };
  const client = clientFor(t, address.url, { fetch: listening, transport: "http" });
  await client.withLease("X:/1", () => undefined);
  const pauses = asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));
  // Half of each pause is chance: 50 to 100 ms, 100 to 200 ms, 200 to 400 ms.
  assert.ok(
    pauses.every((ms, index) => ms >= 45 * 2 ** index),
    `${pauses}`,
  );
  assert.ok(Number(asked[0]?.waitMs) > 290_000 && Number(asked[0]?.waitMs) <= 300_000, "five minutes at most");
});

test("a budget of time ends the keeping: the work is stopped, and the lease is given back", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const work = client.withLease("X:/1", ({ signal }) => untilAborted(signal), { budget: { timeMs: 100 } });
  const lost = await work.catch((error: unknown) => error);
  assert.ok(lost instanceof LeaseLost && lost.reason === "budget" && lost.end === "lease_expired", String(lost));
  const { leases } = await client.call("list_leases", {});
  assert.deepEqual(leases, []);
});

test("a budget of renewals ends the keeping: after that number of heartbeats the lease runs out", async (t) => {
  const { address } = await serve(t);
  let beats = 0;
  const counting: typeof fetch = (url, init) => {
    if (String(url).endsWith("/v1/heartbeat")) beats++;
    return fetch(url, init);
  };
  const client = clientFor(t, address.url, { fetch: counting, transport: "http" });
  const hold = await client.hold("X:/1", { ttlMs: 600, budget: { renewals: 2 }, watch: false });
  await untilAborted(hold.signal).catch((lost: unknown) => {
    assert.ok(lost instanceof LeaseLost && lost.reason === "budget", String(lost));
  });
  assert.equal(beats, 2);
});
