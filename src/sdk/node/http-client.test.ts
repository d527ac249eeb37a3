import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { exchange, WireBroken, type WireReply } from "../transport.ts";
import { createNodeHttp } from "./http-client.ts";

/** A server that answers each request on a connection by hand, and a wire to it. */
async function serving(t: TestContext, answer: (socket: Socket, request: string, count: number) => void) {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      requests.push(String(bytes));
      answer(socket, String(bytes), requests.length);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const url = `http://127.0.0.1:${port}`;
  const headers = { authorization: "Bearer k" };
  const wire = createNodeHttp({ url, credentials: { secret: "k", tenant: null }, fetch: null, tls: null, headers });
  const call = (signal = new AbortController().signal): Promise<WireReply> =>
    exchange(wire, "release_lease", { lease_id: "lse_1", version: "ü" }, signal);
  return { call, requests, sockets, wire };
}

const body = '{"id":"lse_1","word":"grün €"}';
const parsed = JSON.parse(body) as unknown;
const length = Buffer.byteLength(body);

/** Answers that all say the same. */
const forms: Readonly<Record<string, string>> = {
  "a length": `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${body}`,
  "chunks, with an extension and trailers": `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\n${body.slice(0, 5)}\r\n${(length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\nx-trailer: 1\r\n\r\n`,
  "something before it": `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${body}`,
};

for (const [name, text] of Object.entries(forms)) {
  test(`an answer with ${name} is read, whole or byte by byte, and its connection is used again`, async (t) => {
    const { call, requests, sockets } = await serving(t, async (socket, _request, count) => {
      if (count === 1) return void socket.write(text);
      for (const byte of Buffer.from(text)) {
        socket.write(Buffer.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    for (let count = 0; count < 2; count++) assert.deepEqual(await call(), { status: 200, body: parsed });
    assert.equal(sockets.size, 1);
    const [first = ""] = requests;
    assert.match(
      first,
      /^POST \/v1\/leases\/lse_1\/release HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\nauthorization: Bearer k\r\n/,
    );
    assert.match(first, /content-length: 16\r\n\r\n\{"version":"ü"\}$/);
  });
}

test("an answer without a length ends with its connection, and Retry-After is passed on", async (t) => {
  const { call, sockets } = await serving(t, (socket) => {
    socket.end('HTTP/1.1 503 Busy\r\nretry-after: 2\r\n\r\n{"error":"x"}');
  });
  assert.deepEqual(await call(), { status: 503, body: { error: "x" }, retryAfterMs: 2_000 });
  await call();
  assert.equal(sockets.size, 2);
});

test("a connection that the server closes, or says to close, is not used again", async (t) => {
  const { call, sockets } = await serving(t, (socket, _request, count) => {
    socket.write(`HTTP/1.1 204 No Content\r\n${count === 1 ? "connection: close\r\n" : ""}\r\n`);
    if (count === 2) socket.end();
  });
  for (let count = 0; count < 3; count++) {
    assert.equal((await call()).status, 204);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(sockets.size, 3);
});

for (const [name, text] of [
  ["not HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["with two kinds of length", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}"],
  ["with two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"],
  ["with a bad chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"],
] as const) {
  test(`G14: an answer ${name} is refused, and what was asked may have been done`, async (t) => {
    const { call } = await serving(t, (socket) => void socket.write(text));
    await assert.rejects(call(), (error) => error instanceof WireBroken && error.mayHaveActed);
  });
}

test("G14: what comes unasked, or after an answer, is never the answer to the next call", async (t) => {
  const { call, sockets } = await serving(t, (socket, _request, count) => {
    const answer = (n: number): string => `HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${n}`;
    socket.write(count === 1 ? answer(1) + answer(7) : answer(count));
  });
  assert.equal((await call()).body, 1);
  assert.equal((await call()).body, 2);
  assert.equal(sockets.size, 2);
});

test("a call that is given up closes its connection, so that the server can drop what it holds", async (t) => {
  const closed = Promise.withResolvers<void>();
  const giving = new AbortController();
  const { call } = await serving(t, (socket) => {
    socket.on("close", () => closed.resolve());
    giving.abort();
  });
  await assert.rejects(call(giving.signal), WireBroken);
  await closed.promise;
});

test("of a server that is not there it is certain that it did nothing", async () => {
  const credentials = { secret: null, tenant: null };
  const wire = createNodeHttp({ url: "http://127.0.0.1:1", credentials, fetch: null, tls: null, headers: {} });
  const call = exchange(wire, "healthz", {}, new AbortController().signal);
  await assert.rejects(call, (error) => error instanceof WireBroken && !error.mayHaveActed);
});
