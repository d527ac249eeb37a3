import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { request as ask, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readProcess } from "./processes.ts";
import { atEnd, eventually, scratch, startHttp, startTcp } from "./testing/test-cell.ts";

interface Child {
  readonly child: ChildProcess;
  readonly coordinate: string;
  readonly token: string;
  readonly expiresAt: number;
}

async function startCell(resource: string, driver: string, options: object, ttlMs: number): Promise<Child> {
  const args = [
    join(import.meta.dirname, "testing/cell.child.ts"),
    resource,
    driver,
    JSON.stringify(options),
    String(ttlMs),
  ];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  atEnd(() => child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child.stdout })) {
    return { child, ...(JSON.parse(line) as Omit<Child, "child">) };
  }
  throw new Error("The cell has said nothing.");
}

/** Stops it, and comes back when the system says that it stands still. */
async function stop({ child }: Child): Promise<void> {
  child.kill("SIGSTOP");
  await eventually(() => /\) T /.test(readFileSync(`/proc/${child.pid}/stat`, "utf8")));
}

test("G11: a cell that was stopped over a lease's end passes nothing of a stream on that it had not in hand", async () => {
  const service = await startHttp((_request, response) => {
    const timer = setInterval(() => response.write("x".repeat(1_000)), 1);
    response.on("close", () => clearInterval(timer));
  });
  const cell = await startCell("API:/a", "http", { target: `http://${service.address}` }, 3_000);
  const headers = { authorization: `Bearer ${cell.token}` };
  const request = ask(`${cell.coordinate}/`, { headers });
  request.on("error", () => {});
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  let bytes = 0;
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const ended = new Promise<string | undefined>((resolve) => {
    answer.on("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    answer.on("end", () => resolve("end"));
  });
  await eventually(() => bytes > 0);
  await stop(cell);
  await eventually(() => Date.now() > cell.expiresAt);
  // What the cell had passed on before is still on its way to us.
  await sleep(100);
  const before = bytes;
  cell.child.kill("SIGCONT");
  assert.equal(await ended, "ECONNRESET");
  // A process can be stopped between its look at the lease and the system's write: that one piece is all that may come.
  assert.ok(bytes - before <= 65_536, `${bytes - before} bytes came after the lease's end`);
  const late = await fetch(cell.coordinate, { headers });
  assert.equal(late.status, 410);
});

test("G11: what was sent to a stopped cell does not reach the service when the lease is over", async () => {
  let reached = "";
  const service = await startTcp((socket) => {
    socket.on("data", (chunk) => {
      reached += String(chunk);
    });
  });
  const cell = await startCell("DB:/a", "tcp", { target: service.address }, 3_000);
  const socket = connect(Number(new URL(cell.coordinate).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`${cell.token}\nbefore`);
  await eventually(() => reached === "before");
  await stop(cell);
  socket.write("after");
  await eventually(() => Date.now() > cell.expiresAt);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  cell.child.kill("SIGCONT");
  await closed;
  await sleep(50);
  assert.equal(reached, "before");
});

test("G6: with a cell that is killed goes every way through it", async () => {
  const service = await startTcp((socket) => socket.pipe(socket));
  const cell = await startCell("DB:/a", "tcp", { target: service.address }, 60_000);
  const port = Number(new URL(cell.coordinate).port);
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`${cell.token}\n`);
  await once(socket, "data");
  const closed = new Promise((resolve) => socket.on("close", resolve));
  cell.child.kill("SIGKILL");
  await closed;
  const again = connect(port, "127.0.0.1");
  const [error] = (await once(again, "error")) as [NodeJS.ErrnoException];
  // Which of the two depends on how far the system is with closing what the dead process had.
  assert.match(error.code ?? "", /^(ECONNREFUSED|ECONNRESET)$/);
});

/** Its stopped parent cannot notice that it has ended; so it may stay as a zombie. */
const isAlive = (pid: number): boolean => readProcess(pid) !== null;

async function startSleeper(ttlMs: number): Promise<Child & { readonly pid: number }> {
  const file = join(scratch, `pid-${ttlMs}`);
  const command = ["/bin/sh", "-c", `echo $$ > ${file}; exec sleep 1000`];
  const cell = await startCell(`BOX:/${ttlMs}`, "process", { command, grace_ms: 50 }, ttlMs);
  const read = (): number => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
  await eventually(() => read() > 0);
  assert.ok(isAlive(read()));
  return { ...cell, pid: read() };
}

test("G11: what a stopped cell has started ends with the lease, though the cell cannot end it", async () => {
  const cell = await startSleeper(3_000);
  await stop(cell);
  await eventually(() => !isAlive(cell.pid));
  assert.match(readFileSync(`/proc/${cell.child.pid}/stat`, "utf8"), /\) T /);
});

test("G6: what a killed cell has started ends with it, though the cell is not started again", async () => {
  const cell = await startSleeper(60_000);
  cell.child.kill("SIGKILL");
  await eventually(() => !isAlive(cell.pid));
});
