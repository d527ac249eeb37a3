import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { CellLease } from "../binding.ts";
import type { Bound } from "../core.ts";
import { eventually, makeCell, narrowed, newLease, renewed, startTcp, type TestCell } from "../testing/test-cell.ts";

const resource = "DB:/main";
const echo = await startTcp((socket) => {
  socket.write("welcome\n");
  socket.pipe(socket);
});

function makeTcpCell(options: object = {}): TestCell {
  return makeCell([{ resource, driver: "tcp", options: { target: echo.address, ...options } }]);
}

async function boundTo(cell: TestCell, ttlMs?: number): Promise<Bound & { lease: CellLease; port: number }> {
  const lease = newLease(resource, ttlMs);
  const bound = await cell.core.bind(lease);
  return { lease, port: Number(new URL(bound.coordinate).port), ...bound };
}

interface Line {
  readonly socket: Socket;
  readonly received: () => string;
  readonly ended: Promise<string>;
}

function open(port: number, first: string): Line {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  const ended = new Promise<string>((resolve) => {
    socket.on("end", () => resolve("end"));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
  });
  socket.write(first);
  return { socket, received: () => text, ended };
}

async function refusal(port: number, first: string): Promise<string> {
  const line = open(port, first);
  await line.ended;
  line.socket.destroy();
  const { error } = JSON.parse(line.received()) as { error: string };
  return error;
}

test("G5: after the token's line all bytes pass as they are, in both directions, with what was sent along", async () => {
  const cell = makeTcpCell();
  const { port, token } = await boundTo(cell);
  const line = open(port, `${token}\nearly`);
  await eventually(() => line.received() === "ok\nwelcome\nearly");
  const bytes = "x".repeat(2_000_000);
  line.socket.end(bytes);
  assert.equal(await line.ended, "end");
  assert.equal(line.received(), `ok\nwelcome\nearly${bytes}`);
  await eventually(() => cell.core.bindings()[0]?.inFlight === 0);
  assert.equal(cell.core.bindings()[0]?.bytes.in, bytes.length + 5);
});

test("a token that comes in pieces is put together", async () => {
  const { port, token } = await boundTo(makeTcpCell());
  const line = open(port, token.slice(0, 20));
  await new Promise((resolve) => setTimeout(resolve, 20));
  line.socket.write(`${token.slice(20)}\r\n`);
  await eventually(() => line.received().startsWith("ok\n"));
  line.socket.destroy();
});

test("G9: a wrong, missing, endless or narrowed-away token gets one typed line and the end", async () => {
  const cell = makeTcpCell();
  const { port, token } = await boundTo(cell);
  assert.equal(await refusal(port, "hello\n"), "token_invalid");
  assert.equal(await refusal(port, "\n"), "token_invalid");
  assert.equal(await refusal(port, "A".repeat(20_000)), "token_invalid");
  assert.equal(
    await refusal(port, `${narrowed(token, { type: "operations", operations: ["read"] })}\n`),
    "caveat_failed",
  );
  const other = narrowed(token, { type: "program", program: "/bin/true" });
  assert.equal(await refusal(port, `${other}\n`), "caveat_failed");
  assert.equal(cell.core.bindings()[0]?.bytes.in, 0);
});

test("G6: connections are cut when the lease expires, in the middle of a transfer", async () => {
  const cell = makeTcpCell();
  const { port, token, lease } = await boundTo(cell, 1_500);
  const line = open(port, `${token}\n`);
  await eventually(() => line.received().startsWith("ok\n"));
  const chatter = setInterval(() => line.socket.writable && line.socket.write("tick\n"), 2);
  assert.equal(await line.ended, "ECONNRESET");
  clearInterval(chatter);
  assert(Date.now() >= lease.expiresAt - 5);
  assert.equal(await refusal(port, `${token}\n`), "lease_expired");
  assert.equal(cell.core.bindings().length, 0);
});

test("G8: a connection outlives a renewal; the old token opens no new one", async () => {
  const cell = makeTcpCell();
  const { port, token, lease } = await boundTo(cell, 1_500);
  const line = open(port, `${token}\n`);
  await eventually(() => line.received().startsWith("ok\n"));
  await cell.core.renew(renewed(lease));
  assert.equal(await refusal(port, `${token}\n`), "stale_token");
  await eventually(() => Date.now() > lease.expiresAt + 20);
  line.socket.write("still here");
  await eventually(() => line.received().endsWith("still here"));
  await cell.core.teardown(lease.id, "lease_released");
  assert.equal(await line.ended, "ECONNRESET");
});

test("G4: a budget of bytes cuts the connection, and no byte beyond it reaches the service", async () => {
  const cell = makeTcpCell();
  const { port, token } = await boundTo(cell);
  const limited = narrowed(token, { type: "bytes", bytesMax: 100 });
  const line = open(port, `${limited}\n`);
  await eventually(() => line.received().startsWith("ok\n"));
  line.socket.write("y".repeat(500));
  await line.ended;
  assert(!line.received().includes("y"));
  assert((cell.core.bindings()[0]?.bytes.in ?? 999) <= 100);
});

test("G6: a client that has stopped reading cannot put off the end", async () => {
  const flood = await startTcp((socket) => {
    const write = (): void => {
      while (!socket.destroyed && socket.write("x".repeat(65_536)));
    };
    socket.on("drain", write);
    write();
  });
  const cell = makeTcpCell({ target: flood.address });
  const { port, token, lease } = await boundTo(cell);
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`${token}\n`);
  await eventually(() => (cell.core.bindings()[0]?.bytes.out ?? 0) > 300_000);
  await cell.core.teardown(lease.id);
  assert.equal(cell.core.bindings().length, 0);
  socket.destroy();
});

test("G9: a service that is not there is a typed line", async () => {
  const gone = await startTcp(() => {});
  gone.server.close();
  await once(gone.server, "close");
  const cell = makeTcpCell({ target: gone.address });
  const { port, token } = await boundTo(cell);
  assert.equal(await refusal(port, `${token}\n`), "upstream_failed");
  assert.equal((await cell.core.probe(resource)).clean, false);
});

test("a port that is taken is one line about that resource, and the others are there", async () => {
  const cell = makeCell([
    { resource: "DB:/taken", driver: "tcp", options: { target: echo.address, listen: echo.address } },
    { resource, driver: "tcp", options: { target: echo.address } },
  ]);
  const faults = await cell.core.start();
  assert.equal(faults.length, 1);
  assert.match(faults[0] ?? "", /^DB:\/taken cannot be used: .*EADDRINUSE/);
  assert.deepEqual(
    cell.core.inventory().map(({ ready }) => ready),
    [false, true],
  );
  await assert.rejects(cell.core.bind(newLease("DB:/taken")), { code: "cell_not_ready" });
  const { port, token } = await boundTo(cell);
  const line = open(port, `${token}\n`);
  await eventually(() => line.received().startsWith("ok\n"));
  line.socket.destroy();
});
