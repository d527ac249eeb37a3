import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { resetSocket } from "./reset-socket.ts";
import { startTcp } from "./testing/test-cell.ts";

async function pair(): Promise<{ ours: Socket; theirs: Socket }> {
  const accepted: Socket[] = [];
  const { address, server } = await startTcp((socket) => accepted.push(socket));
  const theirs = connect(Number(address.split(":")[1]), "127.0.0.1");
  theirs.on("error", () => {});
  await Promise.all([once(server, "connection"), once(theirs, "connect")]);
  const [ours] = accepted;
  assert(ours !== undefined);
  return { ours, theirs };
}

test("G6: a connection is closed, whatever it was doing when it was reset", async () => {
  const doings: readonly ((ours: Socket, theirs: Socket) => unknown)[] = [
    () => {},
    (ours) => ours.write("x"),
    (ours) => ours.write("x".repeat(10_000_000)),
    (ours) => ours.end(),
    (ours) => ours.end("x"),
    (ours) => ours.end("x".repeat(10_000_000)),
    (_ours, theirs) => theirs.destroy(),
  ];
  for (const act of doings) {
    const { ours, theirs } = await pair();
    const closed = new Promise((resolve) => ours.on("close", resolve));
    act(ours, theirs);
    resetSocket(ours);
    resetSocket(ours);
    await closed;
    theirs.destroy();
  }
});

test("G6: a reader who has stopped reading gets nothing of what still waited for him", async () => {
  const { ours, theirs } = await pair();
  theirs.pause();
  ours.write("x".repeat(50_000_000));
  const closed = new Promise((resolve) => theirs.on("close", resolve));
  resetSocket(ours);
  let bytes = 0;
  theirs.on("data", (chunk) => {
    bytes += chunk.length;
  });
  theirs.resume();
  await closed;
  assert(bytes < 50_000_000);
});
