/** The SDK over TLS: the server, its stream, heartbeats from a thread, and every kind of gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { createClient } from "../../src/sdk/client.ts";
import type { LeaseholdError } from "../../src/sdk/errors.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import { tlsFolder } from "../server/tls-client.ts";
import { clientFor, serve, until } from "./harness.ts";
import { lab, startLab } from "./lab.ts";

test("calls, many at once on the stream, and events go over TLS with the CA that is given", async (t) => {
  const { authority, server: files } = tlsFolder(t);
  const server = await serve(t, files);
  const tls = { ca: authority.cert };
  for (const transport of ["http", "stream"] as const) {
    const client = clientFor(t, server.address.url, { tls, transport });
    const leases = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        client.withLease(`FILE:/${transport}/${n}`, ({ leases }) => leases[0]?.resource),
      ),
    );
    assert.equal(new Set(leases).size, 20);
  }
  const client = clientFor(t, server.address.url, { tls });
  const stop = new AbortController();
  const opened = Promise.withResolvers<void>();
  const events = client.events({ signal: stop.signal, onOpen: opened.resolve });
  const first = events.next();
  await opened.promise;
  await client.withLease("FILE:/seen", () => undefined);
  assert.match(String((await first).value?.type), /^(agent|lease)\./);
  stop.abort();
  await first;
});

test("a server that the given CA does not vouch for is not spoken to", async (t) => {
  const server = await serve(t, tlsFolder(t).server);
  const client = clientFor(t, server.address.url, { tls: { ca: tlsFolder(t).authority.cert }, retries: 0 });
  await assert.rejects(client.call("list_leases", {}), (error: LeaseholdError) => error.code === "unreachable");
});

test("the CA is found in the file that LEASEHOLD_CA names", async (t) => {
  const { server: files, files: all } = tlsFolder(t);
  const server = await serve(t, files);
  process.env["LEASEHOLD_CA"] = all.tlsCa;
  t.after(() => delete process.env["LEASEHOLD_CA"]);
  await clientFor(t, server.address.url).call("list_leases", {});
});

test("a worker's heartbeats, from their own thread, go over TLS", async (t) => {
  const { authority, server: files } = tlsFolder(t);
  const server = await serve(t, files);
  const client = clientFor(t, server.address.url, { tls: { ca: authority.cert } });
  const worker = client.worker({
    workerId: "worker.tls-1",
    types: ["build"],
    handler: async ({ task_id: id }) => {
      const endOf = async () =>
        (await client.call("list_leases", { resource: `TASK:/${id}` })).leases[0]?.expires_at ?? "";
      const before = await endOf();
      await until(async () => ((await endOf()) > before ? true : null), "a heartbeat has extended the lease");
      return { text: "done" };
    },
  });
  t.after(() => worker.drain());
  const { task_id: id } = await client.call("create_task", {
    task_type: "build",
    principal_ai: "planner",
    lease_duration_ms: 3_000,
  });
  await until(
    async () => ((await client.call("get_task", { task_id: id })).status === "succeeded" ? true : null),
    "done",
  );
});

test("S5, M10: a key or a token is not sent over plain http to another machine, unless that is accepted", async () => {
  const url = "http://leases.example.com:7117";
  assert.throws(() => createClient({ url, key: "lhk_x" }), /neither https nor on this machine.*LEASEHOLD_INSECURE=1/);
  const client = createClient({ url, retries: 0 });
  await assert.rejects(client.call("list_leases", {}, { token: "lha1.x" }), /neither https nor on this machine/);
  await client.close();
  createClient({ url, key: "lhk_x", insecure: true });
  createClient({ url: "https://leases.example.com", key: "lhk_x" });
  createClient({ url: "http://127.0.0.1:7117", key: "lhk_x" });
});

async function secureLab(t: TestContext) {
  const { authority, files, server: own } = tlsFolder(t);
  const server = await serve(t, { ...own, tlsCa: files.tlsCa, tlsCellNames: true });
  const { cert, key } = authority.issue({ name: "lab-2" });
  const settings = { tls: { cert: files.tlsCert, key: files.tlsKey } };
  await startLab(t, server.address.url, { settings, tls: { ca: authority.cert, cert, key } });
  return clientFor(t, server.address.url, { tls: { ca: authority.cert } });
}

test("M10: a cell links over mTLS, and each of its gateways speaks TLS to the SDK's wrappers", async (t) => {
  const client = await secureLab(t);
  await client.withLease([lab.files, lab.memory, lab.tcp, lab.udp], async ({ leaseOf: of }) => {
    assert.match(of(lab.files).coordinate ?? "", /^https:\/\/127\.0\.0\.1:\d+$/);
    assert.match(of(lab.tcp).coordinate ?? "", /^tls:\/\//);
    assert.match(of(lab.udp).coordinate ?? "", /^udps:\/\//);
    await of(lab.files).file("a.txt").write("over TLS");
    assert.equal(await of(lab.files).file("a.txt").text(), "over TLS");
    await of(lab.memory).memory.write(0, "x");
    const socket = await of(lab.tcp).connect();
    socket.write("hello");
    assert.equal(String((await once(socket as unknown as Duplex, "data"))[0]), "hello");
    socket.end();
    const flow = await of(lab.udp).datagrams();
    await flow.send("ping");
    for await (const datagram of flow) {
      assert.equal(new TextDecoder().decode(datagram), "ping");
      await flow.close();
    }
  });
});

test("G6: a connection through a TLS gateway is cut when its lease is revoked", async (t) => {
  const client = await secureLab(t);
  const hold = await client.hold(lab.tcp, { ttlMs: 60_000 });
  const socket = await hold.lease.connect();
  const failed = new Promise<Error>((resolve) => socket.on("error", resolve));
  await client.call("revoke", { lease_id: hold.lease.id, reason: "over" });
  assert.ok((await failed) instanceof LeaseLost);
});

test("M6: what only pretends to be the owner's server is not sent the token", async (t) => {
  const { mkdtempSync, rmSync, writeFileSync, mkdirSync } = await import("node:fs");
  const state = mkdtempSync("/tmp/leasehold-fake-");
  process.env["LEASEHOLD_STATE"] = state;
  t.after(() => {
    delete process.env["LEASEHOLD_STATE"];
    rmSync(state, { recursive: true, force: true });
  });
  const seen: (string | undefined)[] = [];
  const fake = createServer(({ headers }, response) => {
    seen.push(headers.authorization);
    response.setHeader("leasehold-proof", "guessed").end("{}");
  });
  await new Promise<void>((done) => fake.listen(0, "127.0.0.1", done));
  t.after(() => fake.close());
  const { port } = fake.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  mkdirSync(`${state}/owner`, { recursive: true });
  writeFileSync(`${state}/owner/127.0.0.1-${port}.json`, JSON.stringify({ url, token: "lho1.secret", pid: 1 }), {
    mode: 0o600,
  });
  const client = clientFor(t, url, { retries: 0 });
  await assert.rejects(client.call("list_leases", {}), /is not the server that wrote .*, and was sent no credential/);
  assert.deepEqual(seen, [undefined]);
});

test("S5: the SDK finds the token of a server that is its owner's alone, also one that starts later", async (t) => {
  const { mkdtempSync, rmSync } = await import("node:fs");
  const state = mkdtempSync("/tmp/leasehold-owned-");
  process.env["LEASEHOLD_STATE"] = state;
  t.after(() => {
    delete process.env["LEASEHOLD_STATE"];
    rmSync(state, { recursive: true, force: true });
  });
  const open = await serve(t);
  const { port } = open.address;
  const early = clientFor(t, open.address.url);
  await early.call("list_leases", {});
  await open.close();
  await serve(t, { port, ownerOnly: true });
  await early.call("list_leases", {});
  await clientFor(t, `http://localhost:${port}`).withLease("FILE:/mine", () => undefined);
});
