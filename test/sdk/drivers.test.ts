/** The SDK's wrappers for each driver, through a real server and a real cell: no token in sight, every end typed. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { resetSocket } from "../../src/cell/reset-socket.ts";
import type { Client } from "../../src/sdk/client.ts";
import { Denied, LeaseFailure, LeaseholdError } from "../../src/sdk/errors.ts";
import type { Hold } from "../../src/sdk/hold.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import { clientFor, serve, until } from "./harness.ts";
import { lab, startLab } from "./lab.ts";
import { service, startCell } from "./real-cell.ts";

async function startedLab(t: TestContext): Promise<Client> {
  const server = await serve(t);
  await startLab(t, server.address.url);
  return clientFor(t, server.address.url);
}

async function holdOf(t: TestContext, client: Client, resource: string, more: object = {}): Promise<Hold> {
  const hold = await client.hold(resource, { ttlMs: 60_000, ...more });
  t.after(() => hold.release());
  return hold;
}

async function failureOf(work: Promise<unknown>): Promise<LeaseholdError> {
  const error = await work.then(
    () => assert.fail("it should have failed"),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof LeaseholdError, String(error));
  return error;
}

/** Somebody else renews the lease: the token that the program has is stale, and it has not heard of it. */
async function renewElsewhere(client: Client, { lease }: Hold): Promise<void> {
  await client.call("renew_lease", { lease_id: lease.id, generation: lease.generation });
}

const utf8 = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

test("files are written, read in parts, listed and removed; a stale token is refreshed on the way", async (t) => {
  const client = await startedLab(t);
  const hold = await holdOf(t, client, lab.files, { watch: false });
  const { lease } = hold;
  await lease.file("2026").makeFolder();
  const file = lease.file("2026/may report.txt");
  await file.write("0123456789");
  assert.equal(await file.text(), "0123456789");
  assert.equal(utf8(await file.read({ offset: 2, length: 3 })), "234");
  assert.equal(utf8(await file.read({ offset: 8 })), "89");
  assert.deepEqual(await file.read({ length: 0 }), new Uint8Array());
  await renewElsewhere(client, hold);
  await file.write(new TextEncoder().encode("XY"), { offset: 1 });
  assert.equal(await text(await file.stream({ length: 4 })), "0XY3");
  await file.write(new Blob(["streamed"]).stream());
  assert.equal(await file.text(), "streamed");
  assert.deepEqual(await lease.file("2026").list(), [{ name: "may report.txt", type: "file" }]);
  await file.remove();
  const missing = await failureOf(file.read());
  assert.deepEqual([missing.code, missing.status, missing instanceof LeaseFailure], ["not_found", 404, false]);
});

test("of a range the leased bytes are read and written, and others are refused", async (t) => {
  const { lease } = await holdOf(t, await startedLab(t), lab.range);
  assert.equal(await lease.file().text(), "leased");
  await lease.file().write("AS", { offset: 2 });
  assert.equal(utf8(await lease.file().read({ offset: 1, length: 4 })), "eASe");
  assert.equal((await failureOf(lease.file().write("too long", { offset: 0 }))).code, "range_not_satisfiable");
});

test("memory is read and written by offset, and is zero for the next holder", async (t) => {
  const client = await startedLab(t);
  const hold = await holdOf(t, client, lab.memory, { watch: false });
  await hold.lease.memory.write(10, "secret");
  await renewElsewhere(client, hold);
  assert.equal(utf8(await hold.lease.memory.read(9, 8)), "\0secret\0");
  const outside = await failureOf(hold.lease.memory.read(1_020, 5));
  assert.deepEqual([outside.code, outside.retryable], ["range_not_satisfiable", false]);
  await hold.release();
  const next = await holdOf(t, client, lab.memory);
  assert.deepEqual(await next.lease.memory.read(10, 6), new Uint8Array(6));
});

test("G9: a lease that only reads is denied the writing, with the reason, as a LeaseFailure", async (t) => {
  const client = await startedLab(t);
  const hold = await client.hold({ predicate: "CONSUMES", resource: lab.memory });
  t.after(() => hold.release());
  await hold.lease.memory.read(0, 1);
  const denied = await failureOf(hold.lease.memory.write(0, "no"));
  assert.ok(denied instanceof Denied && denied instanceof LeaseFailure);
  assert.deepEqual([denied.code, denied.reason, denied.status], ["caveat_failed", "predicate", 401]);
  const reader = await client.hold({ predicate: "CONSUMES", resource: lab.tcp });
  t.after(() => reader.release());
  const closed = await failureOf(reader.lease.connect());
  assert.ok(closed instanceof Denied);
  assert.equal(closed.reason, "predicate");
});

test("connect shows the token, passes bytes both ways and outlives renewals; a revocation is a LeaseLost", async (t) => {
  const client = await startedLab(t);
  const hold = await holdOf(t, client, lab.tcp, { watch: false });
  await renewElsewhere(client, hold);
  const socket = await hold.lease.connect();
  socket.write("hello");
  assert.equal(String((await once(socket as Duplex, "data"))[0]), "hello");
  await renewElsewhere(client, hold);
  const large = "x".repeat(300_000);
  const echoed = (async () => {
    let all = "";
    for await (const chunk of (socket as Duplex).iterator({ destroyOnReturn: false })) {
      all += String(chunk);
      if (all.length === large.length) return all;
    }
    return all;
  })();
  socket.write(large);
  assert.equal(await echoed, large);
  const failed = once(socket as Duplex, "error");
  await client.call("revoke", { lease_id: hold.lease.id, reason: "maintenance" });
  const [lost] = (await failed) as [unknown];
  assert.ok(lost instanceof LeaseLost && lost instanceof LeaseFailure, String(lost));
  assert.deepEqual([lost.end, lost.said], ["lease_revoked", "maintenance"]);
  assert.equal(await failureOf(hold.lease.connect()), lost);
});

test("a connection that its program ends does not fail; one whose lease is released ends with a LeaseLost", async (t) => {
  const hold = await holdOf(t, await startedLab(t), lab.tcp);
  const socket = await hold.lease.connect();
  socket.end("last words");
  assert.equal(await text(socket), "last words");
  const other = await hold.lease.connect();
  const failed = once(other as Duplex, "error");
  await hold.release();
  const [lost] = (await failed) as [unknown];
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.equal(lost.end, "lease_released");
});

test("datagrams pass both ways and outlive renewals; a revocation is a LeaseLost", async (t) => {
  const client = await startedLab(t);
  const hold = await holdOf(t, client, lab.udp, { watch: false });
  await renewElsewhere(client, hold);
  const flow = await hold.lease.datagrams();
  const got: string[] = [];
  const reading = (async () => {
    for await (const datagram of flow) got.push(utf8(datagram));
  })();
  const passes = (datagram: string): Promise<true> =>
    until(async () => {
      await flow.send(datagram);
      return got.includes(datagram) ? true : null;
    }, `${datagram} comes back`);
  await passes("one");
  await renewElsewhere(client, hold);
  await passes("two");
  await client.call("revoke", { lease_id: hold.lease.id, reason: "maintenance" });
  const lost = await failureOf(reading);
  assert.ok(lost instanceof LeaseLost, String(lost));
  assert.equal(lost.end, "lease_revoked");
  assert.equal(await failureOf(flow.send("late")), lost);
});

test("a flow that its program closes ends its reading, and can be opened again", async (t) => {
  const hold = await holdOf(t, await startedLab(t), lab.udp);
  for (let round = 0; round < 2; round++) {
    const flow = await hold.lease.datagrams();
    await flow.send("hello");
    for await (const datagram of flow) {
      assert.equal(utf8(datagram), "hello");
      await flow.close();
    }
    assert.equal((await failureOf(flow.send("late"))).code, "closed");
  }
});

test("G9: a stream that the cell cuts before the program has heard of the end fails with the LeaseLost", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, ["GPU:/lab/a"]);
  const client = clientFor(t, server.address.url);
  // Without a stream of events the platform's own error comes first.
  const { lease } = await holdOf(t, client, "GPU:/lab/a", { watch: false });
  const response = await lease.fetch("stream");
  assert.equal(new URL(response.url).pathname, "/stream");
  const reader = response.body?.getReader();
  assert.ok(reader !== undefined);
  assert.equal(utf8((await reader.read()).value ?? new Uint8Array()), "begun\n");
  const [reading, asking] = [failureOf(reader.read()), failureOf(lease.fetch("hang"))];
  await until(() => (behind.hanging.size > 0 ? true : null), "both are under way");
  await client.call("revoke", { lease_id: lease.id, reason: "maintenance" });
  for (const lost of [await reading, await asking]) {
    assert.ok(lost instanceof LeaseLost, String(lost));
    assert.deepEqual([lost.end, lost.said], ["lease_revoked", "maintenance"]);
  }
});

test("a service that breaks off while the lease is held is the platform's error for fetch", async (t) => {
  const server = await serve(t);
  const behind = await service(t);
  await startCell(t, server.address.url, behind.url, ["GPU:/lab/a"]);
  const { lease } = await holdOf(t, clientFor(t, server.address.url), "GPU:/lab/a");
  const reader = (await lease.fetch("stream")).body?.getReader();
  assert.ok(reader !== undefined);
  await reader.read();
  const failed = assert.rejects(reader.read(), TypeError);
  for (const open of behind.streams) open.destroy();
  await failed;
  assert.equal(lease.lost, null);
});

test("G9: a connection that breaks while the lease is held is unreachable, and a service that is gone is upstream_failed", async (t) => {
  const server = await serve(t);
  const behind = await startLab(t, server.address.url);
  const { lease } = await holdOf(t, clientFor(t, server.address.url), lab.tcp);
  const socket = await lease.connect();
  socket.write("hello");
  await once(socket as Duplex, "data");
  const failed = once(socket as Duplex, "error");
  for (const open of behind.sockets) resetSocket(open);
  const [broken] = (await failed) as [unknown];
  assert.ok(broken instanceof LeaseholdError && !(broken instanceof LeaseFailure), String(broken));
  assert.deepEqual([broken.code, broken.retryable, lease.lost], ["unreachable", true, null]);
  behind.closeTcp();
  const gone = await failureOf(lease.connect());
  assert.deepEqual([gone.code, gone.status, gone.retryable], ["upstream_failed", 502, true]);
});

test("a wrapper for another driver than the resource's says what it needs", async (t) => {
  const client = await startedLab(t);
  const { lease } = await holdOf(t, client, lab.files);
  await assert.rejects(lease.connect(), /this needs tcp:/);
  await assert.rejects(lease.datagrams(), /this needs udp:/);
  const unbound = await holdOf(t, client, "FILE:/unbound");
  await assert.rejects(unbound.lease.file("a").read(), /nothing to connect to/);
});
