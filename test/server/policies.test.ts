/** S4 from outside: policies and scopes over HTTP, the stream and held polls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { type Body, type Client, mutates, serve, until } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import type { WireKey, WireOffer } from "./wire-types.ts";

interface Denied extends Body {
  readonly policy?: string;
  readonly rule?: string;
  readonly asked?: string;
  readonly allowed?: readonly string[];
}

async function makeKey(
  { post }: Client,
  role: string,
  key?: string,
  scopes?: object,
): Promise<WireKey & { key: string }> {
  const { status, body, text } = await post<WireKey & { key: string }>("/v1/keys", { role, scopes }, { key });
  assert.equal(status, 201, text);
  return body;
}

async function setPolicy({ call }: Client, id: string, policy: object, key?: string): Promise<void> {
  const { status, text } = await call("PUT", `/v1/policies/${id}`, policy, { key });
  assert.ok(status === 200 || status === 201, text);
}

const deny = (actions: readonly string[], conditions: object = {}) => ({ effect: "deny", actions, ...conditions });
const allow = (actions: readonly string[], conditions: object = {}) => ({ effect: "allow", actions, ...conditions });

test("S4: one agent cannot stop its tenant with MUTATES FILE:/**, over HTTP or the stream", async (t) => {
  const server = await serve(t);
  const { key: operator } = await makeKey(server, "operator");
  const { key } = await makeKey(server, "agent", operator);
  const { agent_token: token } = await server.register("greedy", { key });
  const asked = { agent_id: "greedy", intents: mutates("FILE:/**") };
  const { status, body } = await server.post<Denied>("/v1/acquire", asked, { key: token });
  assert.equal(status, 403);
  const { error, policy, rule, asked: what, allowed, field } = body;
  assert.deepEqual(
    { error, policy, rule, what, allowed, field },
    {
      error: "policy_denied",
      policy: "default",
      rule: "no-whole-type",
      what: "MUTATES FILE:/**",
      allowed: ["FILE:/<name>/**"],
      field: "intents.0.resource",
    },
  );
  const stream = await openStream(t, server.address.url, token);
  stream.send({ id: 1, op: "acquire", input: asked });
  assert.equal((await stream.answer(1)).body?.error, "policy_denied");
  const task = { task_type: "t", principal_ai: "p", intents: mutates("DB:/**") };
  assert.equal((await server.post("/v1/tasks", task, { key: token })).body.error, "policy_denied");
  await server.grant("greedy", "FILE:/src/**", {}, { key: token });
  // Those above may, and so may everybody on a server without keys.
  await server.grant("greedy", "DB:/**", {}, { key: operator });
});

test("S4: a policy is set, shown, listed, tested, replaced and deleted", async (t) => {
  const server = await serve(t);
  const { call, get, post } = server;
  const built = await get<{ changed_at: string | null; rules: readonly object[] }>("/v1/policies/default");
  assert.deepEqual([built.status, built.body.changed_at, built.body.rules.length], [200, null, 1]);
  const policy = {
    roles: ["agent"],
    rules: [allow(["lease"], { resources: ["FILE:/shop/**"], predicates: ["MUTATES"] })],
  };
  const intents = mutates("FILE:/shop/x", "FILE:/x");
  const proposed = { ...policy, policy_id: "shop" };
  const tested = await post<{
    allowed: boolean;
    results: readonly { allowed: boolean }[];
    policies: readonly string[];
  }>("/v1/policies/test", { role: "agent", intents, policy: proposed });
  assert.deepEqual(
    tested.body.results.map(({ allowed }) => allowed),
    [true, false],
  );
  assert.deepEqual(tested.body.policies, ["default", "shop"]);
  assert.equal((await get("/v1/policies/shop")).body.error, "policy_unknown");
  await setPolicy(server, "shop", policy);
  const shown = await get<{ rules: readonly { resources: readonly string[] }[] }>("/v1/policies/shop");
  assert.deepEqual(shown.body.rules[0]?.resources, ["FILE:/shop/**"]);
  const listed = await get<{ policies: readonly { policy_id: string }[] }>("/v1/policies");
  assert.deepEqual(
    listed.body.policies.map(({ policy_id: id }) => id),
    ["default", "shop"],
  );
  const { agent_token: key } = await server.register("a");
  const refused = await post<Denied>("/v1/acquire", { agent_id: "a", intents: mutates("FILE:/x") }, { key });
  assert.deepEqual([refused.body.policy, refused.body.allowed], ["shop", ["MUTATES FILE:/shop/**"]]);
  const own = await post<{ allowed: boolean }>("/v1/policies/test", { intents }, { key });
  assert.equal(own.body.allowed, false);
  assert.equal((await post("/v1/policies/test", { role: "operator", intents }, { key })).body.error, "forbidden");
  assert.equal((await call("DELETE", "/v1/policies/shop")).status, 200);
  await server.grant("a", "FILE:/x", {}, { key });
});

test("S4: a policy that is not well-formed is refused with the field that is wrong", async (t) => {
  const { call } = await serve(t);
  const cases: readonly [object, string][] = [
    [{ rules: [{ effect: "allow", actions: ["fly"] }] }, "rules.0.actions.0"],
    [{ rules: [allow(["lease"], { task_types: ["t"] })] }, "rules.0.task_types"],
    [{ rules: [allow(["lease"], { resources: ["file:/x"] })] }, "rules.0.resources.0"],
    [{ rules: [allow(["lease"], { units_max: 1 })] }, "rules.0.units_max"],
    [{ rules: [{ effect: "limit", actions: ["lease"] }] }, "rules.0.effect"],
    [{ roles: ["king"], rules: [] }, "roles.0"],
    [{ key_ids: ["key_none"], rules: [] }, "key_ids"],
    [{}, "rules"],
  ];
  for (const [policy, field] of cases) {
    const { status, body } = await call("PUT", "/v1/policies/p", policy);
    assert.ok(status === 400 || status === 404, JSON.stringify(body));
    assert.equal(body.field, field);
  }
});

test("S4: scopes narrow a key of each role, and are shown with it", async (t) => {
  const server = await serve(t);
  const { key: operator } = await makeKey(server, "operator");
  const agents = await makeKey(server, "agent", operator, { resources: ["FILE:/shop/**"], ids: ["ci-*"] });
  const listed = await server.get<{ keys: readonly { key_id: string; scopes: { ids: readonly string[] } | null }[] }>(
    "/v1/keys?role=agent",
    { key: operator },
  );
  assert.deepEqual(listed.body.keys[0]?.scopes?.ids, ["ci-*"]);
  assert.equal((await server.post("/v1/agents", { agent_id: "x" }, { key: agents.key })).body.error, "policy_denied");
  const { agent_token: token } = await server.register("ci-1", { key: agents.key });
  const asked = { agent_id: "ci-1", intents: mutates("FILE:/x") };
  const refused = await server.post<Denied>("/v1/acquire", asked, { key: token });
  assert.deepEqual([refused.status, refused.body.policy], [403, `scopes of ${agents.key_id}`]);
  await server.grant("ci-1", "FILE:/shop/x", {}, { key: token });

  const above = await makeKey(server, "supervisor", operator, { resources: ["GPU:/**"] });
  const declare = (resource: string) => server.call("PUT", "/v1/resources", { resource }, { key: above.key });
  assert.equal((await declare("FILE:/x")).body.error, "policy_denied");
  assert.equal((await declare("GPU:/0")).status, 201);
  const fence = { resource: "FILE:/shop/x", reason: "r" };
  assert.equal((await server.post("/v1/resources/fence", fence, { key: above.key })).body.error, "policy_denied");

  const { body } = await server.post("/v1/keys", { role: "operator", scopes: { ids: ["x"] } }, { key: operator });
  assert.deepEqual([body.error, body.field], ["invalid_key", "scopes"]);
});

test("S4: a held poll is not woken for work that its key may not do, and a task finds the worker that may", async (t) => {
  const server = await serve(t);
  const { key: operator } = await makeKey(server, "operator");
  const narrow = await makeKey(server, "worker", operator, { task_types: ["build"] });
  const wide = await makeKey(server, "worker", operator);
  const poll = (worker_id: string, key: string) =>
    server.post<WireOffer>("/lease", { worker_id, capabilities: [], hold_ms: 20_000 }, { key });
  const idle = ["n.1", "n.2", "n.3", "n.4"].map((id) => poll(id, narrow.key));
  await until(() => (server.service.polls.size === 4 ? true : null), "four polls are held");
  const able = poll("w.1", wide.key);
  await until(() => (server.service.polls.size === 5 ? true : null), "five polls are held");
  await server.post("/v1/tasks", { task_type: "deploy", principal_ai: "p" }, { key: operator });
  assert.equal((await able).body.task.task_type, "deploy");
  assert.equal(server.service.polls.size, 4);
  const named = { worker_id: "n.5", capabilities: [], accept_types: ["deploy"] };
  assert.equal((await server.post("/lease", named, { key: narrow.key })).body.error, "policy_denied");
  // A change of policies ends all holds, because they were matched by those before.
  await setPolicy(server, "none", { rules: [deny(["work"])] }, operator);
  for (const answer of await Promise.all(idle)) assert.equal(answer.status, 204);
});

test("S4: policies and scopes hold after a restart of the service", async (t) => {
  const disk = createMemoryDisk();
  const first = await serve(t, { store: createMemoryStore(disk) });
  const { key: operator } = await makeKey(first, "operator");
  const { key } = await makeKey(first, "agent", operator, { resources: ["FILE:/shop/**"] });
  const { agent_token: token } = await first.register("a", { key });
  await setPolicy(
    first,
    "readers",
    { roles: ["agent"], rules: [allow(["lease"], { predicates: ["CONSUMES"] })] },
    operator,
  );
  await first.close();
  const second = await serve(t, { store: createMemoryStore(disk) });
  const ask = async (intents: object) =>
    (await second.post<Denied>("/v1/acquire", { agent_id: "a", intents }, { key: token })).body;
  assert.equal((await ask(mutates("FILE:/shop/x"))).policy, "readers");
  assert.match((await ask([{ predicate: "CONSUMES", resource: "FILE:/x" }])).policy ?? "", /^scopes of key_/);
});
