import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReadyTask } from "../../kernel/kernel.ts";
import { type PollGroup, PollGroups, type Waiting } from "./poll-groups.ts";

interface Poll extends Waiting {
  readonly group: PollGroup<Poll>;
}

function ready(over: Partial<ReadyTask> = {}): ReadyTask {
  return { tenant: "default", taskType: "t", requires: [], lastWorker: null, runningOn: null, ...over };
}

function createPollGroups() {
  const groups = new PollGroups<Poll>();
  const wait = (
    workerId: string,
    capabilities: readonly string[] = [],
    health = 1,
    types: readonly string[] | null = null,
  ): Poll => {
    const group = groups.enter(capabilities, types);
    const poll = { workerId, group, health };
    groups.wait(poll, group);
    return poll;
  };
  const wake = (over: Partial<ReadyTask> = {}): string | null => {
    const task = ready(over);
    const poll = groups.find(task, groups.groupsFor(task));
    if (poll === undefined) return null;
    groups.take(poll, poll.group);
    groups.leave(poll.group);
    return poll.workerId;
  };
  return { groups, wait, wake };
}

test("first come, first served, among workers that can do it", () => {
  const { groups, wait, wake } = createPollGroups();
  wait("plain.1");
  wait("gpu.1", ["gpu", "python"]);
  wait("gpu.2", ["python", "gpu"]);
  assert.deepEqual(
    [wake({ requires: ["gpu"] }), wake({ requires: ["gpu"] }), wake({ requires: ["gpu"] })],
    ["gpu.1", "gpu.2", null],
  );
  assert.equal(wake(), "plain.1");
  assert.ok(groups.isUnused);
});

test("T7, T8: who had the task is asked first, then the healthier, whatever group they wait in", () => {
  const { wait, wake } = createPollGroups();
  wait("worker.weak", [], 0.4);
  wait("worker.well", ["x"], 0.95);
  wait("worker.had-it", [], 0.1);
  assert.equal(wake({ lastWorker: "worker.had-it" }), "worker.had-it");
  assert.deepEqual([wake(), wake(), wake()], ["worker.well", "worker.weak", null]);
});

test("who had the task is not asked if it cannot do it any more", () => {
  const { wait, wake } = createPollGroups();
  wait("worker.changed", ["python"]);
  assert.equal(wake({ requires: ["gpu"], lastWorker: "worker.changed" }), null);
});

test("groups that open later are found too, and closed ones are gone", () => {
  const { groups, wait, wake } = createPollGroups();
  assert.equal(wake({ requires: ["gpu"] }), null);
  wait("gpu.1", ["gpu"]);
  assert.equal(groups.groupsFor(ready({ requires: ["gpu"] })).length, 1);
  assert.equal(wake({ requires: ["gpu"] }), "gpu.1");
  assert.deepEqual([groups.groupsFor(ready({ requires: ["gpu"] })).length, groups.size], [0, 0]);
});

test("who accepts some types only is woken for no others, however many wait", () => {
  const { wait, wake } = createPollGroups();
  for (const number of [1, 2, 3]) wait(`other.${number}`, [], 1, ["a", "b"]);
  wait("worker.1", [], 1, ["c", "t"]);
  assert.deepEqual([wake(), wake(), wake({ taskType: "b" })], ["worker.1", null, "other.1"]);
});

test("S4: tasks of any number of types and requirements leave a bounded memory of who can do them", () => {
  const { groups, wait, wake } = createPollGroups();
  wait("w.1", ["gpu"]);
  for (let n = 0; n < 10_000; n++) {
    groups.groupsFor(ready({ taskType: `type.${n}`, requires: n % 2 === 0 ? [] : [`tag.${n}`] }));
    assert.ok(groups.remembered <= 1_024);
  }
  assert.equal(wake({ taskType: "type.1", requires: ["gpu"] }), "w.1", "what was forgotten is found again");
});
