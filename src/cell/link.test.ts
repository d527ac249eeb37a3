import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, scratch, startHttp } from "./testing/test-cell.ts";
import { linkCell, presentKey, startTestServer, wireLease } from "./testing/test-server.ts";

async function startService(): Promise<string> {
  const { address } = await startHttp((_request, response) => void response.end("served"));
  return `http://${address}`;
}

const ask = async (coordinate: string | undefined, token: string | undefined) =>
  (await fetch(coordinate ?? "", { headers: { authorization: `Bearer ${token}` } })).status;

const api = async () => [{ resource: "API:/a", driver: "http", options: { target: await startService() } }];

test("a cell says hello with its key and inventory, binds on command, and accepts tokens of the keys it was given", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  const hello = await talk.welcome();
  assert.equal(talk.request.headers.authorization, "Bearer lhk_test");
  assert.deepEqual(hello.bindings, []);
  assert.deepEqual(hello.inventory, [
    { resource: "API:/a", driver: "http", capacity: null, hardware: [], ready: true, fault: null, fenced: null },
  ]);
  const done = await talk.tell({ op: "bind", lease: wireLease("API:/a") });
  assert(done.ok, JSON.stringify(done));
  assert.equal(await ask(done.coordinate, done.token), 200);
});

test("G8: an update with the next generation makes the older token stale; an older one is refused", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  const lease = wireLease("API:/a");
  const bound = await talk.tell({ op: "bind", lease });
  const renewed = await talk.tell({ op: "update", lease: { ...lease, generation: 2, fence: lease.fence + 1_000 } });
  assert(bound.ok && renewed.ok);
  assert.equal(await ask(bound.coordinate, bound.token), 401);
  assert.equal(await ask(bound.coordinate, renewed.token), 200);
  const late = await talk.tell({ op: "update", lease });
  assert.deepEqual([late.ok, "code" in late && late.code], [false, "stale_generation"]);
});

test("an update of the same generation may bring the end nearer, as a grant after a slow bind does", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  const lease = wireLease("API:/a");
  await talk.tell({ op: "bind", lease });
  const updated = await talk.tell({ op: "update", lease: { ...lease, expires_at: Date.now() + 1_000 } });
  assert(updated.ok);
  const { code, failure } = await talk.next("ended");
  assert.deepEqual([code, failure], ["lease_expired", null]);
});

test("what a command cannot do is answered with its code, and the next one is taken", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  const unknown = await talk.tell({ op: "bind", lease: wireLease("API:/none") });
  assert.deepEqual([unknown.ok, "code" in unknown && unknown.code], [false, "resource_unknown"]);
  const over = await talk.tell({ op: "bind", lease: wireLease("API:/a", -1) });
  assert.deepEqual([over.ok, "code" in over && over.code], [false, "lease_expired"]);
  assert.equal((await talk.tell({ op: "teardown", lease_id: "never-was", code: "lease_revoked" })).ok, true);
  const probed = await talk.tell({ op: "probe", resource: "API:/a" });
  assert(probed.ok && probed.clean === true);
});

test("G11: when the link breaks the cell goes on, comes back with what it has, and ends leases by its own clock", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const first = await server.conversation(0);
  await first.welcome();
  const [long, short] = [wireLease("API:/a"), wireLease("API:/a", 3_000)];
  const bound = await first.tell({ op: "bind", lease: long });
  await first.tell({ op: "bind", lease: short });
  assert(bound.ok);
  first.socket.terminate();
  assert.equal(await ask(bound.coordinate, bound.token), 200);
  const second = await server.conversation(1);
  const hello = await second.next("hello");
  assert.notEqual(hello.session, first.of("hello")[0]?.session);
  assert.deepEqual(
    hello.bindings.map(({ lease_id: id, ended_as: end }) => [id, end]),
    [
      [long.id, null],
      [short.id, null],
    ],
  );
  // Never welcomed: ends in the meantime are reported on the next connection.
  await eventually(() => Date.now() > short.expires_at + 300);
  second.socket.terminate();
  const third = await server.conversation(2);
  const { bindings } = await third.welcome();
  assert.deepEqual(
    bindings.map(({ lease_id: id }) => id),
    [long.id],
  );
  const ended = await third.next("ended");
  assert.deepEqual([ended.lease_id, ended.code, ended.failure], [short.id, "lease_expired", null]);
  assert.equal(await ask(bound.coordinate, bound.token), 200);
});

test("an end that was not acknowledged is reported again, and one that was is not", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  talk.answerBeats();
  await talk.tell({ op: "bind", lease: wireLease("API:/a", 1_000) });
  const { seq } = await talk.next("ended", 2);
  talk.say({ type: "noted", seq, now: Date.now() });
  await talk.next("heartbeat", talk.of("heartbeat").length + 2);
  const reported = talk.of("ended").length;
  await talk.next("heartbeat", talk.of("heartbeat").length + 5);
  assert.equal(talk.of("ended").length, reported);
});

test("G7: a teardown that fails is answered so, and the fence is reported at once with the inventory", async () => {
  const server = await startTestServer();
  const resource = {
    resource: "X:/a",
    driver: "exec",
    options: { bind: ["echo", "there"], teardown: ["false"], probe: ["true"], reset: ["true"] },
  };
  linkCell(server.url, [resource]);
  const talk = await server.conversation(0);
  await talk.welcome();
  const lease = wireLease("X:/a");
  const bound = await talk.tell({ op: "bind", lease });
  assert(bound.ok && bound.coordinate === "there");
  const failed = await talk.tell({ op: "teardown", lease_id: lease.id, code: "lease_released" });
  assert.deepEqual([failed.ok, "code" in failed && failed.code], [false, "teardown_failed"]);
  await eventually(() =>
    talk.of("heartbeat").some(({ inventory }) => inventory?.[0]?.fenced !== null && inventory !== null),
  );
  assert.equal((await talk.tell({ op: "bind", lease: wireLease("X:/a") })).ok, false);
  const reset = await talk.tell({ op: "reset", resource: "X:/a" });
  assert(reset.ok && reset.clean === true);
  await eventually(
    () => talk.of("heartbeat").findLast(({ inventory }) => inventory !== null)?.inventory?.[0]?.fenced === null,
  );
});

test("a resource that could not be opened is tried again, and reported as ready once it is open", async () => {
  const server = await startTestServer();
  const folder = join(scratch, "not-yet");
  linkCell(server.url, [{ resource: "FILE:/a", driver: "files", options: { folder } }]);
  const talk = await server.conversation(0);
  const { inventory } = await talk.welcome();
  assert.equal(inventory[0]?.ready, false);
  assert.match(inventory[0]?.fault ?? "", /cannot be used/);
  const { mkdirSync } = await import("node:fs");
  mkdirSync(folder);
  await eventually(() => talk.of("heartbeat").some(({ inventory: reported }) => reported?.[0]?.ready === true));
});

test("keys are taken over while it runs: what the old ones have made is void when they are gone", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  const lease = wireLease("API:/a");
  const bound = await talk.tell({ op: "bind", lease });
  assert(bound.ok);
  const next = { id: "k2", key: Buffer.alloc(32, 8).toString("base64url"), retires_at: null };
  talk.say({ type: "keys", keys: [{ ...presentKey, retires_at: Date.now() + 60_000 }, next] });
  const updated = await talk.tell({ op: "update", lease });
  assert(updated.ok);
  assert.deepEqual([await ask(bound.coordinate, bound.token), await ask(bound.coordinate, updated.token)], [200, 200]);
  talk.say({ type: "keys", keys: [next] });
  await talk.tell({ op: "probe", resource: "API:/a" });
  assert.deepEqual([await ask(bound.coordinate, bound.token), await ask(bound.coordinate, updated.token)], [401, 200]);
});

test("L7: the control plane's time counts, also where it is ahead of the cell's own", async () => {
  const server = await startTestServer();
  linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome({ now: Date.now() + 3_600_000 });
  const done = await talk.tell({ op: "bind", lease: wireLease("API:/a", 60_000) });
  assert.deepEqual([done.ok, "code" in done && done.code], [false, "lease_expired"]);
});

test("a server that goes silent, or talks nonsense, is disconnected, and connected to again", async () => {
  const server = await startTestServer();
  const { troubles } = linkCell(server.url, await api());
  const silent = await server.conversation(0);
  await silent.welcome({ alive_ms: 150 });
  const nonsense = await server.conversation(1);
  await nonsense.welcome();
  nonsense.socket.send('{"type":"do","seq":1,"op":"format"}');
  const hasty = await server.conversation(2);
  hasty.say({ type: "beat", seq: 1, now: 0 });
  await (await server.conversation(3)).welcome();
  assert.match(troubles.join("\n"), /not answered any heartbeat\n.*another language.*\n.*before its welcome/);
});

test("a key that is refused ends the cell at its start, and not when it has been taken before", async () => {
  const refusing = await startTestServer({ status: 401, body: { error: "unauthorized", detail: "No such key." } });
  const { ended } = linkCell(refusing.url, await api());
  assert.deepEqual(await ended, { type: "refused", reason: "it refuses the key: No such key.", isReplaced: false });
  const server = await startTestServer();
  linkCell(server.url, await api());
  const first = await server.conversation(0);
  await first.welcome();
  first.say({ type: "refused", code: "forbidden", message: "The key is gone." });
  first.socket.close(4001);
  await (await server.conversation(1)).next("hello");
});

test("a cell whose place another process has taken does not come back", async () => {
  const server = await startTestServer();
  const { ended } = linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome();
  talk.say({ type: "refused", code: "replaced", message: "A newer session is here." });
  talk.socket.close(4004);
  const end = await ended;
  assert(end.type === "refused" && end.isReplaced);
  assert.match(end.reason, /newer session/);
});

test("a cell that leaves says that it takes nothing more, ends what it has, and goes when that was noted", async () => {
  const server = await startTestServer();
  const { link, ended } = linkCell(server.url, await api());
  const talk = await server.conversation(0);
  await talk.welcome({ heartbeat_ms: 60_000 });
  const lease = wireLease("API:/a");
  const bound = await talk.tell({ op: "bind", lease });
  assert(bound.ok);
  const left = link.leave("SIGTERM");
  const report = await talk.next("ended");
  assert.deepEqual([report.lease_id, report.code, report.failure], [lease.id, "lease_revoked", null]);
  assert.equal(talk.of("heartbeat").findLast(({ inventory }) => inventory !== null)?.inventory?.[0]?.ready, false);
  assert.equal((await talk.tell({ op: "bind", lease: wireLease("API:/a") })).ok, false);
  assert.equal(talk.of("leaving").length, 0);
  talk.say({ type: "noted", seq: report.seq, now: Date.now() });
  await left;
  assert.deepEqual(talk.of("leaving"), [{ type: "leaving", reason: "SIGTERM" }]);
  assert.deepEqual(await ended, { type: "left" });
});
