import assert from "node:assert/strict";
import { once } from "node:events";
import { request as ask, type ClientRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import type { CellLease } from "../binding.ts";
import type { Bound } from "../core.ts";
import {
  atEnd,
  eventually,
  makeCell,
  narrowed,
  newLease,
  renewed,
  startHttp,
  type TestCell,
} from "../testing/test-cell.ts";

const resource = "API:/svc";
const streams = new Set<() => void>();

/** Echoes what it was asked; under /stream it talks until it is left. */
const service = await startHttp((request, response) => {
  if (request.url === "/hang") return;
  if (request.url === "/flood") {
    const flood = (): void => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", flood);
    flood();
    return;
  }
  if (request.url === "/break") {
    response.writeHead(200, { "content-length": 100 });
    response.write("half");
    setTimeout(() => response.destroy(), 20);
    return;
  }
  if (request.url?.startsWith("/stream") === true) {
    response.write("begin\n");
    const timer = setInterval(() => response.write("more\n"), 5);
    const stop = (): void => clearInterval(timer);
    streams.add(stop);
    response.on("close", stop);
    return;
  }
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.setHeader("connection", "x-hop");
    response.setHeader("x-hop", "1");
    const { method, url, headers } = request;
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
});
atEnd(() => {
  for (const stop of streams) stop();
});

function makeHttpCell(options: object = {}): TestCell {
  const target = { target: `http://${service.address}`, ...options };
  return makeCell([{ resource, driver: "http", hardware: ["a100"], options: target }]);
}

async function boundTo(cell: TestCell, ttlMs?: number): Promise<Bound & { lease: CellLease }> {
  const lease = newLease(resource, ttlMs);
  return { lease, ...(await cell.core.bind(lease)) };
}

const bearer = (token: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${token}` },
});

async function codeOf(response: Response | Promise<Response>): Promise<string> {
  const { status } = await response;
  const body = (await (await response).json()) as { error?: string };
  return `${status} ${body.error ?? "ok"}`;
}

interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string> & { readonly authorization?: string };
  readonly body: string;
}

test("G5: a request with the lease's token reaches the service, which sees lease and fence and never the token", async () => {
  const cell = makeHttpCell();
  const { lease, coordinate, token } = await boundTo(cell);
  const response = await fetch(`${coordinate}/a/b?x=1`, {
    method: "POST",
    body: "hello",
    headers: { authorization: `Bearer ${token}`, "leasehold-fence": "1", "x-own": "kept" },
  });
  const echo = (await response.json()) as Echo;
  assert.equal(response.status, 200);
  assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
  assert.equal(response.headers.get("x-hop"), null);
  assert.deepEqual([echo.method, echo.url, echo.body], ["POST", "/a/b?x=1", "hello"]);
  assert.equal(echo.headers["leasehold-fence"], String(lease.fence));
  assert.equal(echo.headers["leasehold-lease"], lease.id);
  assert.equal(echo.headers["x-own"], "kept");
  assert.equal(echo.headers.authorization, undefined);
  assert(!JSON.stringify(echo).includes("lht1."));
  const [binding] = cell.core.bindings();
  assert.equal(binding?.bytes.in, 5);
  assert((binding?.bytes.out ?? 0) > 100);
});

test("a service that needs Authorization for itself gets it, with the token in a header of its own", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const headers = { authorization: "Basic eDp5", "leasehold-token": token };
  const echo = (await (await fetch(coordinate, { headers })).json()) as Echo;
  assert.equal(echo.headers.authorization, "Basic eDp5");
  assert.equal(echo.headers["leasehold-token"], undefined);
});

test("G5, G9: without a token, with a wrong or a foreign one, the answer is a typed failure", async () => {
  const cell = makeHttpCell();
  const other = makeCell([
    { resource: "API:/other", driver: "http", options: { target: `http://${service.address}` } },
  ]);
  const { coordinate, token } = await boundTo(cell);
  const foreign = await other.core.bind(newLease("API:/other"));
  assert.equal(await codeOf(fetch(coordinate)), "401 token_invalid");
  assert.equal(await codeOf(fetch(coordinate, bearer(`${token.slice(0, -2)}AA`))), "401 token_invalid");
  assert.equal(await codeOf(fetch(coordinate, bearer(foreign.token))), "401 token_invalid");
  assert.equal(await codeOf(fetch(coordinate, { headers: { authorization: "Basic eDp5" } })), "401 token_invalid");
});

test("G4: a narrowed token reads but does not write, reaches one path, one label, one program", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const read = narrowed(token, { type: "operations", operations: ["read"] });
  assert.equal(await codeOf(fetch(coordinate, bearer(read))), "200 ok");
  assert.equal(await codeOf(fetch(coordinate, { method: "POST", ...bearer(read) })), "401 caveat_failed");
  const path = narrowed(token, { type: "path", path: "/a" });
  assert.equal(await codeOf(fetch(`${coordinate}/a/b`, bearer(path))), "200 ok");
  assert.equal(await codeOf(fetch(`${coordinate}/ab`, bearer(path))), "401 caveat_failed");
  assert.equal(await codeOf(fetch(`${coordinate}/a/%2e%2e/b`, bearer(path))), "401 caveat_failed");
  assert.equal(await codeOf(fetch(`${coordinate}/a/..%2fb`, bearer(path))), "403 path_not_allowed");
  assert.equal(
    await codeOf(fetch(coordinate, bearer(narrowed(token, { type: "hardware", hardware: "a100" })))),
    "200 ok",
  );
  assert.equal(
    await codeOf(fetch(coordinate, bearer(narrowed(token, { type: "hardware", hardware: "h100" })))),
    "401 caveat_failed",
  );
  const own = narrowed(token, { type: "program", program: process.execPath });
  assert.equal(
    await codeOf(fetch(coordinate, bearer(own))),
    process.platform === "linux" ? "200 ok" : "401 caveat_failed",
  );
  const others = narrowed(token, { type: "program", program: "/bin/true" });
  assert.equal(await codeOf(fetch(coordinate, bearer(others))), "401 caveat_failed");
});

test("G4: a budget of bytes holds over many requests and over further narrowing", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const limited = narrowed(token, { type: "bytes", bytesMax: 2_000 });
  let passed = 0;
  for (;;) {
    const again = narrowed(limited, { type: "expiry", expiresAt: Date.now() + 60_000 + passed });
    const text = await fetch(coordinate, bearer(again)).then(
      (response) => response.text(),
      () => "",
    );
    if (text === "" || text.includes("caveat_failed")) break;
    passed++;
  }
  assert(passed > 1 && passed < 20, `${passed}`);
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "200 ok");
});

/** A streaming request of which every byte is noted. */
async function follow(
  url: string,
  token: string,
): Promise<{ request: ClientRequest; answer: IncomingMessage; ended: Promise<string>; last: () => number }> {
  const request = ask(url, bearer(token));
  request.on("error", () => {});
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  let bytes = 0;
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const ended = new Promise<string>((resolve) => {
    answer.on("end", () => resolve("end"));
    answer.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
  });
  return { request, answer, ended, last: () => bytes };
}

test("G6: a stream is cut when its lease expires, and a new request is refused", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell, 1_500);
  const stream = await follow(`${coordinate}/stream`, token);
  assert.equal(await stream.ended, "ECONNRESET");
  assert(Date.now() >= lease.expiresAt - 5);
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "410 lease_expired");
  await eventually(() => cell.events.length > 0);
  assert.deepEqual(cell.events, [{ type: "ended", lease, code: "lease_expired", failure: null }]);
  const bytes = stream.last();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(stream.last(), bytes);
});

test("G6, G9: what waits for its answer when the lease is revoked gets the typed failure", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell);
  const waiting = fetch(`${coordinate}/hang`, bearer(token));
  await eventually(() => cell.core.bindings()[0]?.inFlight === 1);
  await cell.core.teardown(lease.id);
  assert.equal(await codeOf(waiting), "410 lease_revoked");
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "410 lease_revoked");
  assert.deepEqual(cell.events, [], "ends that the control plane asked for are not reported");
});

test("G8: a renewal makes the old token stale, and leaves open connections open beyond the old end", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell, 2_000);
  const stream = await follow(`${coordinate}/stream`, token);
  const next = renewed(lease);
  const fresh = await cell.core.renew(next);
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "401 stale_token");
  assert.equal(await codeOf(fetch(coordinate, bearer(fresh.token))), "200 ok");
  await eventually(() => Date.now() > lease.expiresAt + 20);
  const before = stream.last();
  await eventually(() => stream.last() > before);
  await cell.core.teardown(lease.id, "lease_released");
  assert.equal(await stream.ended, "ECONNRESET");
  assert.equal(await codeOf(fetch(coordinate, bearer(fresh.token))), "410 lease_released");
});

test("G4: a stream under a narrowed token ends at the token's own end", async () => {
  const cell = makeHttpCell();
  const { coordinate, token } = await boundTo(cell);
  const short = narrowed(token, { type: "expiry", expiresAt: Date.now() + 1_500 });
  const stream = await follow(`${coordinate}/stream`, short);
  assert.equal(await stream.ended, "ECONNRESET");
  assert.equal(await codeOf(fetch(coordinate, bearer(short))), "401 caveat_failed");
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "200 ok");
});

test("a large body goes through whole in both directions, and a body that is cut in the middle is not passed on as complete", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const body = "x".repeat(3_000_000);
  const echo = (await (await fetch(coordinate, { method: "PUT", body, ...bearer(token) })).json()) as Echo;
  assert.equal(echo.body.length, body.length);
  await assert.rejects(fetch(`${coordinate}/break`, bearer(token)).then((response) => response.text()));
});

test("G6: a client that has stopped reading cannot put off the end", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell);
  const request = ask(`${coordinate}/flood`, bearer(token));
  request.on("error", () => {});
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.on("error", () => {});
  await eventually(() => (cell.core.bindings()[0]?.bytes.out ?? 0) > 300_000);
  const closed = new Promise((resolve) => request.on("close", resolve));
  await cell.core.teardown(lease.id);
  const sent = cell.core.bindings().length;
  assert.equal(sent, 0);
  answer.resume();
  await closed;
});

test("G6: clients that leave at the very moment of the end do not keep the binding", async () => {
  for (let round = 0; round < 10; round++) {
    const cell = makeHttpCell();
    const { coordinate, token, lease } = await boundTo(cell);
    const port = Number(new URL(coordinate).port);
    const sockets = Array.from({ length: 8 }, () => connect(port, "127.0.0.1"));
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.write(`GET /stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    }
    await Promise.all(sockets.map((socket) => once(socket, "data")));
    for (const socket of sockets) socket.end();
    for (let turn = 0; turn < round; turn++) await new Promise(setImmediate);
    await cell.core.teardown(lease.id);
    for (const socket of sockets) socket.destroy();
  }
});

test("G6: an answer that waits for another on the same connection does not hold the binding when that goes", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell);
  const socket = connect(Number(new URL(coordinate).port), "127.0.0.1");
  const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  socket.write(`GET /hang ${head}GET /a ${head}GET /stream ${head}`);
  await eventually(() => cell.core.bindings()[0]?.inFlight === 3);
  socket.destroy();
  await eventually(() => cell.core.bindings()[0]?.inFlight === 0);
  await cell.core.teardown(lease.id);
});

test("G9: a service that is not there, or does not answer, is a typed failure; and a probe sees it", async () => {
  const gone = await startHttp(() => {});
  gone.server.close();
  const cell = makeCell([{ resource, driver: "http", options: { target: `http://${gone.address}` } }]);
  const { coordinate, token } = await boundTo(cell);
  assert.equal(await codeOf(fetch(coordinate, bearer(token))), "502 upstream_failed");
  assert.equal((await cell.core.probe(resource)).clean, false);
  const slow = await boundTo(makeHttpCell({ answer_ms: 50 }));
  assert.equal(await codeOf(fetch(`${slow.coordinate}/hang`, bearer(slow.token))), "504 upstream_timeout");
  assert.equal((await makeHttpCell().core.probe(resource)).clean, true);
});

test("malformed HTTP, and bodies that disagree about their length, do not get through", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const { port } = new URL(coordinate);
  const smuggled = `POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n`;
  for (const text of ["nonsense\r\n\r\n", smuggled]) {
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(text);
    const chunks: Buffer[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
    assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 400 [\s\S]*"error":"invalid_request"/);
  }
});
