import assert from "node:assert/strict";
import { test } from "node:test";
import { createLostAnswers } from "../../src/server/mcp/lost-answers.ts";
import { createPresence } from "../../src/server/mcp/presence.ts";
import type { Caller } from "../../src/server/service.ts";
import { mutates, pause, serve, until } from "../server/harness.ts";
import { firstLease, overHttp } from "./harness.ts";

const operator: Caller = {
  tenant: "default",
  actor: { role: "operator", agentId: null, epoch: null },
  meter: null,
  secret: null,
  until: Number.POSITIVE_INFINITY,
};

interface LeaseView {
  readonly expires_at: string;
}

test("every call of an agent counts as its heartbeat; a call about it by another does not", async (t) => {
  const { address, get } = await serve(t);
  const caller = await overHttp(t, address.url);
  const me = { agent_id: "a" };
  await caller.do("register_agent", me);
  const { id } = firstLease(await caller.do("acquire_leases", { ...me, intents: mutates("FILE:/a") }));
  const endOf = async () => (await get<LeaseView>(`/v1/leases/${id}`)).body.expires_at;
  let last = await endOf();
  const calls: readonly (readonly [name: string, args: object])[] = [
    ["acquire_leases", { ...me, intents: mutates("FILE:/b"), dry_run: true }],
    ["checkpoint", { ...me, checkpoint_id: "c", resume_point: "r" }],
    ["heartbeat_lease", { lease_id: id }],
  ];
  for (const [name, args] of calls) {
    await pause(5);
    await caller.do(name, args);
    const end = await endOf();
    assert.ok(end > last, name);
    last = end;
  }
  await pause(5);
  for (const name of ["get_agent", "read_checkpoint"]) await caller.do(name, me);
  await caller.do("who_holds", { resource: "FILE:/a" });
  assert.equal(await endOf(), last, "being looked at keeps nothing alive");
});

test("a held call sends heartbeats for its agent while it lasts", async (t) => {
  const { service, register, grant, get } = await serve(t);
  await register("a");
  const { id, expires_at: first } = await grant("a", "FILE:/a");
  const endOf = async () => (await get<LeaseView>(`/v1/leases/${id}`)).body.expires_at;
  const presence = createPresence(service, { beatMs: 20, thinkMs: 1_000 });
  t.after(() => presence.close());
  const leave = presence.enter(operator, "a");
  const second = await until(async () => ((await endOf()) > first ? endOf() : null), "it beats at once");
  await until(async () => ((await endOf()) > second ? true : null), "it beats again and again");
  leave();
  const last = await endOf();
  await pause(100);
  assert.equal(await endOf(), last, "and then no more");
});

test("L10: heartbeats that are sent for a model are not activity", async (t) => {
  const { service, register, post, get } = await serve(t);
  await register("a");
  const acquire = { agent_id: "a", intents: mutates("FILE:/a"), idle_timeout_ms: 200 };
  const { body } = await post<{ leases: readonly { id: string }[] }>("/v1/acquire", acquire);
  const presence = createPresence(service, { beatMs: 20, thinkMs: 1_000 });
  t.after(() => presence.close());
  const leave = presence.enter(operator, "a");
  t.after(leave);
  const lease = () => get<{ state: string; reason?: string }>(`/v1/leases/${body.leases[0]?.id}`);
  const ended = await until(async () => ((await lease()).body.state === "ACTIVE" ? null : lease()), "it has ended");
  assert.equal(ended.body.state, "REVOKED");
});

async function waiting(t: Parameters<typeof serve>[0], thinkMs: number) {
  const server = await serve(t);
  const { service, register, grant, post } = server;
  await server.call("PUT", "/v1/tenants/default/settings", { claim_within_ms: 1_000 });
  await register("older");
  await register("younger");
  const lease = await grant("younger", "FILE:/a");
  const { body } = await post<{ readonly request_id: string }>("/v1/acquire", {
    agent_id: "older",
    intents: mutates("FILE:/a"),
    wait_timeout_ms: 60_000,
  });
  const presence = createPresence(service, { beatMs: 5_000, thinkMs });
  t.after(() => presence.close());
  return { ...server, presence, lease, requestId: body.request_id };
}

interface LeaseList {
  readonly leases: readonly { readonly agent_id: string }[];
}

const holders = async (get: <T>(path: string) => Promise<{ readonly body: T }>) =>
  (await get<LeaseList>("/v1/leases")).body.leases.map(({ agent_id }) => agent_id);

test("a grant that arrives between two calls of the model is kept past the claim time (W8)", async (t) => {
  const { presence, lease, requestId, post, get } = await waiting(t, 60_000);
  presence.attend(operator, "older", requestId);
  await post(`/v1/leases/${lease.id}/release`);
  await until(async () => ((await holders(get)).includes("older") ? true : null), "it is granted");
  await pause(2_500);
  assert.deepEqual(await holders(get), ["older"]);
  const asked = await get<{ readonly verdict: string }>(`/v1/requests/${requestId}`);
  assert.equal(asked.body.verdict, "GRANTED");
});

for (const verdict of ["WAIT", "STANDBY"])
  test(`W8, W14: what is granted after ${verdict}, while a model thinks, is kept for it past the claim time`, async (t) => {
    const server = await serve(t);
    await server.call("PUT", "/v1/tenants/default/settings", { claim_within_ms: 1_000 });
    const [first, second] = verdict === "WAIT" ? ["me", "other"] : ["other", "me"];
    for (const agent of [first, second]) await server.register(String(agent));
    const lease = await server.grant("other", "FILE:/a");
    const caller = await overHttp(t, server.address.url);
    const asked = { agent_id: "me", intents: mutates("FILE:/a"), hold_ms: 0 };
    assert.equal((await caller.do("acquire_leases", asked)).verdict, verdict);
    await server.post(`/v1/leases/${lease.id}/release`);
    await until(async () => ((await holders(server.get)).includes("me") ? true : null), "it is granted");
    await pause(2_500);
    assert.deepEqual(await holders(server.get), ["me"]);
  });

test("a model that makes no more calls loses the grant to the next waiter", async (t) => {
  const { presence, lease, requestId, post, get } = await waiting(t, 2_500);
  presence.attend(operator, "older", requestId);
  await post(`/v1/leases/${lease.id}/release`);
  await until(async () => ((await holders(get)).includes("older") ? true : null), "it is granted");
  await until(async () => ((await holders(get)).length === 0 ? true : null), "it is given back");
});

test("a model that calls again keeps the grants collected for it", async (t) => {
  const { presence, lease, requestId, post, get } = await waiting(t, 3_000);
  presence.attend(operator, "older", requestId);
  await post(`/v1/leases/${lease.id}/release`);
  await until(async () => ((await holders(get)).includes("older") ? true : null), "it is granted");
  presence.enter(operator, "older")();
  await pause(3_500);
  assert.deepEqual(await holders(get), ["older"]);
});

test("L13: a call in an agent's name by somebody who may not act for it ends nothing that is kept for it", async (t) => {
  const { presence, lease, requestId, post, get } = await waiting(t, 60_000);
  presence.attend(operator, "older", requestId);
  const stranger: Caller = { ...operator, actor: { role: "agent", agentId: null, epoch: null, keyId: "key_other" } };
  const stale: Caller = { ...operator, actor: { role: "agent", agentId: "older", epoch: 0 } };
  for (const caller of [stranger, stale]) presence.enter(caller, "older")();
  await post(`/v1/leases/${lease.id}/release`);
  await until(async () => ((await holders(get)).includes("older") ? true : null), "it is granted");
  await pause(2_500);
  assert.deepEqual(await holders(get), ["older"], "it was collected, and is kept past the claim time");
});

test("an idempotency key is reused only for the same call of the same caller, soon after a lost reply", () => {
  let now = 0;
  const answers = createLostAnswers(() => now);
  const input = { task_type: "a" };
  const first = answers.keyFor(operator, "create_task", input);
  assert.notEqual(answers.keyFor(operator, "create_task", input).key, first.key, "its answer may have arrived");
  first.wasLost();
  const worker: Caller = { ...operator, tenant: "acme" };
  assert.notEqual(answers.keyFor(worker, "create_task", input).key, first.key);
  assert.notEqual(answers.keyFor(operator, "create_task", { task_type: "b" }).key, first.key);
  const again = answers.keyFor(operator, "create_task", input);
  assert.equal(again.key, first.key);
  assert.notEqual(answers.keyFor(operator, "create_task", input).key, first.key, "once");
  again.wasLost();
  now += 600_000;
  assert.notEqual(answers.keyFor(operator, "create_task", input).key, first.key, "nobody sends again so late");
});

test("S5: the key of a lost call is not given to another credential that says the same", () => {
  const answers = createLostAnswers();
  const input = { task_type: "a" };
  const of = (keyId: string): Caller => ({
    ...operator,
    actor: { role: "worker", agentId: null, epoch: null, keyId },
    secret: { keyId, generation: 1 },
  });
  const mine = answers.keyFor(of("key_mine"), "create_task", input);
  mine.wasLost();
  assert.notEqual(answers.keyFor(of("key_other"), "create_task", input).key, mine.key);
  assert.notEqual(answers.keyFor({ ...of("key_mine"), tenant: "acme" }, "create_task", input).key, mine.key);
  assert.equal(answers.keyFor(of("key_mine"), "create_task", input).key, mine.key);
});

test("S4: a tenant that loses very many answers pushes out its own alone", () => {
  const answers = createLostAnswers();
  const other: Caller = { ...operator, tenant: "acme" };
  const wanted = answers.keyFor(other, "create_task", { n: 0 });
  wanted.wasLost();
  const [first, second] = [0, 1].map((n) => answers.keyFor(operator, "create_task", { n }));
  first?.wasLost();
  for (let n = 2; n < 20_000; n++) answers.keyFor(operator, "create_task", { n }).wasLost();
  second?.wasLost();
  assert.equal(answers.keyFor(other, "create_task", { n: 0 }).key, wanted.key);
  assert.notEqual(answers.keyFor(operator, "create_task", { n: 0 }).key, first?.key);
  assert.equal(answers.keyFor(operator, "create_task", { n: 1 }).key, second?.key);
});
