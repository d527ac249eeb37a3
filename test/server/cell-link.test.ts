import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { describeFailure } from "../../src/cli/failure.ts";
import { cellLinkLimits } from "../../src/protocol/resources/cell-link.ts";
import { hashSecret } from "../../src/server/auth/credentials.ts";
import { startServer } from "../../src/server/start.ts";
import { verify } from "../../src/token/index.ts";
import { MasterKeysUnusable, masterKeyFileName } from "../../src/token/node/master-keys.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { entry, failing, hello, joinCell, keysOf, obedient, openLink } from "./cell-peer.ts";
import { type Client, clientOf, failingStore, mutates, serve, until } from "./harness.ts";
import type { WireLease } from "./wire-types.ts";

const gpu = "GPU:/a";

/** From here on every call needs a key. */
async function withKeys(client: Client, ...roles: readonly (readonly [role: string, tenant: string])[]) {
  const { body } = await client.post<{ key: string }>("/v1/keys", { role: "operator", tenant_id: "default" });
  const operator = body.key;
  const keys: string[] = [];
  for (const [role, tenant_id] of roles) {
    const made = await client.post<{ key: string }>("/v1/keys", { role, tenant_id }, { key: operator });
    assert.equal(made.status, 201, made.text);
    keys.push(made.body.key);
  }
  return { operator, keys };
}

test("a credential that is not a cell's is refused", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  const others = ["agent", "worker", "reader"] as const;
  const { keys } = await withKeys(server, ...others.map((role) => [role, "default"] as const));
  for (const key of keys) await assert.rejects(openLink(t, url, { key }), /status 403/);
  await assert.rejects(openLink(t, url, { key: "lhk_wrong" }), /status 401/);
  await assert.rejects(openLink(t, url), /status 401/);
});

test("a cell's key is one tenant's, and a cell's name belongs to the key that used it first", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const { operator, keys } = await withKeys(server, ["cell", "default"], ["cell", "default"], ["cell", "acme"]);
  const [first, second, acmes] = keys;
  const peer = await joinCell(t, url, { key: first });
  const thief = await openLink(t, url, { key: second });
  thief.send(hello({}, "s2"));
  assert.equal((await thief.take("refused")).code, "cell_taken");
  assert.equal((await thief.closed).code, 4002);
  await assert.rejects(openLink(t, url, { key: acmes, tenant: "default" }), /status 403/);
  // The same name in another tenant is another cell, with other keys.
  const namesake = await joinCell(t, url, { key: acmes });
  const agent = await server.register("alice", { key: operator });
  const lease = await server.grant("alice", gpu, { hold_ms: 10_000 }, { key: agent.agent_token });
  assert.equal((await peer.order("bind")).lease.id, lease.id);
  assert.ok(!namesake.received.some((frame) => frame.type === "do"));
  const presented = { now: server.service.engine.now(), tenant: "default", cell: "c1", resource: gpu };
  assert.ok("claims" in verify(lease.token ?? "", peer.keys, presented));
  assert.ok("code" in verify(lease.token ?? "", namesake.keys, presented));
  // A report on another cell's lease is refused.
  namesake.send({ type: "ended", seq: 1, lease_id: lease.id, generation: 1, code: "lease_revoked", failure: null });
  await namesake.take("noted");
  const seen = await server.get(`/v1/leases/${lease.id}`, { key: operator });
  assert.equal(seen.body.state, "ACTIVE");
});

test("a link ends with the key that opened it", async (t) => {
  const server = await serve(t);
  const { operator, keys } = await withKeys(server, ["cell", "default"]);
  const peer = await joinCell(t, server.address.url, { key: keys[0] });
  const keyId = server.service.engine.peek((state) => {
    for (const { record } of state.keys.values()) if (record.hash === hashSecret(keys[0] ?? "")) return record.id;
    return "";
  });
  assert.equal((await server.call("DELETE", `/v1/keys/${keyId}`, undefined, { key: operator })).status, 200);
  await peer.closed;
});

test("a malformed, misplaced or oversized frame ends the link and nothing else", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  const honest = await joinCell(t, url, { cell: "honest" });
  const bad: readonly unknown[] = [
    "{",
    "[]",
    { type: "heartbeat", seq: 1, inventory: null },
    { type: "welcome" },
    { ...hello({}, "s"), more: 1 },
    { ...hello({}, "s"), inventory: [{ resource: gpu }] },
    { ...hello({}, "s"), session: "" },
    { ...hello({ cell: "a b" }, "s") },
  ];
  for (const frame of bad) {
    const peer = await openLink(t, url);
    peer.send(frame);
    assert.equal((await peer.closed).code, 4003, JSON.stringify(frame));
    assert.equal(peer.received.at(-1)?.type, "refused");
  }
  const binary = await openLink(t, url);
  binary.socket.send(Buffer.from("{}"));
  assert.equal((await binary.closed).code, 4003);
  const huge = await openLink(t, url);
  huge.send(`"${"x".repeat(cellLinkLimits.frameBytesMax)}"`);
  assert.ok([1006, 1009].includes((await huge.closed).code));
  const twice = await joinCell(t, url, { cell: "twice" });
  twice.send(hello({ cell: "twice" }, twice.session));
  assert.equal((await twice.closed).code, 4003);
  const reserved = await openLink(t, url);
  reserved.send(hello({ cell: "control" }, "s"));
  assert.equal((await reserved.closed).code, 4001);
  honest.send({ type: "heartbeat", seq: 1, inventory: null });
  assert.equal((await honest.take("beat")).seq, 1);
});

test("unsolicited, repeated and late reports of a cell change nothing", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  for (const seq of [0, 1, 99]) peer.send({ type: "done", seq, ok: true, coordinate: "http://evil.test/" });
  peer.answer = (order) => {
    const done = obedient(order);
    if (done !== null) peer.send(done);
    return done;
  };
  await server.register("alice");
  const lease = await server.grant("alice", gpu, { hold_ms: 10_000 });
  assert.equal(lease.coordinate, "http://gateway.test/");
  peer.send({ type: "heartbeat", seq: 1, inventory: null });
  await peer.take("beat");
});

test("a newer session of the same cell takes the place of the older", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  const older = await joinCell(t, url);
  const newer = await joinCell(t, url);
  assert.equal((await older.closed).code, 4004);
  await server.register("alice");
  const lease = await server.grant("alice", gpu, { hold_ms: 10_000 });
  assert.equal((await newer.order("bind")).lease.id, lease.id);
});

test("after a restart beliefs are compared: what the cell lost is revoked, what it still has is sent again, what is unknown is torn down", async (t) => {
  const data = temporaryFolder("leasehold-test-");
  const inventory = [entry(gpu), entry("GPU:/b"), entry("GPU:/c")];
  const start = () => startServer({ port: 0, store: "sqlite", data, shutdownTimeoutMs: 2_000 });
  const first = await start();
  let client = clientOf(first.address.url);
  const before = await joinCell(t, first.address.url, { inventory });
  const leases: WireLease[] = [];
  for (const [agent, resource] of [
    ["alice", gpu],
    ["bob", "GPU:/b"],
    ["carol", "GPU:/c"],
  ] as const) {
    await client.register(agent);
    leases.push(await client.grant(agent, resource, { hold_ms: 10_000, ttl_ms: 120_000 }));
  }
  const [kept, lost, closing] = leases;
  assert.ok(kept !== undefined && lost !== undefined && closing !== undefined);
  before.answer = () => null;
  await client.post("/v1/revoke", { lease_id: closing.id, reason: "over" });
  await before.order("teardown");
  await first.close();
  assert.equal((await before.closed).code, 1012);
  const second = await start();
  t.after(() => second.close());
  client = clientOf(second.address.url);
  const binding = (lease: WireLease) => ({
    lease_id: lease.id,
    generation: lease.generation,
    fence: lease.fence,
    ended_as: null,
  });
  const unknown = { lease_id: "lse_unknown", generation: 1, fence: 1, ended_as: null };
  const bindings = [binding(kept), binding(closing), unknown];
  const after = await joinCell(t, second.address.url, { inventory, bindings });
  assert.equal((await after.order("update")).lease.id, kept.id);
  const torn = [(await after.order("teardown")).lease_id, (await after.order("teardown")).lease_id];
  assert.deepEqual(torn.toSorted(), [closing.id, unknown.lease_id].toSorted());
  const stateOf = async ({ id }: WireLease) => (await client.get(`/v1/leases/${id}`)).body;
  await until(async () => ((await stateOf(closing)).state === "REVOKED" ? true : null), "torn down");
  assert.equal((await stateOf(kept)).state, "ACTIVE");
  assert.equal((await stateOf(lost)).state, "REVOKED");
  // Tokens survive the restart: the keys are stored with the data.
  const verified = await client.post("/v1/tokens/verify", { token: kept.token });
  assert.equal(verified.status, 200, verified.text);
});

test("a server whose token keys are damaged does not start, says so in one line, and leaves them and the data alone", async () => {
  const data = temporaryFolder("leasehold-test-");
  const start = () => startServer({ port: 0, store: "sqlite", data, shutdownTimeoutMs: 2_000 });
  await (await start()).close();
  const file = join(data, masterKeyFileName);
  const good = readFileSync(file, "utf8");
  writeFileSync(file, "{");
  await assert.rejects(start(), (error) => {
    const { line, code } = describeFailure(error, null);
    assert.deepEqual([code, line.includes("\n")], [1, false]);
    return error instanceof MasterKeysUnusable;
  });
  assert.equal(readFileSync(file, "utf8"), "{");
  writeFileSync(file, good);
  await (await start()).close();
});

test("S2: after a commit of unknown outcome every cell reconnects, and no order is lost", async (t) => {
  const failing = failingStore();
  const server = await serve(t, { store: failing.store });
  const { url } = server.address;
  const peer = await joinCell(t, url);
  await server.register("alice");
  failing.failNextCommit("stored");
  const lost = await server.post("/v1/acquire", {
    agent_id: "alice",
    intents: mutates(gpu),
    request_id: "once",
    hold_ms: 10_000,
  });
  assert.equal(lost.status, 503);
  failing.comeBack();
  await peer.closed;
  const again = await until(() => joinCell(t, url).catch(() => null), "it is back");
  assert.ok((await again.order("bind")).lease.id !== "");
  await until(async () => {
    const { status } = await server.post("/v1/acquire", {
      agent_id: "alice",
      intents: mutates(gpu),
      request_id: "once",
      hold_ms: 5_000,
    });
    return status === 200 ? true : null;
  }, "it is granted");
});

test("keys are rotated with overlap, and connected cells get them at once", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  await server.register("alice");
  const old = await server.grant("alice", gpu, { hold_ms: 10_000 });
  const rotated = await server.post<{ keys: readonly { key_id: string; retires_at: string | null }[] }>(
    "/v1/token-keys/rotate",
  );
  assert.equal(rotated.status, 200, rotated.text);
  assert.deepEqual(
    rotated.body.keys.map(({ retires_at }) => retires_at === null),
    [false, true],
  );
  const keys = keysOf("c1", (await peer.take("keys")).keys);
  const fresh = await server.post<WireLease>(`/v1/leases/${old.id}/renew`);
  const presented = { now: server.service.engine.now(), tenant: "default", cell: "c1", resource: gpu };
  for (const token of [old.token, fresh.body.token]) assert.ok("claims" in verify(token ?? "", keys, presented));
  assert.ok("code" in verify(fresh.body.token ?? "", peer.keys, presented));
  assert.deepEqual((await server.get("/v1/token-keys")).body, rotated.body);
});

test("a cell that sends unexpected answers or errors affects only itself", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  peer.answer = failing("bind", "a code of its own", "x".repeat(1_024));
  await server.register("alice");
  const denied = await server.post("/v1/acquire", { agent_id: "alice", intents: mutates(gpu), hold_ms: 10_000 });
  assert.deepEqual([denied.status, denied.body.reason], [403, "bind_failed"]);
  peer.answer = failing("update", "lease_unknown", "It is not bound here.");
  const { body } = await server.post<{ leases?: readonly WireLease[] }>("/v1/acquire", {
    agent_id: "alice",
    intents: mutates(gpu),
    hold_ms: 10_000,
  });
  // The stricter belief wins: a lease that the cell does not know is ended.
  const id = body.leases?.[0]?.id ?? "";
  await until(async () => ((await server.get(`/v1/leases/${id}`)).body.state === "REVOKED" ? true : null), "revoked");
});
