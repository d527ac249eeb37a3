import assert from "node:assert/strict";
import { test } from "node:test";
import { type Caveat, inspect, narrow } from "../../src/token/index.ts";
import { entry, joinCell } from "./cell-peer.ts";
import { type Body, type Client, mutates, serve, until } from "./harness.ts";
import type { WireGranted, WireLease } from "./wire-types.ts";

const file = "FILE:/src/a.ts";

interface Verified extends Body {
  readonly valid?: boolean;
  readonly tenant?: string;
  readonly lease?: WireLease;
  readonly caveats?: readonly object[];
  readonly caveat?: string;
}

const check = (client: Client, token: string | undefined, more: object = {}, options = {}) =>
  client.post<Verified>("/v1/tokens/verify", { token, ...more }, options);

function narrowed(token: string | undefined, ...caveats: readonly Caveat[]): string {
  const result = narrow(token ?? "", caveats);
  assert.ok(typeof result === "string", JSON.stringify(result));
  return result;
}

async function grantWithToken(client: Client, agent = "alice", resource = file, more: object = {}): Promise<WireLease> {
  await client.register(agent);
  const lease = await client.grant(agent, resource, { tokens: true, ...more });
  assert.match(lease.token ?? "", /^lht1\./);
  return lease;
}

test("G3: a lease acquired with tokens has one that expires with the lease, after 300 s at most", async (t) => {
  const server = await serve(t);
  const lease = await grantWithToken(server);
  const shown = inspect(lease.token ?? "");
  assert.ok("claims" in shown);
  const { keyId: _id, expiresAt, ...claims } = shown.claims;
  const { id, generation, fence, predicate } = lease;
  const named = { tenant: "default", cell: "control", resource: file, lease: id };
  assert.deepEqual(claims, { ...named, generation, fence, predicate });
  assert.equal(new Date(expiresAt).toISOString(), lease.expires_at);
  await server.register("bob");
  assert.equal((await server.grant("bob", "FILE:/b")).token, undefined);
  await server.call("PUT", "/v1/tenants/default/settings", { ttl_ms_max: 3_600_000 });
  const long = await server.grant("bob", "FILE:/c", { tokens: true, ttl_ms: 3_600_000 });
  const capped = inspect(long.token ?? "");
  assert.ok("claims" in capped && capped.claims.expiresAt <= server.service.engine.now() + 300_000);
});

test("G5: a good token verifies with its lease and caveats, and the reply does not contain it", async (t) => {
  const server = await serve(t);
  const lease = await grantWithToken(server);
  const { status, body, text } = await check(server, lease.token, { resource: file, operation: "write" });
  assert.equal(status, 200, text);
  assert.deepEqual([body.valid, body.tenant, body.lease?.id, body.caveats], [true, "default", lease.id, []]);
  assert.ok(!text.includes("lht1."));
  const expiresAt = server.service.engine.now() + 10_000;
  const token = narrowed(
    lease.token,
    { type: "operations", operations: ["read"] },
    { type: "path", path: "/src" },
    { type: "expiry", expiresAt },
  );
  const read = await check(server, token, { resource: file, operation: "read" });
  assert.equal(read.status, 200, read.text);
  assert.deepEqual(read.body.caveats, [
    { type: "operations", operations: ["read"] },
    { type: "path", path: "/src" },
    { type: "expiry", expires_at: new Date(expiresAt).toISOString() },
  ]);
});

test("G4: a caveat that does not hold, or needs a field that the request lacks, fails", async (t) => {
  const server = await serve(t);
  const { token } = await grantWithToken(server);
  const cases: readonly (readonly [Caveat, object])[] = [
    [{ type: "operations", operations: ["read"] }, { operation: "write" }],
    [{ type: "operations", operations: ["read"] }, {}],
    [{ type: "path", path: "/doc" }, { resource: file }],
    [{ type: "path", path: "/src" }, {}],
    [{ type: "expiry", expiresAt: 1 }, {}],
    [{ type: "hardware", hardware: "a100" }, {}],
    [{ type: "program", program: "/bin/true" }, {}],
    [{ type: "bytes", bytesMax: 10 }, {}],
  ];
  for (const [caveat, more] of cases) {
    const { status, body } = await check(server, narrowed(token, caveat), more);
    assert.deepEqual([status, body.error, body.caveat], [401, "caveat_failed", caveat.type], JSON.stringify(caveat));
  }
});

test("a forged or truncated token, or one for another resource, is invalid and never causes a 5xx", async (t) => {
  const server = await serve(t);
  const { token = "" } = await grantWithToken(server);
  const middle = Math.floor(token.length / 2);
  const flipped = `${token.slice(0, middle)}${token[middle] === "A" ? "B" : "A"}${token.slice(middle + 1)}`;
  for (const bad of ["x", "lht1.", token.slice(0, -1), `${token}A`, flipped, token.toUpperCase(), "lht1.AAAA"]) {
    const { status, body } = await check(server, bad);
    assert.deepEqual([status, body.error], [401, "token_invalid"], bad);
  }
  assert.equal((await check(server, token, { resource: "FILE:/src/b.ts" })).body.error, "token_invalid");
  assert.equal((await check(server, "")).body.error, "token_invalid");
  assert.equal((await check(server, "x".repeat(20_000))).body.error, "token_invalid");
  assert.equal((await server.post("/v1/tokens/verify", {})).status, 400);
});

test("G4: a token of a lease that only reads is good for read, and for no other operation, at once after a downgrade", async (t) => {
  const server = await serve(t);
  const writer = await grantWithToken(server);
  for (const operation of ["read", "write", "delete"]) {
    assert.equal((await check(server, writer.token, { operation })).status, 200, operation);
  }
  const weaker = await server.post<WireLease>(`/v1/leases/${writer.id}/downgrade`, { predicate: "CONSUMES" });
  assert.equal(weaker.status, 200, weaker.text);
  const shared = { intents: [{ predicate: "DEPENDS_ON", resource: file }] };
  const reader = await grantWithToken(server, "bob", file, shared);
  for (const token of [writer.token, weaker.body.token, reader.token]) {
    assert.equal((await check(server, token)).status, 200);
    assert.equal((await check(server, token, { operation: "read" })).status, 200);
    for (const operation of ["write", "connect", "run", "anything"]) {
      const { status, body } = await check(server, token, { operation });
      assert.deepEqual([status, body.error, body.caveat], [401, "caveat_failed", "predicate"], operation);
    }
  }
});

test("a token of a lease on a pattern is valid for what the pattern matches", async (t) => {
  const server = await serve(t);
  const { token } = await grantWithToken(server, "alice", "FILE:/src/**");
  assert.equal((await check(server, token, { resource: "FILE:/src/deep/a.ts" })).status, 200);
  assert.equal((await check(server, token, { resource: "FILE:/doc/a.md" })).body.error, "token_invalid");
  assert.equal((await check(server, token, { resource: "FILE:/**" })).body.error, "token_invalid");
});

test("G8: a heartbeat on an unbound lease returns a token for the new expiry; renewal, release and revocation invalidate the old one at once", async (t) => {
  const server = await serve(t);
  const lease = await grantWithToken(server);
  const beaten = await server.post<WireLease>(`/v1/leases/${lease.id}/heartbeat`);
  const shown = inspect(beaten.body.token ?? "");
  assert.ok("claims" in shown && shown.claims.generation === lease.generation);
  assert.equal(new Date(shown.claims.expiresAt).toISOString(), beaten.body.expires_at);
  const all = await server.post<{ leases: readonly WireLease[] }>("/v1/heartbeat", { agent_id: "alice" });
  assert.match(all.body.leases[0]?.token ?? "", /^lht1\./);
  const renewed = await server.post<WireLease>(`/v1/leases/${lease.id}/renew`);
  assert.equal((await check(server, lease.token)).body.error, "stale_token");
  assert.equal((await check(server, renewed.body.token)).status, 200);
  await server.post(`/v1/leases/${lease.id}/release`);
  const released = await check(server, renewed.body.token);
  assert.deepEqual([released.status, released.body.error], [410, "lease_released"]);
  const other = await grantWithToken(server, "bob");
  await server.post("/v1/revoke", { lease_id: other.id, reason: "over" });
  assert.deepEqual((await check(server, other.token)).body.error, "lease_revoked");
  const third = await grantWithToken(server, "carol", "FILE:/c");
  await server.post("/v1/resources/fence", { resource: "FILE:/c", reason: "hot" });
  const fenced = await check(server, third.token);
  assert.deepEqual([fenced.status, fenced.body.error], [423, "resource_fenced"]);
  await server.post("/v1/resources/reset", { resource: "FILE:/c" });
  assert.equal((await check(server, third.token)).body.error, "lease_revoked");
});

test("L3, L9: a token is not honoured past the end of its lease, nor while the lease is held", async (t) => {
  const server = await serve(t);
  const lease = await grantWithToken(server, "alice", file, { ttl_ms: 150 });
  const held = await grantWithToken(server, "bob", "FILE:/b", { ttl_ms: 2_000 });
  await server.post("/v1/agents/bob/restart");
  for (const { token } of [lease, held]) {
    await until(async () => ((await check(server, token)).status === 410 ? true : null), "it has ended");
    assert.equal((await check(server, token)).body.error, "lease_expired");
  }
  assert.equal((await server.get(`/v1/leases/${held.id}`)).body.state, "HELD");
});

test("A3: another instance makes the older one's tokens stale; L15: the giver of a transferred lease gets no token of it", async (t) => {
  const server = await serve(t);
  const lease = await grantWithToken(server);
  await server.register("alice");
  assert.equal((await check(server, lease.token)).body.error, "stale_token");
  await server.register("bob");
  const handed = await server.post<WireLease>(`/v1/leases/${lease.id}/transfer`, { to_agent_id: "bob" });
  assert.deepEqual([handed.status, handed.body.token], [200, undefined]);
});

test("only the holder's own credential gets a lease's token when it reads the lease", async (t) => {
  const server = await serve(t);
  const { agent_token } = await server.register("alice");
  const { agent_token: bobs } = await server.register("bob");
  const lease = await server.grant("alice", file, { tokens: true, request_id: "once" }, { key: agent_token });
  const shown = async (key?: string) => (await server.get<WireLease>(`/v1/leases/${lease.id}`, { key })).body.token;
  assert.equal(await shown(agent_token), lease.token);
  assert.equal(await shown(bobs), undefined);
  assert.equal(await shown(), undefined);
  assert.ok(!(await server.get("/v1/leases", { key: agent_token })).text.includes("lht1."));
  const asked = { agent_id: "alice", intents: mutates(file), tokens: true, request_id: "once" };
  const replay = await server.post<WireGranted>("/v1/acquire", asked, { key: agent_token });
  assert.equal(replay.body.leases[0]?.token, lease.token);
  const dry = await server.post(
    "/v1/acquire",
    { ...asked, intents: mutates("FILE:/d"), dry_run: true },
    { key: agent_token },
  );
  assert.ok(dry.status === 200 && !dry.text.includes("lht1."));
});

test("a waiter gets its token when it collects its grant", async (t) => {
  const server = await serve(t);
  await server.register("old");
  const first = await grantWithToken(server, "young");
  const asked = { agent_id: "old", intents: mutates(file), tokens: true };
  const waiting = await server.post<{ request_id: string }>("/v1/acquire", asked);
  assert.equal(waiting.status, 202);
  await server.post(`/v1/leases/${first.id}/release`);
  const granted = await server.get<WireGranted>(`/v1/requests/${waiting.body.request_id}?hold_ms=5000`);
  assert.equal((await check(server, granted.body.leases[0]?.token)).status, 200);
});

test("G1: tokens do not cross tenants, though leases, agents and cells have the same names", async (t) => {
  const server = await serve(t);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const options = { tenant: "acme" };
  const lease = await grantWithToken(server);
  assert.equal((await check(server, lease.token, {}, options)).body.error, "token_invalid");
  const inventory = [entry("GPU:/a", { hardware: ["a100"] })];
  await joinCell(t, server.address.url, { inventory });
  await joinCell(t, server.address.url, { inventory, ...options });
  await server.register("alice", options);
  const bound = await server.grant("alice", "GPU:/a", { hold_ms: 10_000 }, options);
  assert.equal((await check(server, bound.token, {}, options)).status, 200);
  assert.equal((await check(server, bound.token)).body.error, "token_invalid");
  // Caveats on the cell's inventory can be checked here too.
  const here = narrowed(bound.token, { type: "hardware", hardware: "a100" });
  assert.equal((await check(server, here, {}, options)).status, 200);
});
