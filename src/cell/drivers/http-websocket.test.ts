/** Upgrades through the http gateway: they pass both ways, and end with the code of whatever ends them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { CellLease } from "../binding.ts";
import type { Bound } from "../core.ts";
import { exchange } from "../testing/raw-http.ts";
import { atEnd, eventually, makeCell, narrowed, newLease, startHttp, type TestCell } from "../testing/test-cell.ts";

const resource = "API:/svc";
const service = await startHttp((_request, response) => response.end());
const sockets = new WebSocketServer({ server: service.server, path: "/socket" });
sockets.on("connection", (socket, { url, socket: raw }) => {
  socket.on("message", (data) => socket.send(String(data)));
  // Begins a frame of five bytes, and sends two of them.
  if (url === "/socket?half") raw.write(Buffer.from([0x82, 5, 1, 2]));
});
atEnd(() => {
  for (const client of sockets.clients) client.terminate();
});

function makeHttpCell(): TestCell {
  return makeCell([{ resource, driver: "http", options: { target: `http://${service.address}` } }]);
}

async function boundTo(cell: TestCell, ttlMs?: number): Promise<Bound & { lease: CellLease }> {
  const lease = newLease(resource, ttlMs);
  return { lease, ...(await cell.core.bind(lease)) };
}

const bearer = (token: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${token}` },
});

test("G6, G9: a WebSocket passes both ways, and is closed with the code of the lease's end", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell);
  const url = `${coordinate.replace("http", "ws")}/socket`;
  const socket = new WebSocket(url, bearer(token));
  await once(socket, "open");
  socket.send("hello");
  const [data] = (await once(socket, "message")) as [Buffer];
  assert.equal(String(data), "hello");
  const closed = once(socket, "close");
  socket.on("error", () => {});
  await cell.core.teardown(lease.id);
  const [code, reason] = (await closed) as [number, Buffer];
  assert.deepEqual([code, String(reason)], [4410, "lease_revoked"]);
  const refused = new WebSocket(url, bearer(token));
  const [, answer] = (await once(refused, "unexpected-response")) as [unknown, IncomingMessage];
  assert.equal(answer.statusCode, 410);
  refused.on("error", () => {});
  refused.terminate();
  await eventually(() => sockets.clients.size === 0);
});

test("G6: a WebSocket is closed with the code of whatever ends it, and reset in the middle of a frame", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell, 3_000);
  const open = async (shown: string, path = "/socket"): Promise<WebSocket> => {
    const socket = new WebSocket(`${coordinate.replace("http", "ws")}${path}`, bearer(shown));
    socket.on("error", () => {});
    await once(socket, "open");
    return socket;
  };
  const closeOf = async (socket: WebSocket): Promise<string> => {
    const [code, reason] = (await once(socket, "close")) as [number, Buffer];
    return `${code} ${String(reason)}`.trim();
  };
  const limited = await open(narrowed(token, { type: "bytes", bytesMax: 100 }));
  limited.send("x".repeat(200));
  assert.equal(await closeOf(limited), "4401 caveat_failed");
  const own = await open(token, "/socket?half");
  const ends = await Promise.all([closeOf(await open(token)), closeOf(own)]);
  assert(Date.now() >= lease.expiresAt - 5);
  assert.deepEqual(ends, ["4410 lease_expired", "1006"]);
  await eventually(() => cell.core.bindings().length === 0);
});

test("G6: a client that does not answer the close frame does not keep the lease's end waiting", async () => {
  const cell = makeHttpCell();
  const { coordinate, token, lease } = await boundTo(cell);
  const head = `GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n`;
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const isOpen = (answer: string): boolean => answer.includes("\r\n\r\n");
  const { socket } = await exchange(coordinate, `${head}${key}Authorization: Bearer ${token}\r\n\r\n`, isOpen);
  socket.pause();
  await cell.core.teardown(lease.id);
  assert.equal(cell.core.bindings().length, 0);
  socket.destroy();
});

test("G4: operations of a token that may only read do not include an upgrade", async () => {
  const { coordinate, token } = await boundTo(makeHttpCell());
  const read = narrowed(token, { type: "operations", operations: ["read"] });
  const socket = new WebSocket(`${coordinate.replace("http", "ws")}/socket`, bearer(read));
  socket.on("error", () => {});
  const [, answer] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  assert.equal(answer.statusCode, 401);
  socket.terminate();
});
