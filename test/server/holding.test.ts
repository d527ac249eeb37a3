import assert from "node:assert/strict";
import { test } from "node:test";
import { mutates, pause, serve, until } from "./harness.ts";
import type { WireGranted, WireLease } from "./wire-types.ts";

test("L4: a heartbeat extends a live lease, and an ended one is refused with the code of its end", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  const lease = await grant("alice", "FILE:/a", { ttl_ms: 30_000 });
  await pause(30);
  const beat = await post<WireLease>(`/v1/leases/${lease.id}/heartbeat`, { activity: true });
  assert.equal(beat.status, 200);
  assert.ok(beat.body.expires_at > lease.expires_at);
  assert.equal(beat.body.fence, lease.fence);

  await post(`/v1/leases/${lease.id}/release`);
  const released = await post(`/v1/leases/${lease.id}/heartbeat`);
  assert.deepEqual([released.status, released.body.error], [410, "lease_released"]);
  const short = await grant("alice", "FILE:/b", { ttl_ms: 100 });
  await pause(130);
  assert.equal((await post(`/v1/leases/${short.id}/heartbeat`)).body.error, "lease_expired");
  const taken = await grant("alice", "FILE:/c");
  await post("/v1/revoke", { lease_id: taken.id, reason: "needed elsewhere" });
  assert.equal((await post(`/v1/leases/${taken.id}/heartbeat`)).body.error, "lease_revoked");
  const never = await post("/v1/leases/lse_never/heartbeat");
  assert.deepEqual([never.status, never.body.error], [404, "lease_unknown"]);
});

test("L5: releasing is idempotent, by either route, and after the expiry too", async (t) => {
  const { register, grant, post, call } = await serve(t);
  await register("alice");
  const lease = await grant("alice", "FILE:/a");
  for (let times = 0; times < 2; times++) {
    const { status, body } = await post(`/v1/leases/${lease.id}/release`, { version: "v2" });
    assert.deepEqual([status, body], [200, { id: lease.id, state: "RELEASED" }]);
  }
  assert.equal((await call("DELETE", `/v1/leases/${lease.id}`)).body.state, "RELEASED");
  const short = await grant("alice", "FILE:/b", { ttl_ms: 100 });
  await pause(130);
  const late = await call("DELETE", `/v1/leases/${short.id}?version=v3`);
  assert.deepEqual([late.status, late.body], [200, { id: short.id, state: "EXPIRED" }]);
});

test("an agent extends and releases all its leases at once, and the reply lists those it has lost", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  await register("bob");
  const kept = await grant("alice", "FILE:/a");
  const gone = await grant("alice", "FILE:/b");
  const others = await grant("bob", "FILE:/c");
  await post(`/v1/leases/${gone.id}/release`);
  const all = await post<{ leases: readonly WireLease[]; lost: unknown[] }>("/v1/heartbeat", { agent_id: "alice" });
  assert.deepEqual([all.body.leases.map(({ id }) => id), all.body.lost], [[kept.id], []]);
  const named = await post("/v1/heartbeat", {
    agent_id: "alice",
    lease_ids: [kept.id, gone.id, others.id, "lse_never"],
  });
  assert.deepEqual(named.body.lost, [
    { id: gone.id, state: "RELEASED" },
    { id: others.id, state: "UNKNOWN" },
    { id: "lse_never", state: "UNKNOWN" },
  ]);
  const released = await post("/v1/release", { agent_id: "alice", versions: { [kept.id]: "v2" } });
  assert.deepEqual(released.body, { leases: [{ id: kept.id, state: "RELEASED" }] });
});

test("L11: a renewal has the next generation and a new fence, and an old generation is refused", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  const lease = await grant("alice", "FILE:/a");
  const renewed = await post<WireLease>(`/v1/leases/${lease.id}/renew`, { generation: 1 });
  assert.equal(renewed.body.generation, 2);
  assert.ok(renewed.body.fence > lease.fence);
  const stale = await post(`/v1/leases/${lease.id}/renew`, { generation: 1 });
  assert.deepEqual([stale.status, stale.body.error, stale.body.generation], [409, "stale_generation", 2]);
});

test("L15: a lease can be transferred to another agent and downgraded", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  await register("bob");
  const lease = await grant("alice", "FILE:/a");
  const handed = await post<WireLease>(`/v1/leases/${lease.id}/transfer`, { to_agent_id: "bob" });
  assert.deepEqual([handed.body.id, handed.body.agent_id], [lease.id, "bob"]);
  assert.ok(handed.body.fence > lease.fence);
  const weaker = await post<WireLease>(`/v1/leases/${lease.id}/downgrade`, { predicate: "CONSUMES" });
  assert.equal(weaker.body.predicate, "CONSUMES");
  const stronger = await post(`/v1/leases/${lease.id}/downgrade`, { predicate: "MUTATES" });
  assert.deepEqual([stronger.status, stronger.body.error], [409, "not_weaker"]);
  const nobody = await post(`/v1/leases/${lease.id}/transfer`, { to_agent_id: "nobody" });
  assert.equal(nobody.body.error, "agent_unknown");
});

test("L14: an operator revokes one lease, all of an agent, or all under a prefix", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  await register("bob");
  const one = await grant("alice", "FILE:/x");
  await grant("alice", "FILE:/src/a");
  await grant("bob", "FILE:/src/b");
  await grant("bob", "FILE:/doc");
  assert.deepEqual((await post("/v1/revoke", { lease_id: one.id, reason: "r" })).body, { revoked: 1 });
  assert.deepEqual((await post("/v1/revoke", { lease_id: one.id, reason: "r" })).body, { revoked: 0 });
  assert.deepEqual((await post("/v1/revoke", { resource_prefix: "FILE:/src", reason: "r" })).body, { revoked: 2 });
  assert.deepEqual((await post("/v1/revoke", { agent_id: "bob", reason: "r" })).body, { revoked: 1 });
  const two = await post("/v1/revoke", { agent_id: "bob", lease_id: one.id, reason: "r" });
  assert.deepEqual([two.status, two.body.error], [400, "invalid_request"]);
});

test("L8: VERIFY_ALL returns the state of each lease: live, ended or unknown", async (t) => {
  const { register, grant, post } = await serve(t);
  await register("alice");
  const live = await grant("alice", "FILE:/a");
  const released = await grant("alice", "FILE:/b");
  const expired = await grant("alice", "FILE:/c", { ttl_ms: 100 });
  await post(`/v1/leases/${released.id}/release`);
  await pause(130);
  const ids = [live.id, released.id, expired.id, "lse_never"];
  const { body } = await post<{ now: string; leases: readonly { id: string; state: string; fence?: number }[] }>(
    "/v1/agents/alice/verify-all",
    { lease_ids: ids },
  );
  assert.deepEqual(
    Object.fromEntries(body.leases.map(({ id, state }) => [id, state])),
    Object.fromEntries(ids.map((id, index) => [id, ["ACTIVE", "RELEASED", "EXPIRED", "UNKNOWN"][index]])),
  );
  assert.ok(!Number.isNaN(Date.parse(body.now)));
  const all = await post<{ leases: readonly { id: string }[] }>("/v1/agents/alice/verify-all");
  assert.deepEqual(
    all.body.leases.map(({ id }) => id),
    [live.id],
  );
});

test("L9: a lease that a restarting agent misses is HELD, and revived after VERIFY_ALL", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("alice");
  const lease = await grant("alice", "FILE:/a", { ttl_ms: 2_000 });
  assert.equal((await post("/v1/agents/alice/restart")).body.state, "DIE_RESTART");
  await until(
    async () => ((await get(`/v1/leases/${lease.id}`)).body.state === "HELD" ? true : null),
    "its time is up, and it is held",
  );
  const early = await post(`/v1/leases/${lease.id}/heartbeat`);
  assert.deepEqual([early.status, early.body.error], [409, "verify_required"]);
  await post("/v1/agents/alice/verify-all");
  assert.equal((await post(`/v1/leases/${lease.id}/heartbeat`)).body.state, "ACTIVE");
});

test("L16: a lease can be read while it is live and after its end; leases are listed by overlap", async (t) => {
  const { register, grant, post, get } = await serve(t);
  await register("alice");
  await register("bob");
  const file = await grant("alice", "FILE:/src/a.ts");
  const folder = await grant("bob", "FILE:/doc/**");
  const ended = await grant("bob", "FILE:/src/b.ts");
  await post(`/v1/leases/${ended.id}/release`);
  const idsAt = async (query: string) =>
    (await get<{ leases: readonly WireLease[] }>(`/v1/leases?${query}`)).body.leases.map(({ id }) => id).toSorted();
  assert.deepEqual(await idsAt(""), [file.id, folder.id].toSorted());
  assert.deepEqual(await idsAt("resource=FILE:/src/**"), [file.id]);
  assert.deepEqual(await idsAt("resource=FILE:/doc/deep/x.md"), [folder.id]);
  assert.deepEqual(await idsAt("resource=FILE:/**&agent_id=bob"), [folder.id]);
  assert.deepEqual(await idsAt("agent_id=nobody"), []);
  assert.deepEqual(await idsAt("state=HELD"), []);
  assert.deepEqual(await idsAt("state=RELEASED"), [ended.id]);
  assert.deepEqual(await idsAt("state=RELEASED&resource=FILE:/src/*"), [ended.id]);
  assert.deepEqual(await idsAt("state=RELEASED&agent_id=alice"), []);
  assert.equal((await get(`/v1/leases/${ended.id}`)).body.state, "RELEASED");
  assert.equal((await get("/v1/leases/lse_never")).body.error, "lease_unknown");
  const bad = await get("/v1/leases?resource=nonsense");
  assert.deepEqual([bad.status, bad.body.error, bad.body.field], [400, "invalid_resource", "resource"]);
});

test("lists have pages, with every item once, live and ended ones alike", async (t) => {
  const { register, post, get } = await serve(t);
  await register("alice");
  const resources = Array.from({ length: 25 }, (_, index) => `FILE:/${index}`);
  const { body } = await post<WireGranted>("/v1/acquire", { agent_id: "alice", intents: mutates(...resources) });
  const collect = async (query: string): Promise<readonly string[]> => {
    const found: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: { leases: readonly WireLease[]; next_cursor: string | null } = (
        await get<{ leases: readonly WireLease[]; next_cursor: string | null }>(
          `/v1/leases?${query}&limit=7&cursor=${cursor}`,
        )
      ).body;
      assert.ok(page.leases.length <= 7);
      found.push(...page.leases.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    return found;
  };
  const ids = body.leases.map(({ id }) => id).toSorted();
  assert.deepEqual((await collect("")).toSorted(), ids);
  await post("/v1/release", { agent_id: "alice" });
  assert.deepEqual((await collect("state=RELEASED")).toSorted(), ids);
  const foreign = await get(`/v1/leases?cursor=${Buffer.from("agents\nx").toString("base64url")}`);
  assert.deepEqual([foreign.status, foreign.body.field], [400, "cursor"]);
});
