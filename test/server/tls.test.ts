import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { WebSocket } from "ws";
import { startServer } from "../../src/server/start.ts";
import { testAuthority } from "../../src/trust/testing/certificates.ts";
import { serve, until } from "./harness.ts";
import { keptLog, secureGet, tlsFolder } from "./tls-client.ts";

test("S5, M10: a server beyond loopback without TLS, and without a proxy that does it, does not start", async () => {
  await assert.rejects(startServer({ host: "0.0.0.0", port: 0, store: "memory" }), (error: Error) => {
    assert.equal(error.name, "ConfigProblem");
    return /^0\.0\.0\.0 is not loopback, and keys would be readable on the way: give --tls-cert/.test(error.message);
  });
});

test("S5: HTTPS and WSS on one listener, TLS 1.3 preferred and 1.2 the least", async (t) => {
  const { authority, server } = tlsFolder(t);
  const { address } = await serve(t, server);
  assert.match(address.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  const { status, protocol } = await secureGet(address.url, "/healthz", { ca: authority.cert });
  assert.deepEqual([status, protocol], [200, "TLSv1.3"]);
  const older = await secureGet(address.url, "/healthz", { ca: authority.cert, maxVersion: "TLSv1.2" });
  assert.equal(older.protocol, "TLSv1.2");
  const tooOld = {
    ca: authority.cert,
    minVersion: "TLSv1",
    maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0",
  } as const;
  await assert.rejects(secureGet(address.url, "/healthz", tooOld));
  await assert.rejects(secureGet(address.url, "/healthz", {}), "another CA does not vouch for it");

  const socket = new WebSocket(`${address.url.replace("http", "ws")}/v1/stream`, { ca: authority.cert });
  await once(socket, "open");
  socket.send('{"id":1,"op":"list_leases","input":{}}');
  const [answer] = await once(socket, "message");
  assert.match(String(answer), /"status":200/);
  socket.close();
});

test("S5: TLS files that cannot be used are refused at the start, in one line that names the file", async (t) => {
  const { authority, folder, files, put, install } = tlsFolder(t);
  const day = 86_400_000;
  const now = Date.now();
  const good = authority.server();
  const cases: readonly (readonly [prepare: () => void, said: RegExp])[] = [
    [() => put(files.tlsKey, authority.server().key), /key\.pem does not belong to the certificate in .*cert\.pem$/],
    [() => put(files.tlsKey, "no key"), /key\.pem is not a private key in PEM/],
    [() => put(files.tlsCert, "no certificate"), /cert\.pem does not hold a certificate in PEM$/],
    [
      () => install(authority.server({ from: new Date(now - 3 * day), until: new Date(now - day) })),
      /cert\.pem has expired on \d{4}-\d\d-\d\d; renew it$/,
    ],
    [
      () => install(authority.server({ from: new Date(now + day), until: new Date(now + 3 * day) })),
      /cert\.pem is not valid before \d{4}-\d\d-\d\d; is the clock right\?$/,
    ],
  ];
  const start = (more: object = {}) =>
    startServer({ port: 0, store: "memory", tlsCert: files.tlsCert, tlsKey: files.tlsKey, ...more });
  for (const [prepare, said] of cases) {
    install(good);
    prepare();
    await assert.rejects(start(), (error: Error) => error.name === "TrustProblem" && said.test(error.message));
  }
  install(good);
  await assert.rejects(start({ tlsCert: `${folder}/none.pem` }), /certificate .*none\.pem cannot be read: ENOENT$/);
  await assert.rejects(start({ tlsCa: files.tlsKey }), /key\.pem does not hold a certificate in PEM$/);
  await assert.rejects(start({ tlsKey: null }), /^ConfigProblem: --tls-cert is given without --tls-key; give both$/);
  await assert.rejects(start({ tlsCellNames: true }), /--tls-cell-names needs --tls-ca$/);
});

test("S5: a changed certificate is used for new connections, and open ones stay", async (t) => {
  const { authority, server, files, install, put } = tlsFolder(t);
  const log = keptLog();
  const { address } = await serve(t, { ...server, tlsReloadMs: 20, log });
  const ca = authority.cert;
  const agent = new Agent({ ca, keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const first = await secureGet(address.url, "/healthz", { agent });

  const next = authority.server();
  const { serialNumber } = new X509Certificate(next.cert);
  // Half of the change: the new certificate does not go with the old key.
  put(files.tlsCert, next.cert);
  const kept = (): number =>
    log.messages.filter((message) => /the certificate before stays in use/.test(message)).length;
  await until(() => (kept() === 1 ? true : null), "the certificate without its key is noted");
  assert.equal((await secureGet(address.url, "/healthz", { ca })).serial, first.serial);
  // A file that is being written.
  writeFileSync(files.tlsKey, next.key.slice(0, 40));
  await until(() => (kept() === 2 ? true : null), "the torn key is noted");
  assert.equal((await secureGet(address.url, "/healthz", { ca })).serial, first.serial);

  install(next);
  const isNew = async () => ((await secureGet(address.url, "/healthz", { ca })).serial === serialNumber ? true : null);
  await until(isNew, "new connections get the new certificate");
  assert.equal((await secureGet(address.url, "/healthz", { agent })).serial, first.serial, "its connection stayed");
});

test("S5: a certificate that ends within two weeks is noted when the server starts", async (t) => {
  const { authority, server, install } = tlsFolder(t);
  install(authority.server({ until: new Date(Date.now() + 86_400_000) }));
  const log = keptLog();
  await serve(t, { ...server, log });
  assert.ok(log.messages.some((message) => /the TLS certificate ends soon; renew it/.test(message)));
});

test("M10: with a client CA a cell needs its certificate; others do not, but a wrong one is not let in", async (t) => {
  const { authority, server, files } = tlsFolder(t);
  const { address } = await serve(t, { ...server, tlsCa: files.tlsCa });
  const ca = authority.cert;
  assert.equal((await secureGet(address.url, "/v1/leases", { ca })).status, 200);
  const { cert, key } = authority.issue({ name: "lab-1" });
  assert.equal((await secureGet(address.url, "/v1/leases", { ca, cert, key })).status, 200);
  const strange = testAuthority("Another CA").issue({ name: "lab-1" });
  await assert.rejects(secureGet(address.url, "/v1/leases", { ca, cert: strange.cert, key: strange.key }));

  const without = await cellAnswer(address.url, { ca });
  assert.deepEqual([without.status, without.error], [403, "certificate_required"]);
  assert.equal((await cellAnswer(address.url, { ca, cert, key })).status, 101);
});

test("M10: with --tls-cell-names a cell is only what its certificate names", async (t) => {
  const { authority, server, files } = tlsFolder(t);
  const { address } = await serve(t, { ...server, tlsCa: files.tlsCa, tlsCellNames: true });
  const ca = authority.cert;
  const byCommonName = authority.issue({ name: "lab-1" });
  const byAlternative = authority.issue({ name: "machine", alt: ["lab-1"] });
  for (const { cert, key } of [byCommonName, byAlternative]) {
    assert.match(await firstFrame(address.url, "lab-1", { ca, cert, key }), /"type":"welcome"/);
    const refused = await firstFrame(address.url, "lab-2", { ca, cert, key });
    assert.match(refused, /"type":"refused","code":"forbidden".*does not name the cell lab-2/);
  }
});

test("S5: one connection too many over TLS is closed, and does not stay", async (t) => {
  const { authority, server } = tlsFolder(t);
  const { address } = await serve(t, { ...server, connectionsMax: 1 });
  const options: ConnectionOptions = { host: "127.0.0.1", port: address.port, ca: authority.cert };
  const first = connect(options);
  await once(first, "secureConnect");
  const second = connect(options);
  second.on("error", () => undefined);
  await new Promise((resolve) => second.once("close", resolve));
  first.destroy();
  const ask = () => secureGet(address.url, "/healthz", { ca: authority.cert }).catch(() => null);
  assert.equal((await until(ask, "there is room again")).status, 200);
});

type CellTls = { readonly ca: string; readonly cert?: string; readonly key?: string };

function cellSocket(url: string, tls: CellTls): WebSocket {
  return new WebSocket(`${url.replace("http", "ws")}/v1/cells/connect`, tls);
}

function cellAnswer(url: string, tls: CellTls): Promise<{ readonly status: number; readonly error?: string }> {
  return new Promise((resolve, reject) => {
    const socket = cellSocket(url, tls);
    socket.on("open", () => {
      socket.terminate();
      resolve({ status: 101 });
    });
    socket.on("unexpected-response", (_request, response) => {
      let text = "";
      response.on("data", (part: Buffer) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, ...(JSON.parse(text) as object) }));
    });
    socket.on("error", reject);
  });
}

async function firstFrame(url: string, cell: string, tls: CellTls): Promise<string> {
  const socket = cellSocket(url, tls);
  await once(socket, "open");
  const session = "0b2f8a0e-7d3f-4c3e-8a7e-000000000000";
  socket.send(JSON.stringify({ type: "hello", cell, session, version: "1", inventory: [], bindings: [] }));
  const [frame] = await once(socket, "message");
  socket.terminate();
  return String(frame);
}
