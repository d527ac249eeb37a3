/** Who is who (L13), as attacks: each of these worked once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hello, joinCell, openLink } from "./cell-peer.ts";
import { type Client, serve, until } from "./harness.ts";
import { openStream } from "./stream-client.ts";
import { taskClientOf } from "./task-client.ts";
import type { WireKey, WireRegisteredAgent } from "./wire-types.ts";

interface MadeKey extends WireKey {
  readonly key: string;
  readonly warnings?: readonly string[];
}

/** Makes keys, with the operator's first. */
async function keyring({ post }: Client) {
  const operator = (await post<MadeKey>("/v1/keys", { role: "operator" })).body;
  const make = async (role: string, more: object = {}): Promise<MadeKey> => {
    const { status, body, text } = await post<MadeKey>("/v1/keys", { role, ...more }, { key: operator.key });
    assert.equal(status, 201, text);
    return body;
  };
  return { operator: { key: operator.key }, operatorId: operator.key_id, make };
}

test("L13: an agent key cannot take up, resume or act for an agent of another key, whatever it knows of it", async (t) => {
  const server = await serve(t);
  const { post, get, register, grant } = server;
  const { operator, make } = await keyring(server);
  const [owner, thief] = [await make("agent"), await make("agent")];
  const victim = await register("victim", { key: owner.key });
  const lease = await grant("victim", "FILE:/a", {}, { key: victim.agent_token });
  const taken = await post("/v1/agents", { agent_id: "victim" }, { key: thief.key });
  assert.deepEqual([taken.status, taken.body.error, taken.body.reason], [403, "forbidden", "owned_by_another"]);
  assert.match(
    taken.body.detail ?? "",
    /belongs to the credential that registered it; choose another id, show that key/,
  );
  for (const path of ["resume", "token", "restart", "verify-all"])
    assert.equal((await post(`/v1/agents/victim/${path}`, {}, { key: thief.key })).body.error, "forbidden", path);
  const bystander = await register("bystander", { key: thief.key });
  assert.equal((await post("/v1/agents", { agent_id: "victim" }, { key: bystander.agent_token })).status, 403);
  // The victim notices nothing; its own key and token, and those above, take it up.
  assert.equal((await post(`/v1/leases/${lease.id}/heartbeat`, {}, { key: victim.agent_token })).status, 200);
  const supervisor = await make("supervisor");
  for (const key of [owner.key, supervisor.key, operator.key]) {
    const { body } = await post<WireRegisteredAgent>("/v1/agents", { agent_id: "victim" }, { key });
    assert.equal(body.priority_timestamp, victim.priority_timestamp);
  }
  assert.equal(
    (await post("/v1/agents", { agent_id: "victim" }, { key: victim.agent_token })).body.error,
    "stale_epoch",
  );
  // Those above see whose it is, the others do not.
  const shown = (key: string) => get<{ registered_by?: string }>("/v1/agents/victim", { key });
  assert.equal((await shown(supervisor.key)).body.registered_by, owner.key_id);
  assert.equal((await shown(bystander.agent_token)).body.registered_by, undefined);
});

test("L13: what was made without a key is for those above once there are keys, and its tokens have ended", async (t) => {
  const server = await serve(t);
  const { post, get, register } = server;
  const { agent_token: token } = await register("early");
  const { create, poll } = taskClientOf(server);
  await create();
  await poll("worker.early");
  const cell = await joinCell(t, server.address.url, { cell: "lab" });
  const closed = cell.closed;
  const { operator, make } = await keyring(server);
  await closed;
  const [agentKey, workerKey, cellKey] = [await make("agent"), await make("worker"), await make("cell")];
  assert.equal((await get("/v1/leases", { key: token })).status, 401);
  assert.equal((await post("/v1/agents", { agent_id: "early" }, { key: agentKey.key })).status, 403);
  const stolen = await post("/lease", { worker_id: "worker.early" }, { key: workerKey.key });
  assert.deepEqual([stolen.status, stolen.body.reason], [403, "owned_by_another"]);
  const link = await openLink(t, server.address.url, { key: cellKey.key });
  link.send(hello({ cell: "lab" }, "s2"));
  assert.equal((await link.take("refused")).code, "cell_taken");
  // An operator gives each to a key, of the fitting role.
  const assign = (keyId: string, name: object) => post(`/v1/keys/${keyId}/assign`, name, operator);
  assert.equal((await assign(workerKey.key_id, { agent_id: "early" })).body.error, "invalid_key");
  assert.equal((await assign(agentKey.key_id, { agent_id: "early" })).status, 200);
  assert.equal((await assign(workerKey.key_id, { worker_id: "worker.early" })).status, 200);
  assert.equal((await assign(cellKey.key_id, { cell: "lab" })).status, 200);
  assert.equal((await post("/v1/agents", { agent_id: "early" }, { key: agentKey.key })).status, 200);
  assert.ok([200, 204].includes((await post("/lease", { worker_id: "worker.early" }, { key: workerKey.key })).status));
  await joinCell(t, server.address.url, { cell: "lab", key: cellKey.key });
  const workers = await get<{ workers: readonly { registered_by?: string }[] }>("/v1/workers", operator);
  assert.deepEqual(
    workers.body.workers.map(({ registered_by: by }) => by),
    [workerKey.key_id],
  );
});

test("L13: names first used by a supervisor, or whose key was deleted, are not for the next key that comes", async (t) => {
  const server = await serve(t);
  const { post, call, register } = server;
  const { operator, make } = await keyring(server);
  const [supervisor, first, next] = [await make("supervisor"), await make("worker"), await make("worker")];
  const poll = async (worker_id: string, { key }: MadeKey) => (await post("/lease", { worker_id }, { key })).status;
  assert.equal(await poll("w.above", supervisor), 204);
  assert.equal(await poll("w.above", next), 403);
  assert.equal(await poll("w.gone", first), 204);
  const agents = await make("agent");
  await register("orphan", { key: agents.key });
  for (const { key_id } of [first, agents]) await call("DELETE", `/v1/keys/${key_id}`, undefined, operator);
  assert.equal(await poll("w.gone", next), 403);
  const other = await make("agent");
  assert.equal((await post("/v1/agents", { agent_id: "orphan" }, { key: other.key })).status, 403);
  assert.equal((await post("/v1/agents", { agent_id: "orphan" }, { key: supervisor.key })).status, 200);
});

test("an agent's token ends with its key: deleted, replaced or expired, over HTTP and on open WebSockets", async (t) => {
  const server = await serve(t);
  const { post, call, get, register } = server;
  const { operator, make } = await keyring(server);
  const endings: Record<string, (key: MadeKey) => Promise<unknown>> = {
    deleted: ({ key_id }) => call("DELETE", `/v1/keys/${key_id}`, undefined, operator),
    replaced: ({ key_id }) => post(`/v1/keys/${key_id}/rotate`, { overlap_ms: 0 }, operator),
    replacedLater: ({ key_id }) => post(`/v1/keys/${key_id}/rotate`, { overlap_ms: 500 }, operator),
    expired: () => Promise.resolve(),
  };
  for (const [how, end] of Object.entries(endings)) {
    const expires = how === "expired" ? { expires_at: new Date(Date.now() + 3_000).toISOString() } : {};
    const key = await make("agent", expires);
    const { agent_token: token } = await register(`agent-${how}`, { key: key.key });
    assert.equal((await get("/v1/leases", { key: token })).status, 200, how);
    const sockets = [await openStream(t, server.address.url, token), await openStream(t, server.address.url, key.key)];
    const closed = sockets.map(({ socket }) => new Promise((resolve) => socket.once("close", resolve)));
    await end(key);
    await Promise.all(closed);
    for (const shown of [token, key.key]) {
      const { status, body } = await get("/v1/leases", { key: shown });
      assert.deepEqual([status, body.error], [401, "unauthorized"], how);
    }
  }
});

test("a rotated key owns what it owned; both secrets are good for the overlap, and tokens with them", async (t) => {
  const server = await serve(t);
  const { post, get, register } = server;
  const { operator, make } = await keyring(server);
  const key = await make("agent");
  const before = await register("a", { key: key.key });
  const rotated = (await post<MadeKey>(`/v1/keys/${key.key_id}/rotate`, { overlap_ms: 60_000 }, operator)).body;
  assert.equal(rotated.key_id, key.key_id);
  assert.notEqual(rotated.key, key.key);
  assert.equal((await get("/v1/leases", { key: before.agent_token })).status, 200);
  const after = (await post<WireRegisteredAgent>("/v1/agents", { agent_id: "a" }, { key: rotated.key })).body;
  assert.equal(after.priority_timestamp, before.priority_timestamp);
  assert.equal((await post("/v1/agents", { agent_id: "b" }, { key: key.key })).status, 201);
  // The next rotation ends the overlap.
  await post(`/v1/keys/${key.key_id}/rotate`, { overlap_ms: 60_000 }, operator);
  assert.equal((await post("/v1/agents", { agent_id: "b" }, { key: key.key })).status, 401);
  assert.equal((await get("/v1/leases", { key: after.agent_token })).status, 200);
});

test("an agent's token runs out, and its present instance can renew it before, without a new epoch", async (t) => {
  const server = await serve(t, { agentTokenMs: 60_000 });
  const { post, register, grant } = server;
  const { operator, make } = await keyring(server);
  const key = await make("agent", { expires_at: new Date(Date.now() + 30_000).toISOString() });
  const first = await register("a", { key: key.key });
  assert.ok(first.agent_token_expires_in_ms < 40_000, "not longer than the key it was drawn with");
  const lease = await grant("a", "FILE:/a", {}, { key: first.agent_token });
  const renew = (shown: string) => post<WireRegisteredAgent>("/v1/agents/a/token", {}, { key: shown });
  const renewed = (await renew(first.agent_token)).body;
  assert.equal(renewed.epoch, first.epoch);
  assert.equal((await post(`/v1/leases/${lease.id}/heartbeat`, {}, { key: renewed.agent_token })).status, 200);
  const aboves = (await renew(operator.key)).body;
  assert.ok(aboves.agent_token_expires_in_ms > 40_000 && aboves.agent_token_expires_in_ms <= 60_000);
  await register("a", { key: key.key });
  assert.equal((await post("/v1/agents/a/token", {}, { key: renewed.agent_token })).body.error, "stale_epoch");
});

test("S5: the first key says what it ends, and the last operator's key stays", async (t) => {
  const server = await serve(t);
  const { post, call, get } = server;
  const made = await post<MadeKey>("/v1/keys", { role: "operator" });
  assert.match(made.body.warnings?.join() ?? "", /every request needs a credential/);
  const operator = { key: made.body.key };
  const last = await call("DELETE", `/v1/keys/${made.body.key_id}`, undefined, operator);
  assert.deepEqual([last.status, last.body.error], [409, "last_operator_key"]);
  const second = await post<MadeKey>("/v1/keys", { role: "operator" }, operator);
  assert.equal(second.body.warnings, undefined);
  assert.equal((await call("DELETE", `/v1/keys/${made.body.key_id}`, undefined, operator)).status, 200);
  assert.equal((await get("/v1/keys")).status, 401);
});

test("keys show when they end and when they were last used, by themselves or by a token", async (t) => {
  const server = await serve(t);
  const { post, get, register } = server;
  const { operator, operatorId, make } = await keyring(server);
  const expires_at = "2099-01-01T00:00:00.000Z";
  const key = await make("agent", { expires_at });
  for (const [field, value] of [
    ["expires_at", "tomorrow"],
    ["expires_at", "2001-01-01T00:00:00Z"],
  ] as const) {
    const bad = await post("/v1/keys", { role: "agent", [field]: value }, operator);
    assert.deepEqual([bad.status, bad.body.error, bad.body.field], [400, "invalid_key", field]);
  }
  const { agent_token: token } = await register("a", { key: key.key });
  await get("/v1/leases", { key: token });
  const uses = server.service.keys.takeUses();
  assert.deepEqual(uses.map(({ keyId }) => keyId).toSorted(), [key.key_id, operatorId].toSorted());
  const actor = { role: "operator", agentId: null, epoch: null } as const;
  await server.service.engine.command({ type: "note_key_uses", tenant: "default", actor, entropy: [0, 0], uses });
  const listed = await get<{ keys: readonly WireKey[] }>("/v1/keys", operator);
  const found = listed.body.keys.find(({ key_id: id }) => id === key.key_id);
  assert.deepEqual([found?.expires_at, found?.last_used_at !== null], [expires_at, true]);
  // A record that was written for that is still found by its secret.
  assert.equal((await post("/v1/agents", { agent_id: "a" }, { key: key.key })).status, 200);
});

test("M11: token keys can be rotated without an overlap, so that a stolen one is worth nothing at once", async (t) => {
  const server = await serve(t);
  const { post } = server;
  const before = await post<{ keys: readonly { retires_at: string | null }[] }>("/v1/token-keys/rotate", {});
  assert.equal(before.body.keys.length, 2);
  const after = await post<{ keys: readonly { retires_at: string | null }[] }>("/v1/token-keys/rotate", {
    overlap_ms: 0,
  });
  assert.deepEqual(
    after.body.keys.map(({ retires_at: at }) => at),
    [null],
  );
});

test("R7: an agent cannot pass for a key, and what agents send under one dedupe key does not collide", async (t) => {
  const server = await serve(t);
  const { post, register, call } = server;
  const { operator, make } = await keyring(server);
  await call("PUT", "/v1/tenants/default/settings", { foreign_receipts: true }, operator);
  const [worker, agents] = [await make("worker"), await make("agent")];
  const task = { task_type: "build", principal_ai: "p" };
  const created = await post<{ task_id: string }>("/v1/tasks", task, { key: worker.key });
  const posing = await post("/v1/agents", { agent_id: worker.key_id }, { key: agents.key });
  assert.deepEqual([posing.status, posing.body.error], [400, "invalid_agent_id"]);
  assert.equal(created.status, 201);
  const submitted: unknown[] = [];
  for (const id of ["one", "two"]) {
    const { agent_token: token } = await register(id, { key: agents.key });
    const receipt = { phase: "accepted", task_id: `X-${id}`, task_summary: id, dedupe_key: "done" };
    const { status, body, text } = await post<{ submitted_by?: string }>("/v1/receipts", receipt, { key: token });
    assert.equal(status, 201, text);
    submitted.push(body.submitted_by);
  }
  assert.deepEqual(submitted, ["one", "two"]);
});

test("a key's use is stored when the server stops", async (t) => {
  const server = await serve(t);
  const { operator } = await keyring(server);
  await server.get("/v1/keys", operator);
  await until(() => (server.service.keys.isEmpty ? null : true), "a key");
  await server.close();
  assert.deepEqual(server.service.keys.takeUses(), []);
});
