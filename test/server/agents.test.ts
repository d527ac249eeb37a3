import assert from "node:assert/strict";
import { test } from "node:test";
import { held, mutates, pause, serve } from "./harness.ts";
import type { WireAgent, WireDigest, WireGranted, WireLease } from "./wire-types.ts";

test("A3: registering again takes the agent up: same timestamp, next epoch, leases re-issued, old token refused", async (t) => {
  const { register, grant, post, get } = await serve(t);
  const first = await register("alice");
  const lease = await grant("alice", "FILE:/a", {}, { key: first.agent_token });
  const second = await register("alice");
  assert.deepEqual([second.priority_timestamp, second.epoch], [first.priority_timestamp, 2]);
  const stale = await post(`/v1/leases/${lease.id}/heartbeat`, {}, { key: first.agent_token });
  assert.deepEqual([stale.status, stale.body.error], [401, "stale_epoch"]);
  const beat = await post<WireLease>(`/v1/leases/${lease.id}/heartbeat`, {}, { key: second.agent_token });
  assert.deepEqual([beat.body.id, beat.body.generation], [lease.id, 2]);
  assert.ok(beat.body.fence > lease.fence);
  assert.equal((await get("/v1/leases", { key: first.agent_token })).body.error, "stale_epoch");
});

test("an agent that registers without an id gets one, and keeps its labels", async (t) => {
  const { post, get } = await serve(t);
  const { status, body } = await post<WireAgent>("/v1/agents", { labels: { model: "opus" } });
  assert.equal(status, 201);
  assert.match(body.agent_id, /^agt_/);
  const shown = await get<WireAgent>(`/v1/agents/${body.agent_id}`);
  assert.deepEqual([shown.body.state, shown.body.labels], ["PLANNING", { model: "opus" }]);
});

test("an agent's id may contain characters that are special in paths, if they are encoded", async (t) => {
  const { register, get } = await serve(t);
  await register("team/a:b@c");
  const { status, body } = await get<WireAgent>(`/v1/agents/${encodeURIComponent("team/a:b@c")}`);
  assert.deepEqual([status, body.agent_id], [200, "team/a:b@c"]);
});

test("A1: legal transitions succeed, and illegal ones are refused with both states named", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("alice");
  const wrong = await post<{ error: string; from: string; to: string }>("/v1/agents/alice/transition", {
    to: "VERIFYING",
  });
  assert.deepEqual(
    [wrong.status, wrong.body.error, wrong.body.from, wrong.body.to],
    [409, "invalid_transition", "PLANNING", "VERIFYING"],
  );
  const lease = await grant("alice", "FILE:/a");
  assert.equal((await get<WireAgent>("/v1/agents/alice")).body.state, "EXECUTING");
  assert.equal((await post("/v1/agents/alice/transition", { to: "VERIFYING" })).body.state, "VERIFYING");
  assert.equal((await post("/v1/agents/alice/transition", { to: "COMPLETED" })).body.state, "COMPLETED");
  assert.equal((await get(`/v1/leases/${lease.id}`)).body.state, "RELEASED");
});

test("agents are listed by state, a page at a time", async (t) => {
  const { register, grant, get } = await serve(t);
  for (const id of ["a", "b", "c"]) await register(id);
  await grant("b", "FILE:/b");
  interface Page {
    readonly agents: readonly WireAgent[];
    readonly next_cursor: string | null;
  }
  const planning = await get<Page>("/v1/agents?state=PLANNING&limit=1");
  assert.deepEqual(
    planning.body.agents.map((one) => one.agent_id),
    ["a"],
  );
  const next = await get<Page>(`/v1/agents?state=PLANNING&limit=1&cursor=${planning.body.next_cursor}`);
  assert.deepEqual([next.body.agents.map((one) => one.agent_id), next.body.next_cursor], [["c"], null]);
  assert.equal((await get("/v1/agents?state=NONE")).status, 400);
});

interface Resumed {
  readonly error?: string;
  readonly digest?: WireDigest;
  readonly epoch: number;
  readonly agent_token: string;
  readonly failed?: readonly unknown[];
  readonly observation_update: {
    readonly truncated: boolean;
    readonly changes: readonly { resource: string; agent_id: string; predicate: string; version?: string }[];
  };
}

const digest = {
  checkpoint_id: "step-3",
  resume_point: "tests written",
  context: { branch: "rename", done: ["a", { deep: [1, null, true] }] },
  intent_backlog: [{ predicate: "MUTATES", resource: "FILE:/src/**" }],
  resolution_strategy: "RETRY",
};

test("A2, A4: an agent resumes from its digest and gets the changes to its resources since", async (t) => {
  const { register, grant, post, get, call } = await serve(t);
  const { agent_token: key } = await register("alice");
  await register("bob");
  assert.equal((await get("/v1/agents/alice/digest", { key })).body.error, "digest_unknown");
  assert.equal((await call("PUT", "/v1/agents/alice/digest", digest, { key })).status, 200);
  await pause(5);
  const lease = await grant("bob", "FILE:/src/auth.ts");
  await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
  const elsewhere = await grant("bob", "FILE:/doc/x");
  await post(`/v1/leases/${elsewhere.id}/release`, { version: "v9" });

  const { status, body } = await post<Resumed>("/v1/agents/alice/resume", {}, { key });
  assert.equal(status, 200);
  assert.deepEqual(body.digest?.context, digest.context);
  assert.equal(body.epoch, 2);
  assert.deepEqual(
    body.observation_update.changes.map((one) => [one.resource, one.agent_id, one.predicate, one.version]),
    [["FILE:/src/auth.ts", "bob", "MUTATES", "v2"]],
  );
  assert.equal(body.observation_update.truncated, false);
  assert.equal((await get("/v1/agents/alice/digest", { key })).body.error, "stale_epoch");
  assert.equal((await get<WireDigest>("/v1/agents/alice/digest", { key: body.agent_token })).status, 200);
});

test("A5: a failed assumption drops the digest, and the agent is in PLANNING", async (t) => {
  const { register, grant, post, get, call } = await serve(t);
  await register("alice");
  await register("bob");
  await call("PUT", "/v1/agents/alice/digest", { ...digest, intent_backlog: [] });
  await pause(5);
  const lease = await grant("bob", "FILE:/src/auth.ts");
  await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
  const holds = await post<Resumed>("/v1/agents/alice/resume", {
    assumptions: [
      { resource: "FILE:/src/auth.ts", version: "v2" },
      { resource: "FILE:/untouched", version: "v1" },
    ],
  });
  assert.equal(holds.status, 200);
  const { status, body } = await post<Resumed>("/v1/agents/alice/resume", {
    assumptions: [{ resource: "FILE:/src/auth.ts", version: "v1" }],
  });
  assert.deepEqual([status, body.error, body.epoch], [409, "assumption_failed", 3]);
  assert.deepEqual(body.failed, [{ resource: "FILE:/src/auth.ts", expected: "v1", actual: "v2" }]);
  assert.equal(body.observation_update.changes.length, 1);
  assert.equal((await get("/v1/agents/alice/digest")).body.error, "digest_unknown");
  assert.equal((await get<WireAgent>("/v1/agents/alice", { key: body.agent_token })).body.state, "PLANNING");
});

test("A4: the grant that ends PAUSED carries the update, in a held reply and in a later one", async (t) => {
  const server = await serve(t);
  const { register, grant, post } = server;
  await register("old");
  await register("young");
  const lease = await grant("young", "FILE:/a");
  const answered = post<WireGranted>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a"), hold_ms: 20_000 });
  await held(server, 1);
  await post(`/v1/leases/${lease.id}/release`, { version: "v7" });
  const { body } = await answered;
  assert.deepEqual(
    body.observation_update?.changes.map(({ resource, version }) => [resource, version]),
    [["FILE:/a", "v7"]],
  );
});
