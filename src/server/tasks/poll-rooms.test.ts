import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReadyTask } from "../../kernel/kernel.ts";
import { type Room, Rooms, type Waiting } from "./poll-rooms.ts";

interface Poll extends Waiting {
  readonly room: Room<Poll>;
}

function ready(over: Partial<ReadyTask> = {}): ReadyTask {
  return { tenant: "default", taskType: "t", requires: [], lastWorker: null, ...over };
}

function createRooms() {
  const rooms = new Rooms<Poll>();
  const wait = (
    workerId: string,
    capabilities: readonly string[] = [],
    health = 1,
    types: readonly string[] | null = null,
  ): Poll => {
    const room = rooms.enter(capabilities, types);
    const poll = { workerId, room, health };
    rooms.wait(poll, room);
    return poll;
  };
  const wake = (over: Partial<ReadyTask> = {}): string | null => {
    const task = ready(over);
    const poll = rooms.find(task, rooms.roomsFor(task));
    if (poll === undefined) return null;
    rooms.take(poll, poll.room);
    rooms.leave(poll.room);
    return poll.workerId;
  };
  return { rooms, wait, wake };
}

test("first come, first served, among workers that can do it", () => {
  const { rooms, wait, wake } = createRooms();
  wait("plain.1");
  wait("gpu.1", ["gpu", "python"]);
  wait("gpu.2", ["python", "gpu"]);
  assert.deepEqual(
    [wake({ requires: ["gpu"] }), wake({ requires: ["gpu"] }), wake({ requires: ["gpu"] })],
    ["gpu.1", "gpu.2", null],
  );
  assert.equal(wake(), "plain.1");
  assert.ok(rooms.isUnused);
});

test("T7, T8: who had the task is asked first, then the healthier, whatever room they wait in", () => {
  const { wait, wake } = createRooms();
  wait("worker.weak", [], 0.4);
  wait("worker.well", ["x"], 0.95);
  wait("worker.had-it", [], 0.1);
  assert.equal(wake({ lastWorker: "worker.had-it" }), "worker.had-it");
  assert.deepEqual([wake(), wake(), wake()], ["worker.well", "worker.weak", null]);
});

test("who had the task is not asked if it cannot do it any more", () => {
  const { wait, wake } = createRooms();
  wait("worker.changed", ["python"]);
  assert.equal(wake({ requires: ["gpu"], lastWorker: "worker.changed" }), null);
});

test("rooms that open later are found too, and closed ones are gone", () => {
  const { rooms, wait, wake } = createRooms();
  assert.equal(wake({ requires: ["gpu"] }), null);
  wait("gpu.1", ["gpu"]);
  assert.equal(rooms.roomsFor(ready({ requires: ["gpu"] })).length, 1);
  assert.equal(wake({ requires: ["gpu"] }), "gpu.1");
  assert.deepEqual([rooms.roomsFor(ready({ requires: ["gpu"] })).length, rooms.size], [0, 0]);
});

test("who accepts some types only is woken for no others, however many wait", () => {
  const { wait, wake } = createRooms();
  for (const number of [1, 2, 3]) wait(`other.${number}`, [], 1, ["a", "b"]);
  wait("worker.1", [], 1, ["c", "t"]);
  assert.deepEqual([wake(), wake(), wake({ taskType: "b" })], ["worker.1", null, "other.1"]);
});
