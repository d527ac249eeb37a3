import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";
import { type Body, type Client, clientOf, mutates, pause, serve, until } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import type { WireGranted, WireLease } from "./wire-types.ts";

interface Update {
  readonly since: string;
  readonly truncated: boolean;
  readonly changes: readonly { readonly resource: string; readonly agent_id: string; readonly version?: string }[];
}
type Updated = Body & { readonly observation_update?: Update };
interface Judged {
  readonly resource: string;
  readonly expected: string;
  readonly actual: string | null;
  readonly outcome: string;
}
type Resumed = Updated & { readonly assumptions: readonly Judged[]; readonly failed?: readonly unknown[] };

const digest = { checkpoint_id: "c1", resume_point: "here" };

function news({ observation_update: update }: Updated): string[] {
  assert.ok(update !== undefined, "the answer has no observation_update");
  return update.changes.map((one) => `${one.agent_id} ${one.resource} ${one.version ?? "unreported"}`);
}

/** "old" is older than "young" and holds FILE:/x; "young" has died for it. */
async function died(t: TestContext): Promise<Client & { readonly held: WireLease }> {
  const server = await serve(t);
  await server.register("old");
  await server.register("young");
  const held = await server.grant("old", "FILE:/x");
  const answer = await server.post("/v1/acquire", { agent_id: "young", intents: mutates("FILE:/x") });
  assert.equal(answer.body.error, "die");
  return { ...server, held };
}

test("A1, A4: EXECUTING by word is 409 without a lease; with one it answers with the update, and the next grant too", async (t) => {
  const { post, grant, held } = await died(t);
  const said = { to: "EXECUTING" };
  const refused = await post("/v1/agents/young/transition", said);
  assert.deepEqual([refused.status, refused.body.error], [409, "invalid_transition"]);
  await grant("young", "FILE:/z");
  await post("/v1/acquire", { agent_id: "young", intents: mutates("FILE:/x") });
  await post(`/v1/leases/${held.id}/release`, { version: "v2" });
  const moved = await post<Updated>("/v1/agents/young/transition", said);
  assert.deepEqual([moved.status, news(moved.body)], [200, ["old FILE:/x v2"]]);
  const granted = await post<Updated>("/v1/acquire", { agent_id: "young", intents: mutates("FILE:/x") });
  assert.deepEqual([granted.status, news(granted.body)], [200, ["old FILE:/x v2"]]);
});

for (const way of ["one", "all", "stream"] as const) {
  test(`A4, W8: a heartbeat that collects a grant (${way}) answers with the update`, async (t) => {
    const server = await serve(t);
    const { register, grant, post, get } = server;
    await register("old");
    await register("young");
    const lease = await grant("young", "FILE:/x");
    const waiting = await post<{ request_id: string }>("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/x") });
    assert.equal(waiting.status, 202);
    await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
    const { body } = await get<{ leases: WireLease[] }>("/v1/leases?agent_id=old");
    const id = body.leases[0]?.id ?? "";
    if (way === "stream") {
      const stream = await openStream(t, server.address.url);
      stream.send({ id: 1, op: "heartbeat_all", input: { agent_id: "old" } });
      const { body: told } = await stream.answer(1);
      return assert.deepEqual(news(told as Updated), ["young FILE:/x v2"]);
    }
    const path = way === "one" ? `/v1/leases/${id}/heartbeat` : "/v1/heartbeat";
    const beat = () => post<Updated>(path, way === "one" ? {} : { agent_id: "old" });
    assert.deepEqual(news((await beat()).body), ["young FILE:/x v2"]);
    assert.equal((await beat()).body.observation_update, undefined, "it is collected once");
  });
}

test("A4: after a lease was lost, the agent is PAUSED, and the next grant tells what others did", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("alice");
  await register("bob");
  await grant("alice", "FILE:/x");
  await post("/v1/revoke", { agent_id: "alice", reason: "test" });
  assert.equal((await get("/v1/agents/alice")).body.state, "PAUSED");
  const lease = await grant("bob", "FILE:/x");
  await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
  const granted = await post<Updated>("/v1/acquire", { agent_id: "alice", intents: mutates("FILE:/x") });
  assert.deepEqual(news(granted.body), ["bob FILE:/x v2"]);
});

test("A4, A6, L15: what was written under a lease that is downgraded or transferred counts, with its version", async (t) => {
  const { register, grant, post, call } = await serve(t);
  for (const agent of ["alice", "bob", "carol"]) await register(agent);
  await call("PUT", "/v1/agents/alice/digest", { ...digest, intent_backlog: mutates("FILE:/src/**") });
  await pause(2);
  const x = await grant("bob", "FILE:/src/x");
  const weaker = await post<WireLease>(`/v1/leases/${x.id}/downgrade`, { predicate: "CONSUMES", version: "v2" });
  assert.equal(weaker.status, 200);
  await post(`/v1/leases/${x.id}/release`);
  await pause(2);
  const y = await grant("bob", "FILE:/src/y");
  await post(`/v1/leases/${y.id}/transfer`, { to_agent_id: "carol", version: "v3" });
  const assumptions = [{ resource: "FILE:/src/x", version: "v1" }];
  const { status, body } = await post<Resumed>("/v1/agents/alice/resume", { assumptions });
  assert.equal(status, 409);
  assert.deepEqual(body.failed, [{ resource: "FILE:/src/x", expected: "v1", actual: "v2" }]);
  assert.deepEqual(news(body), ["bob FILE:/src/x v2", "bob FILE:/src/y v3"]);
});

test("A5: assumptions hold, fail or stay unverified by the newest version ever reported, also before the checkpoint", async (t) => {
  const { register, grant, post, call } = await serve(t);
  await register("alice");
  await register("bob");
  const lease = await grant("bob", "FILE:/x");
  await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
  await pause(2);
  await call("PUT", "/v1/agents/alice/digest", digest);
  const known = await post<Resumed>("/v1/agents/alice/resume", {
    assumptions: [
      { resource: "FILE:/x", version: "v2" },
      { resource: "FILE:/never", version: "v1" },
    ],
  });
  assert.equal(known.status, 200);
  assert.deepEqual(known.body.assumptions, [
    { resource: "FILE:/x", expected: "v2", actual: "v2", outcome: "holds" },
    { resource: "FILE:/never", expected: "v1", actual: null, outcome: "unverified" },
  ]);
  const failed = await post<Resumed>("/v1/agents/alice/resume", {
    assumptions: [{ resource: "FILE:/x", version: "v1" }],
  });
  assert.deepEqual([failed.status, failed.body.error], [409, "assumption_failed"]);
  assert.equal(failed.body.assumptions[0]?.outcome, "failed");
});

test("A4, A5: the register survives a restart, and the last version outlives the ended lease that reported it", async (t) => {
  const dataDir = temporaryFolder("leasehold-observations-");
  const options = { port: 0, store: "sqlite", data: dataDir, endedKeepMs: 1_000, pruneEveryMs: 100 } as const;
  const first = await serve(t, options);
  const { register, grant, post, call, get } = first;
  await register("alice");
  await register("bob");
  await call("PUT", "/v1/agents/alice/digest", { ...digest, intent_backlog: mutates("FILE:/y") });
  await pause(2);
  const x = await grant("bob", "FILE:/x");
  await post(`/v1/leases/${x.id}/release`, { version: "v2" });
  // Once nobody can ask for the lease any more, only the register knows of it.
  await until(async () => ((await get(`/v1/leases/${x.id}`)).status === 404 ? true : null), "the lease is pruned");
  const y = await grant("bob", "FILE:/y");
  await post(`/v1/leases/${y.id}/release`, { version: "v3" });
  await first.close();
  const second = await serve(t, { ...options, endedKeepMs: 60_000 });
  const assumptions = [
    { resource: "FILE:/x", version: "v2" },
    { resource: "FILE:/y", version: "v3" },
  ];
  const { body } = await clientOf(second.address.url).post<Resumed>("/v1/agents/alice/resume", { assumptions });
  assert.deepEqual(
    body.assumptions.map(({ outcome }) => outcome),
    ["holds", "holds"],
  );
  assert.ok(news(body).includes("bob FILE:/y v3"));
  const again = await clientOf(second.address.url).post<WireGranted>("/v1/acquire", {
    agent_id: "alice",
    intents: mutates("FILE:/x"),
  });
  assert.equal(again.status, 200);
});

test("A4: who watches sees what an agent has missed, as often as it asks, and the agent gets it all the same", async (t) => {
  const { held, post, get } = await died(t);
  await post(`/v1/leases/${held.id}/release`, { version: "v2" });
  for (let n = 0; n < 2; n++) {
    const { status, body } = await get<Update>("/v1/agents/young/observation");
    assert.equal(status, 200);
    assert.deepEqual(news({ observation_update: body } as Updated), ["old FILE:/x v2"]);
  }
  const granted = await post<Updated>("/v1/acquire", { agent_id: "young", intents: mutates("FILE:/x") });
  assert.deepEqual(news(granted.body), ["old FILE:/x v2"]);
  assert.deepEqual((await get<Update>("/v1/agents/young/observation")).body.changes, [], "it knows now");
  const unknown = await get("/v1/agents/nobody/observation");
  assert.deepEqual([unknown.status, unknown.body.error], [404, "agent_unknown"]);
});
