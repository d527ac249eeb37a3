import assert from "node:assert/strict";
import { test } from "node:test";
import { eventTypes } from "../../src/protocol/schema/vocabulary.ts";
import { startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { type Following, follow, type SeenEvent } from "./event-client.ts";
import { type Client, clientOf, mutates, pause, serve, until } from "./harness.ts";

function has(following: Following, count: number) {
  return until(
    () => (following.events.length >= count ? true : null),
    `${count} events, has ${following.events.length}`,
  );
}

/** Grants and releases, one after the other: three events and more each time. */
async function work({ grant, post }: Client, agentId: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const lease = await grant(agentId, `FILE:/${agentId}/${time}`);
    await post(`/v1/leases/${lease.id}/release`);
  }
}

function idsOf(events: readonly SeenEvent[]): readonly number[] {
  return events.map(({ id }) => id);
}

test("events are delivered live, in order, numbered without a gap, with the documented types", async (t) => {
  const server = await serve(t);
  const following = await follow(server.address.url);
  assert.equal(following.response.headers["content-type"], "text/event-stream; charset=utf-8");
  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/a");
  await server.post(`/v1/leases/${lease.id}/release`, { version: "v2" });
  await until(() => following.events.find(({ type }) => type === "lease.released") ?? null, "the release");
  const ids = idsOf(following.events);
  assert.deepEqual(
    ids,
    ids.map((_, index) => (ids[0] ?? 0) + index),
  );
  for (const { type } of following.events) assert.ok((eventTypes as readonly string[]).includes(type), type);
  const granted = following.events.find(({ type }) => type === "lease.granted")?.data.lease;
  assert.equal(granted?.id, lease.id);
  following.stop();
});

test("filters select by type, by agent and by overlap with a resource, live and from the store alike", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  const queries = {
    types: "?types=lease.granted,lease.released",
    agent: "?agent_id=bob",
    resource: "?resource=FILE:/src/**",
    both: "?agent_id=bob&types=lease.granted&resource=FILE:/src/b",
    file: "?resource=FILE:/src/b",
    elsewhere: "?resource=GPU:/**",
  };
  const live = Object.fromEntries(
    await Promise.all(
      Object.entries(queries).map(async ([name, query]) => [name, await follow(url, { query })] as const),
    ),
  );
  await server.register("alice");
  await server.register("bob");
  const lease = await server.grant("alice", "FILE:/src/a");
  await server.grant("bob", "FILE:/src/b");
  await server.grant("bob", "FILE:/doc/c");
  await server.post(`/v1/leases/${lease.id}/transfer`, { to_agent_id: "bob" });
  await server.post("/v1/revoke", { agent_id: "bob", reason: "done" });
  const all = await follow(url, { query: "?since=0" });
  await until(() => (all.events.filter(({ type }) => type === "lease.revoked").length === 3 ? true : null), "all");

  const leaseOf = ({ data }: SeenEvent) => data.lease;
  const wanted: Record<string, (event: SeenEvent) => boolean> = {
    types: ({ type }) => type === "lease.granted" || type === "lease.released",
    // The audit log names what was changed, which is not an event of that agent.
    agent: (event) => event.type !== "audit.recorded" && JSON.stringify(event.data).includes('"bob"'),
    resource: (event) => leaseOf(event)?.resource.startsWith("FILE:/src/") === true,
    both: (event) => event.type === "lease.granted" && leaseOf(event)?.resource === "FILE:/src/b",
    file: (event) => leaseOf(event)?.resource === "FILE:/src/b",
    elsewhere: () => false,
  };
  for (const [name, query] of Object.entries(queries)) {
    const expected = idsOf(all.events.filter((event) => wanted[name]?.(event)));
    if (name !== "elsewhere") assert.ok(expected.length > 0, name);
    const stored = await follow(url, { query: `${query}&since=0` });
    await has(stored, expected.length);
    await until(() => ((live[name]?.events.length ?? 0) >= expected.length ? true : null), `${name}, live`);
    await pause(20);
    assert.deepEqual(idsOf(stored.events), expected, `${name}, stored`);
    assert.deepEqual(idsOf(live[name]?.events ?? []), expected, `${name}, live`);
    stored.stop();
    live[name]?.stop();
  }
  all.stop();
});

test("the giver of a transferred lease gets the event", async (t) => {
  const server = await serve(t);
  const following = await follow(server.address.url, { query: "?agent_id=alice&types=lease.transferred" });
  await server.register("alice");
  await server.register("bob");
  const lease = await server.grant("alice", "FILE:/a");
  await server.post(`/v1/leases/${lease.id}/transfer`, { to_agent_id: "bob" });
  await has(following, 1);
  following.stop();
});

test("a follower that reconnects repeatedly misses no event and gets none twice", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  for (const id of ["a", "b", "c"]) await server.register(id);
  const working = Promise.all(["a", "b", "c"].map((id) => work(server, id, 60)));
  let isDone = false;
  void working.then(() => {
    isDone = true;
  });
  const seen: SeenEvent[] = [];
  let lastEventId = "0";
  for (let turn = 0; !isDone || Number(lastEventId) < server.service.engine.lastSeq; turn++) {
    const following = await follow(url, { lastEventId });
    assert.equal(following.status, 200);
    await pause(turn % 7);
    following.stop();
    await following.ended;
    seen.push(...following.events);
    lastEventId = following.lastId();
  }
  await working;
  const ids = idsOf(seen);
  assert.deepEqual(
    ids,
    ids.map((_, index) => index + 1),
  );
  assert.equal(ids.length, server.service.engine.lastSeq);
});

test("Last-Event-ID resumes after a restart of the server, from what is stored", async (t) => {
  const data = temporaryFolder("leasehold-events-");
  const first = await startServer({ port: 0, store: "sqlite", data });
  const before = clientOf(first.address.url);
  await before.register("alice");
  await work(before, "alice", 5);
  const one = await follow(first.address.url, { query: "?since=0" });
  await until(() => (one.lastId() === String(first.service.engine.lastSeq) ? true : null), "all of the first run");
  await work(before, "alice", 3);
  const lost = first.service.engine.lastSeq;
  one.stop();
  await one.ended;
  await first.close();

  const second = await startServer({ port: 0, store: "sqlite", data });
  t.after(() => second.close());
  const two = await follow(second.address.url, { lastEventId: one.lastId() });
  await work(clientOf(second.address.url), "alice", 2);
  await until(() => (two.lastId() === String(second.service.engine.lastSeq) ? true : null), "all of both runs");
  assert.ok(second.service.engine.lastSeq > lost);
  const ids = idsOf([...one.events, ...two.events]);
  assert.deepEqual(
    ids,
    ids.map((_, index) => index + 1),
  );
  two.stop();
});

test("pruned history is 410 with the earliest event that is left, and so is a number from another history", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  await server.register("alice");
  await work(server, "alice", 4);
  const { engine } = server.service;
  const cut = engine.now() + 1;
  await pause(5);
  await work(server, "alice", 1);
  await engine.store.prune({ eventsBefore: cut, endedBefore: 0, endedKeep: 1_000 });
  const earliest = await engine.store.earliestSeq();
  assert.ok(earliest > 1);
  for (const options of [{ query: "?since=0" }, { lastEventId: "0" }, { lastEventId: String(engine.lastSeq + 1) }]) {
    const gone = await follow(url, options);
    const body = JSON.parse(gone.body) as { error: string; earliest: number };
    assert.deepEqual([gone.status, body.error, body.earliest], [410, "history_pruned", earliest]);
  }
  const rest = await follow(url, { query: `?since=${earliest - 1}` });
  await until(() => (rest.lastId() === String(engine.lastSeq) ? true : null), "the rest");
  assert.equal(rest.events[0]?.id, earliest);
  rest.stop();
});

test("a follower sees its own tenant only, and an unknown tenant or a bad number is refused before anything is sent", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const acme = await follow(url, { tenant: "acme" });
  await server.register("alice");
  await server.register("bob", { tenant: "acme" });
  await has(acme, 1);
  await pause(20);
  assert.deepEqual(
    acme.events.map(({ data }) => data.agent?.agent_id),
    ["bob"],
  );
  acme.stop();
  assert.equal((await follow(url, { tenant: "nope" })).status, 404);
  assert.equal((await follow(url, { lastEventId: "x" })).status, 400);
  assert.equal((await follow(url, { query: "?types=lease.eaten" })).status, 400);
  assert.equal((await follow(url, { query: "?resource=nonsense" })).status, 400);
  assert.equal((await follow(url, { key: "lhk_wrong" })).status, 401);
});

test("S2: a live follower gets the events of a commit that failed but was stored, once", async (t) => {
  const disk = createMemoryDisk();
  const server = await serve(t, { store: createMemoryStore(disk) });
  const following = await follow(server.address.url, { query: "?since=0" });
  await server.register("alice");
  await has(following, 1);
  disk.failNextCommit = "stored";
  const lost = await server.post("/v1/agents", { agent_id: "bob" });
  assert.deepEqual([lost.status, lost.body.error], [503, "database_unavailable"]);
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  disk.failNextCommit = "lost";
  assert.equal((await server.post("/v1/agents", { agent_id: "nobody" })).status, 503);
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  await server.register("carol");
  await has(following, 3);
  await pause(20);
  const agents = following.events.map(({ data }) => data.agent?.agent_id);
  assert.deepEqual(agents, ["alice", "bob", "carol"]);
  assert.deepEqual(idsOf(following.events), [1, 2, 3]);
  following.stop();
});

test("a reader that does not read is disconnected without affecting the others", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  const agents = ["a", "b", "c", "d"];
  for (const id of agents) await server.register(id);
  const slow = await follow(url);
  slow.response.pause();
  const quick = await follow(url);
  let isCut = false;
  slow.response.once("close", () => {
    isCut = true;
  });
  const purpose = "x".repeat(1_000);
  const intents = mutates(...Array.from({ length: 250 }, (_, index) => `FILE:/${"deep".repeat(200)}/${index}`));
  for (let turn = 0; turn < 60 && server.service.counts.refusals.get("slow_reader") === undefined; turn++) {
    const agentId = agents[turn % agents.length];
    const { status } = await server.post("/v1/acquire", { agent_id: agentId, intents, purpose });
    assert.equal(status, 200);
    await server.post("/v1/release", { agent_id: agentId });
  }
  assert.equal(server.service.counts.refusals.get("slow_reader"), 1);
  slow.response.resume();
  await until(() => (isCut ? true : null), "the slow one is cut off");
  await until(() => (quick.lastId() === String(server.service.engine.lastSeq) ? true : null), "the quick one has all");
  const ids = idsOf(quick.events);
  assert.deepEqual(
    ids,
    ids.map((_, index) => (ids[0] ?? 0) + index),
  );
  quick.stop();
});

test("an idle stream sends keep-alives and advances its reader's position past filtered events", async (t) => {
  const server = await serve(t, { signOfLifeMs: 150 });
  const following = await follow(server.address.url, { query: "?agent_id=nobody" });
  await server.register("alice");
  await until(() => (following.comments >= 2 ? true : null), "two signs of life");
  assert.deepEqual(following.events, []);
  assert.equal(following.lastId(), String(server.service.engine.lastSeq));
  following.stop();
});

test("A3: a stream ends soon after its key was deleted, or its agent taken up by another instance", async (t) => {
  const server = await serve(t, { signOfLifeMs: 150 });
  const made = await server.post<{ key: string; key_id: string }>("/v1/keys", { role: "operator" });
  const operator = { key: made.body.key };
  const other = await server.post<{ key: string; key_id: string }>("/v1/keys", { role: "reader" }, operator);
  const { agent_token: token } = await server.register("alice", operator);
  const byKey = await follow(server.address.url, { key: other.body.key });
  const byToken = await follow(server.address.url, { key: token });
  await server.call("DELETE", `/v1/keys/${other.body.key_id}`, undefined, operator);
  await server.register("alice", operator);
  await Promise.all([byKey.ended, byToken.ended]);
});
