import assert from "node:assert/strict";
import { test } from "node:test";
import { readCellConfig } from "../../src/cell/config.ts";
import { CellCore } from "../../src/cell/core.ts";
import { execute } from "../../src/cell/executing.ts";
import type { CellDone } from "../../src/protocol/resources/cell-link.ts";
import { verify } from "../../src/token/index.ts";
import { entry, failing, joinCell, obedient, type Peer } from "./cell-peer.ts";
import { type Client, mutates, serve, until, withoutShards } from "./harness.ts";
import type { WireGranted, WireLease, WireResource } from "./wire-types.ts";

const gpu = "GPU:/a";

interface Bound extends WireLease {
  readonly token: string;
  readonly coordinate: string;
}

async function bindOne(client: Client, agent = "alice", resource = gpu, more: object = {}): Promise<Bound> {
  await client.register(agent);
  const lease = await client.grant(agent, resource, { hold_ms: 10_000, ...more });
  assert.ok(lease.token !== undefined && lease.coordinate !== undefined, JSON.stringify(lease));
  return { ...lease, token: lease.token, coordinate: lease.coordinate };
}

function stateOf({ get }: Client, name = gpu): Promise<string> {
  return get<{ resources: readonly WireResource[] }>(`/v1/resources?prefix=${name}`).then(
    ({ body }) => body.resources.find(({ resource }) => resource === name)?.state ?? "ABSENT",
  );
}

test("G3, G6: a bound lease is ACTIVE after its bind, with a coordinate and a token that its cell accepts and derives too", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url, { inventory: [entry("THING:/a", { driver: "exec" })] });
  const options = { bind: ["/bin/sh", "-c", "echo thing://1"], teardown: ["/bin/true"] };
  const config = readCellConfig(
    JSON.stringify({ cell: "c1", resources: [{ resource: "THING:/a", driver: "exec", options }] }),
    "/cell.json",
  );
  const core = new CellCore(config, peer.keys);
  t.after(() => core.close());
  const made: (string | undefined)[] = [];
  peer.answer = async (order) => {
    const done = await execute(core, order);
    if (done.ok && order.op === "update") made.push(done.token);
    return done;
  };
  const lease = await bindOne(server, "alice", "THING:/a");
  assert.deepEqual([lease.state, lease.coordinate], ["ACTIVE", "thing://1"]);
  await until(() => (made.length > 0 ? true : null), "the cell was ordered to bind");
  assert.deepEqual(made, [lease.token]);
  const { generation, fence } = lease;
  const presented = { now: server.service.engine.now(), tenant: "default", cell: "c1", resource: "THING:/a" };
  assert.ok("claims" in verify(lease.token, peer.keys, { ...presented, lease: lease.id, generation, fence }));
  // G8: a renewal is answered when the cell has confirmed it.
  const renewed = await server.post<Bound>(`/v1/leases/${lease.id}/renew`);
  assert.equal(renewed.status, 200, renewed.text);
  assert.equal(renewed.body.token, made[1]);
  assert.equal(core.bindings()[0]?.lease.generation, 2);
  assert.equal((await server.post(`/v1/leases/${lease.id}/release`)).body.state, "CLOSING");
  await until(
    async () => ((await server.get(`/v1/leases/${lease.id}`)).body.state === "RELEASED" ? true : null),
    "free",
  );
  assert.equal(core.bindings().length, 0);
});

test("G6: one bind that fails undoes the whole manifest: lease_denied, bind_failed, and nothing is held", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url, { inventory: [entry(gpu), entry("GPU:/b")] });
  peer.answer = (order) =>
    order.op === "bind" && order.lease.resource === "GPU:/b"
      ? { type: "done", seq: order.seq, ok: false, code: "bind_failed", detail: "no driver for it" }
      : obedient(order);
  await server.register("alice");
  const intents = mutates(gpu, "GPU:/b", "FILE:/x");
  const denied = await server.post("/v1/acquire", { agent_id: "alice", intents, hold_ms: 10_000 });
  assert.deepEqual([denied.status, denied.body.error, denied.body.reason], [403, "lease_denied", "bind_failed"]);
  assert.match(denied.body.detail ?? "", /no driver for it/);
  await until(async () => {
    const { body } = await server.get<{ leases: readonly unknown[] }>("/v1/leases");
    return body.leases.length === 0 ? true : null;
  }, "nothing is held");
  assert.equal(await stateOf(server), "READY");
  peer.answer = obedient;
  await bindOne(server, "bob", "GPU:/b");
});

test("G6, G7: during its teardown a resource is not granted; then it is free, or fenced with the reason", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  const held: (() => void)[] = [];
  const withheld = (done: CellDone) => new Promise<CellDone>((resolve) => held.push(() => resolve(done)));
  peer.answer = (order) =>
    order.op === "teardown" ? withheld({ type: "done", seq: order.seq, ok: true }) : obedient(order);
  const lease = await bindOne(server);
  await server.register("bob");
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.equal((await peer.order("teardown")).code, "lease_released");
  const early = await server.post("/v1/acquire", { agent_id: "bob", intents: mutates(gpu), wait_timeout_ms: 0 });
  assert.notEqual(early.status, 200);
  held[0]?.();
  const bobs = await until(async () => {
    const { status, body } = await server.post<WireGranted>("/v1/acquire", {
      agent_id: "bob",
      intents: mutates(gpu),
      hold_ms: 5_000,
    });
    return status === 200 ? (body.leases[0] ?? null) : null;
  }, "bob has it");
  peer.answer = failing("teardown", "teardown_failed", "one process is left");
  await server.post("/v1/revoke", { lease_id: bobs.id, reason: "over" });
  await until(async () => ((await stateOf(server)) === "FENCED" ? true : null), "it is fenced");
  const { body } = await server.get<{ resources: readonly WireResource[] }>(`/v1/resources?prefix=${gpu}`);
  assert.match(body.resources[0]?.reason ?? "", /one process is left/);
  const refused = await server.post("/v1/acquire", { agent_id: "alice", intents: mutates(gpu) });
  assert.deepEqual([refused.status, refused.body.reason], [423, "resource_fenced"]);
});

test("G7: a reset goes to the cell, and only a clean probe lifts the fence", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  const reset = () => server.post("/v1/resources/reset", { resource: gpu });
  // A resource that is not fenced is not reset: that would end live leases.
  assert.equal((await reset()).status, 200);
  assert.ok(!peer.received.some((frame) => frame.type === "do"));
  await server.post("/v1/resources/fence", { resource: gpu, reason: "hot" });
  peer.answer = failing("reset", "reset_failed", "the switch is off");
  const failed = await reset();
  assert.deepEqual([failed.status, failed.body.error, failed.body.detail], [409, "reset_failed", "the switch is off"]);
  peer.answer = (order) =>
    order.op === "probe"
      ? { type: "done", seq: order.seq, ok: true, clean: false, detail: "still hot" }
      : obedient(order);
  const dirty = await reset();
  assert.deepEqual([dirty.body.error, dirty.body.detail], ["reset_failed", "still hot"]);
  assert.equal(await stateOf(server), "FENCED");
  peer.answer = obedient;
  const clean = await reset();
  assert.deepEqual([clean.status, clean.body.state], [200, "READY"], clean.text);
  await server.post("/v1/resources/fence", { resource: gpu, reason: "hot" });
  peer.close();
  await until(() => (server.service.cells.size === 0 ? true : null), "it is not connected");
  const absent = await reset();
  assert.deepEqual([absent.status, absent.body.error, absent.body.reason], [423, "paused", "cell_not_ready"]);
});

test("G8: a bound lease is not extended; a renewal without its cell changes nothing, and one of an ended binding is refused", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  const lease = await bindOne(server);
  assert.equal((await server.post(`/v1/leases/${lease.id}/heartbeat`)).body.error, "renew_required");
  peer.answer = failing("update", "lease_expired", "It has ended here.");
  const ended = await server.post(`/v1/leases/${lease.id}/renew`);
  assert.deepEqual([ended.status, ended.body.error], [410, "lease_expired"]);
  peer.answer = (order) => (order.op === "update" ? null : obedient(order));
  const silent = await server.post(`/v1/leases/${lease.id}/renew`);
  assert.deepEqual([silent.status, silent.body.reason], [423, "cell_not_ready"]);
  const before = await server.get(`/v1/leases/${lease.id}`);
  peer.close();
  await until(() => (server.service.cells.size === 0 ? true : null), "it is not connected");
  const absent = await server.post(`/v1/leases/${lease.id}/renew`);
  assert.deepEqual([absent.status, absent.body.reason], [423, "cell_not_ready"]);
  assert.equal((await server.get(`/v1/leases/${lease.id}`)).body.generation, before.body.generation);
});

test("G11: a binding that its cell ended is over here too; a teardown that failed there fences the resource", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  const lease = await bindOne(server);
  const ended = { type: "ended", lease_id: lease.id, generation: 1, code: "lease_expired", failure: null };
  peer.send({ ...ended, seq: 7 });
  assert.equal((await peer.take("noted")).seq, 7);
  assert.equal((await server.get(`/v1/leases/${lease.id}`)).body.state, "EXPIRED");
  peer.send({ ...ended, seq: 8 });
  assert.equal((await peer.take("noted")).seq, 8);
  const other = await bindOne(server);
  peer.send({ ...ended, seq: 9, lease_id: other.id, failure: "it does not die" });
  await peer.take("noted");
  assert.equal(await stateOf(server), "FENCED");
});

test("the resources of a cell that left or never enrolled are unavailable, not free", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  await server.register("alice");
  peer.send({ type: "leaving", reason: "maintenance" });
  assert.equal((await peer.closed).code, 1000);
  const paused = await server.post("/v1/acquire", { agent_id: "alice", intents: mutates(gpu) });
  assert.deepEqual([paused.status, paused.body.error, paused.body.reason], [423, "paused", "cell_not_ready"]);
  const { body } = await server.get<{ cells: readonly { state: string; reason: string; connected: boolean }[] }>(
    "/v1/cells",
  );
  assert.deepEqual(
    body.cells.map(({ state, reason, connected }) => [state, reason, connected]),
    [["GONE", "maintenance", false]],
  );
});

test("G12: a withdrawn cell gets no new leases; live ones are revoked on request; readmitted, it serves again", async (t) => {
  const server = await serve(t);
  const peer = await joinCell(t, server.address.url);
  const lease = await bindOne(server);
  const withdrawn = await server.post<{ withdrawn: boolean }>("/v1/resources/withdraw", { cell: "c1", revoke: true });
  assert.deepEqual([withdrawn.status, withdrawn.body.withdrawn], [200, true], withdrawn.text);
  assert.equal((await peer.order("teardown")).lease_id, lease.id);
  await until(
    async () => ((await server.get(`/v1/leases/${lease.id}`)).body.state === "REVOKED" ? true : null),
    "over",
  );
  const paused = await server.post("/v1/acquire", { agent_id: "alice", intents: mutates(gpu) });
  assert.deepEqual([paused.status, paused.body.reason], [423, "cell_not_ready"]);
  assert.equal((await server.post("/v1/cells/c1/readmit")).status, 200);
  await bindOne(server);
  assert.equal((await server.post("/v1/cells/c9/readmit")).body.error, "cell_unknown");
});

test("W9: suspending a tenant tears its bound leases down", async (t) => {
  const server = await serve(t);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const options = { tenant: "acme" };
  const peer = await joinCell(t, server.address.url, options);
  await server.register("alice", options);
  const lease = await server.grant("alice", gpu, { hold_ms: 10_000 }, options);
  await server.post("/v1/tenants/acme/suspend", { reason: "unpaid" });
  assert.equal((await peer.order("teardown")).lease_id, lease.id);
});

test("a cell's inventory is listed with its state and follows changes", async (t) => {
  const server = await serve(t);
  const inventory = [
    entry(gpu, { capacity: 4, hardware: ["a100"] }),
    entry("GPU:/b", { ready: false, fault: "no port" }),
  ];
  const peer = await joinCell(t, server.address.url, { inventory });
  await bindOne(server, "alice");
  const list = async () => {
    const { body } = await server.get<{ cells: readonly { resources: readonly Listed[] }[] }>("/v1/cells");
    return body.cells[0]?.resources.map(({ resource, ready, fault, fenced, leases }) => [
      resource,
      ready,
      fault,
      fenced,
      leases,
    ]);
  };
  assert.deepEqual(await list(), [
    [gpu, true, null, null, 1],
    ["GPU:/b", false, "no port", null, 0],
  ]);
  peer.send({
    type: "heartbeat",
    seq: 1,
    inventory: [entry(gpu, { capacity: 4 }), entry("GPU:/b", { fenced: "dirty" })],
  });
  const beat = await peer.take("beat");
  assert.ok(beat.now <= server.service.engine.now());
  assert.deepEqual((await list())?.[1], ["GPU:/b", false, null, "dirty", 0]);
});

interface Listed {
  readonly resource: string;
  readonly ready: boolean;
  readonly fault: string | null;
  readonly fenced: string | null;
  readonly leases: number;
}

test("pick: any matching resource that is ready and has units is granted, and the lease names it", async (t) => {
  const server = await serve(t);
  const { url } = server.address;
  await joinCell(t, url, { inventory: [entry("GPU:/lab/a"), entry("GPU:/lab/b", { ready: false, fault: "off" })] });
  const other = await joinCell(t, url, { cell: "c2", inventory: [entry("GPU:/lab/c")] });
  const any = async (agent: string) => {
    await server.register(agent);
    const intents = [{ predicate: "MUTATES", resource: "GPU:/lab/*", pick: "any" }];
    return server.post<WireGranted>("/v1/acquire", {
      agent_id: agent,
      intents,
      hold_ms: 10_000,
      wait_timeout_ms: 1_000,
    });
  };
  const granted = [await any("alice"), await any("bob")].map(({ body }) => body.leases[0]);
  assert.deepEqual(granted.map((lease) => lease?.resource).sort(), ["GPU:/lab/a", "GPU:/lab/c"]);
  assert.ok(granted.every((lease) => lease?.token !== undefined && lease.coordinate !== undefined));
  assert.notEqual((await any("carol")).status, 200);
  other.send({ type: "leaving", reason: "over" });
  await other.closed;
});

test("G2: a quota on a resource type limits units", async (t) => {
  const server = await serve(t);
  await joinCell(t, server.address.url, { inventory: [entry(gpu, { capacity: 8 })] });
  const set = await server.call<{ quotas: { kinds: object } }>("PUT", "/v1/tenants/default/quotas", {
    kinds: { GPU: 3 },
  });
  assert.deepEqual(set.body.quotas.kinds, { GPU: 3 });
  await server.register("alice");
  const ask = (units: number) =>
    server.post("/v1/acquire", {
      agent_id: "alice",
      intents: [{ predicate: "CONSUMES", resource: gpu, units }],
      hold_ms: 10_000,
    });
  assert.equal((await ask(2)).status, 200);
  const denied = await ask(2);
  assert.deepEqual([denied.status, denied.body.error, denied.body.reason], [403, "lease_denied", "quota"]);
  assert.equal((await ask(1)).status, 200);
});

test("no event, list or log shows a token or a key", async (t) => {
  const lines: string[] = [];
  const note = (details: object, message: string) => void lines.push(`${JSON.stringify(details)} ${message}`);
  const server = await serve(t, { log: { info: note, warn: note, error: note } });
  const peer: Peer = await joinCell(t, server.address.url);
  const lease = await bindOne(server);
  await server.post(`/v1/leases/${lease.id}/renew`);
  await server.post("/v1/token-keys/rotate");
  await server.post(`/v1/leases/${lease.id}/release`);
  await peer.order("teardown");
  const shown = [
    lines.join("\n"),
    (await server.get("/v1/events?follow=false&since=0")).text,
    (await server.get("/v1/leases")).text,
    (await server.get(`/v1/leases/${lease.id}`)).text,
    (await server.get("/v1/cells")).text,
    (await server.get("/v1/token-keys")).text,
    (await server.get("/metrics")).text,
  ].join("\n");
  assert.match(shown, /lease\.binding/);
  assert.ok(!shown.includes("lht1."));
  assert.ok(!shown.includes(peer.session));
});

test("the metrics have cells, bindings, their durations, and fences", async (t) => {
  const server = await serve(t);
  await joinCell(t, server.address.url);
  await bindOne(server);
  await server.post("/v1/resources/fence", { resource: "GPU:/b", reason: "hot" });
  const text = withoutShards((await server.get("/metrics")).text);
  for (const line of [
    /^leasehold_cells\{state="READY"\} 1$/m,
    /^leasehold_cells\{state="GONE"\} 0$/m,
    /^leasehold_cell_connections 1$/m,
    /^leasehold_bindings 1$/m,
    /^leasehold_bind_seconds_count 1$/m,
    /^leasehold_teardown_seconds_count 0$/m,
    /^leasehold_fences_total 1$/m,
    /^leasehold_cell_frames_total\{direction="in",type="hello"\} 1$/m,
  ])
    assert.match(text, line);
});
