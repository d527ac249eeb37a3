import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createPeersWire } from "../../src/sdk/peers-wire.ts";
import { TaskBeats } from "../../src/sdk/task-beats.ts";
import { clientFor, serve, until } from "./harness.ts";

const many = "/v1/lease/heartbeats";
const leaseMs = 60_000;

/** Tasks of a worker, and beats through a fetch that notes each path. `answer`: in place of the server. */
async function beatsOf(
  t: TestContext,
  count: number,
  answer: (path: string, init?: RequestInit) => Promise<Response> | null,
) {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const spec = { task_type: "t", principal_ai: "p", lease_duration_ms: leaseMs };
  await client.call("create_tasks", { tasks: Array.from({ length: count }, () => spec) });
  const polled = await client.call("poll_tasks", { worker_id: "w.a", max_tasks: count, accept: true });
  assert.ok(polled !== null && "offers" in polled);
  const leaseIds = polled.offers.map(({ lease_id }) => lease_id);
  const paths: string[] = [];
  const beaten = new Map<string, number>();
  const lost: string[] = [];
  const fetcher: typeof fetch = (input, init) => {
    const path = new URL(String(input instanceof Request ? input.url : input)).pathname;
    paths.push(path);
    return answer(path, init) ?? fetch(input, init);
  };
  const beats = new TaskBeats({
    wire: createPeersWire([{ url: server.address.url, credentials: { secret: null, tenant: null } }], fetcher, null),
    now: () => performance.now(),
    isAlive: () => true,
    onBeat: (leaseId) => beaten.set(leaseId, (beaten.get(leaseId) ?? 0) + 1),
    onLost: (leaseId, code) => lost.push(`${leaseId} ${code}`),
  });
  t.after(() => beats.close());
  return { client, beats, leaseIds, paths, beaten, lost };
}

test("T7: all tasks of a worker send their heartbeats in one call, also those that are only half due", async (t) => {
  const { beats, leaseIds, paths, beaten, lost } = await beatsOf(t, 20, () => null);
  // Each has another time, as tasks that began one after the other have.
  for (const [index, leaseId] of leaseIds.entries()) beats.add(leaseId, 6_000 + index * 100);
  beats.add("lse_never", 8_000);
  await until(() => (beaten.size === 20 ? true : null), "each has had a heartbeat");
  assert.deepEqual(paths, [many]);
  assert.deepEqual(lost, ["lse_never lease_unknown"]);
  assert.deepEqual(new Set(beaten.values()), new Set([1]));
});

test("T7: what a handler reports leaves with the heartbeats of the others", async (t) => {
  const { client, beats, leaseIds, paths, beaten } = await beatsOf(t, 3, () => null);
  for (const leaseId of leaseIds) beats.add(leaseId, leaseMs);
  for (const [index, leaseId] of leaseIds.entries()) beats.report(leaseId, { index });
  await until(() => (beaten.size === 3 ? true : null), "each is reported");
  assert.deepEqual(paths, [many]);
  const { tasks } = await client.call("list_tasks", {});
  assert.deepEqual(
    new Set(tasks.map(({ progress }) => JSON.stringify(progress))),
    new Set(['{"index":0}', '{"index":1}', '{"index":2}']),
  );
});

test("a server that knows only heartbeats of one task gets those, and the leases are kept", async (t) => {
  const refuse = () => Promise.resolve(Response.json({ error: "not_found", detail: "no" }, { status: 404 }));
  const { beats, leaseIds, paths, beaten } = await beatsOf(t, 3, (path) => (path === many ? refuse() : null));
  for (const leaseId of leaseIds) beats.add(leaseId, 6_000);
  await until(() => (beaten.size === 3 ? true : null), "each has had a heartbeat");
  for (const leaseId of leaseIds) beats.report(leaseId, 1);
  await until(() => (Math.min(...beaten.values()) >= 2 ? true : null), "each has had another");
  assert.equal(paths.filter((path) => path === many).length, 1);
});

test("A7: where the answer to all does not come in time, each goes by itself, and one that hangs holds up no other", async (t) => {
  let hung = "";
  const hang = (init?: RequestInit) =>
    new Promise<Response>((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")), { once: true });
    });
  const { beats, leaseIds, paths, beaten, lost } = await beatsOf(t, 3, (path, init) =>
    path === many || path.includes(`/${hung}/`) ? hang(init) : null,
  );
  hung = leaseIds[0] ?? "";
  for (const leaseId of leaseIds) beats.add(leaseId, 600);
  await until(() => (beaten.size === 2 ? true : null), "the others have had a heartbeat");
  assert.ok(!beaten.has(hung));
  assert.deepEqual(lost, []);
  assert.equal(paths[0], many);
});
