/** W8, A7: the grant that ends a wait is collected by the client that has its answer, and freed where no answer arrives. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Agent } from "../../src/sdk/agent.ts";
import type { ClientOptions } from "../../src/sdk/client.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import type { RunningServer } from "../../src/server/start.ts";
import { clientFor, proxyTo, serve, until, untilAborted } from "./harness.ts";

const file = "FILE:/src/auth.ts";

/** A holder with a connection of its own, and older agents that have to wait for it. */
async function withHolder(t: TestContext, claimWithinMs: number) {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  await near.call("set_tenant_settings", { tenant_id: "default", claim_within_ms: claimWithinMs });
  const agentBehindProxy = async (id: string, options: ClientOptions = {}): Promise<Agent> =>
    clientFor(t, proxy.url, options).agent({ id });
  const hold = async () => (await near.agent({ id: "holder" })).hold(file);
  return { server, proxy, near, agentBehindProxy, hold };
}

function leaseOf({ service }: RunningServer, leaseId: string) {
  return service.engine.peek(({ tenants }) => tenants.get("default")?.leases.get(leaseId)?.record);
}

/** Begins the work, and resolves when it waits. */
async function waiting<T>(begin: (onWait: () => void) => Promise<T>): Promise<{ readonly ended: Promise<T> }> {
  const isWaiting = Promise.withResolvers<void>();
  const ended = begin(isWaiting.resolve);
  ended.catch(isWaiting.reject);
  await isWaiting.promise;
  return { ended };
}

for (const transport of ["http", "stream"] as const) {
  test(`W8: a grant whose answers are lost is freed for the next waiter, long before its TTL (${transport})`, async (t) => {
    const { server, proxy, near, agentBehindProxy, hold } = await withHolder(t, 1_000);
    const cut = await agentBehindProxy("cut", { transport });
    const next = await near.agent({ id: "next" });
    const held = await hold();
    const first = await waiting((onWait) => cut.withLease(file, () => "at last", { ttlMs: 600_000, onWait }));
    const second = await waiting((onWait) => next.withLease(file, ({ leases }) => leases[0]?.agent_id, { onWait }));
    await until(() => (server.service.requests.size > 1 ? true : null), "both questions are held");
    proxy.loseAnswers(Number.POSITIVE_INFINITY);
    await held.release();
    assert.equal(await second.ended, "next");
    const { leases } = await near.call("list_leases", { state: "EXPIRED" });
    assert.deepEqual(
      leases.map(({ agent_id: agent }) => agent),
      ["cut"],
    );
    // The one that was cut off has lost its turn, and nothing else.
    proxy.loseAnswers(0);
    assert.equal(await first.ended, "at last");
  });
}

test("W8: work that had to wait collects its grant with a heartbeat beside it, and keeps its lease", async (t) => {
  for (const claimWithinMs of [10_000, 500]) {
    const { server, agentBehindProxy, hold } = await withHolder(t, claimWithinMs);
    const agent = await agentBehindProxy("old");
    const held = await hold();
    const { ended } = await waiting((onWait) =>
      agent.withLease(
        file,
        async ({ leases, assertHeld }) => {
          const [lease] = leases;
          await until(() => (leaseOf(server, lease?.id ?? "")?.claimBy === null ? true : null), "it is collected");
          const { expiresAt = 0 } = leaseOf(server, lease?.id ?? "") ?? {};
          const isExtended = () => (leaseOf(server, lease?.id ?? "")?.expiresAt ?? 0) > expiresAt;
          await until(() => (isExtended() ? true : null), "heartbeats go on");
          assertHeld();
          return "held";
        },
        { ttlMs: 1_500, onWait, retryLost: "never" },
      ),
    );
    await held.release();
    assert.equal(await ended, "held");
  }
});

test("W8: work under a grant that came at once sends no heartbeat to collect it", async (t) => {
  const server = await serve(t);
  const paths: string[] = [];
  const listening: typeof fetch = (url, init) => {
    paths.push(new URL(String(url)).pathname);
    return fetch(url, init);
  };
  const client = clientFor(t, server.address.url, { fetch: listening, transport: "http" });
  await client.withLease(file, () => undefined);
  assert.deepEqual(
    paths.filter((path) => path !== "/v1/agents"),
    ["/v1/acquire", "/v1/release"],
  );
});

test("W8, A7: work whose grant cannot be collected stops before the grant can have lapsed", async (t) => {
  const { server, agentBehindProxy, hold } = await withHolder(t, 4_000);
  const cutOff: typeof fetch = (url, init) =>
    String(url).endsWith("/v1/heartbeat") ? untilAborted(init?.signal ?? t.signal) : fetch(url, init);
  const agent = await agentBehindProxy("old", { fetch: cutOff, transport: "http" });
  const held = await hold();
  const ends: unknown[] = [];
  const { ended } = await waiting((onWait) =>
    agent.withLease(
      file,
      ({ signal, leases }) => {
        const { id = "" } = leases[0] ?? {};
        signal.addEventListener("abort", () => ends.push(leaseOf(server, id)?.state));
        return untilAborted(signal);
      },
      { ttlMs: 600_000, marginMs: 1_000, onWait, retryLost: "never" },
    ),
  );
  await held.release();
  await assert.rejects(ended, (error) => error instanceof LeaseLost && error.reason === "no_contact");
  assert.deepEqual(ends, ["ACTIVE"], "it had not ended when the work was stopped");
});

test("W8: work that was not begun in time, because its grant had lapsed, is asked for again", async (t) => {
  const { proxy, agentBehindProxy, near, hold } = await withHolder(t, 500);
  const agent = await agentBehindProxy("old", { transport: "http" });
  const held = await hold();
  const { ended } = await waiting((onWait) => agent.withLease(file, ({ attempt }) => attempt, { onWait }));
  proxy.loseAnswers(Number.POSITIVE_INFINITY);
  await held.release();
  await until(async () => {
    const { leases } = await near.call("list_leases", { state: "EXPIRED" });
    return leases.length > 0 ? true : null;
  }, "it has lapsed");
  proxy.loseAnswers(0);
  assert.equal(await ended, 1, "the work has begun once");
});
