import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { batch, row } from "../store/contract-fixture.ts";
import { createMemoryDisk, createMemoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import {
  CountedLease,
  Leadership,
  type LeadershipEvent,
  type LeadershipState,
  leadershipTable,
  type Term,
} from "./leadership.ts";

const states = Object.keys(leadershipTable) as LeadershipState[];
const events = Object.keys(leadershipTable.standby) as LeadershipEvent[];
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe("leadership: the table", () => {
  test("every state has an answer to every event", () => {
    for (const state of states) assert.deepEqual(Object.keys(leadershipTable[state]).sort(), [...events].sort(), state);
  });

  test("only a loaded winner of an election leads, and only a standby campaigns", () => {
    const into = (target: LeadershipState): string[] =>
      states.flatMap((state) =>
        events
          .filter((event) => leadershipTable[state][event] === target && state !== target)
          .map((event) => `${state} ${event}`),
      );
    assert.deepEqual(into("leading"), ["loading loaded"]);
    assert.deepEqual(into("loading"), ["campaigning won"]);
    assert.deepEqual(into("campaigning"), ["standby campaign"]);
    assert.deepEqual(into("standby"), ["campaigning lost", "stepping_down stepped_down"]);
  });

  test("whatever happens to a leader, it steps down before it is a standby; closed is for good", () => {
    for (const event of ["failed", "deposed", "expired", "resign"] as const) {
      assert.equal(leadershipTable.leading[event], "stepping_down");
      assert.equal(leadershipTable.loading[event], "stepping_down");
    }
    for (const state of states) assert.equal(leadershipTable[state].close, "closed");
    for (const event of events) assert.ok([null, "closed"].includes(leadershipTable.closed[event]));
  });
});

/** Waits for what it needs. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Terms that only note how they ended. */
function servers(disk = createMemoryDisk(), mayLead = true) {
  const ends: string[] = [];
  const overs: ((cause: unknown) => void)[] = [];
  const begin = async (store: Store): Promise<Term> => {
    const over = Promise.withResolvers<unknown>();
    overs.push(over.resolve);
    const end = (how: string) => async (): Promise<void> => {
      ends.push(how);
      await store.close();
    };
    return { over: over.promise, now: () => 1, close: end("closed"), abort: end("aborted") };
  };
  const make = (): Leadership =>
    new Leadership({ createStore: () => createMemoryStore(disk), begin, log: quiet, mayLead, pollMs: 5 });
  return { make, ends, overs, disk };
}

describe("leadership: terms", () => {
  test("one leads, the other stands by, and leads when the first has closed", async () => {
    const { make, ends } = servers();
    const [one, two] = [make(), make()];
    await one.start();
    await two.start();
    assert.deepEqual([one.state, two.state], ["leading", "standby"]);
    assert.equal(two.leader?.epoch, 1);
    await one.close();
    await until(() => two.state === "leading");
    assert.deepEqual([one.state, two.leader?.epoch, ends], ["closed", 2, ["closed"]]);
    await two.close();
  });

  test("a term whose engine dropped its memory is aborted, and the next one has another epoch", async () => {
    const { make, ends, overs } = servers();
    const one = make();
    await one.start();
    overs[0]?.(new Error("a commit failed"));
    await until(() => ends.length === 1 && one.state === "leading");
    assert.deepEqual([one.leader?.epoch, ends], [2, ["aborted"]]);
    await one.close();
  });

  test("one that resigns lets another go first", async () => {
    const { make, ends } = servers();
    const [one, two] = [make(), make()];
    await one.start();
    await two.start();
    one.resign();
    await until(() => two.state === "leading");
    assert.deepEqual([one.state, ends], ["standby", ["closed"]]);
    await Promise.all([one.close(), two.close()]);
  });

  test("one that may not lead never campaigns", async () => {
    const { make } = servers(createMemoryDisk(), false);
    const one = make();
    await one.start();
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.deepEqual([one.state, one.leader], ["standby", null]);
    await one.close();
  });
});

describe("leadership: the lease", () => {
  /** A store whose renewals the test answers. */
  const storeWith = (renew: Store["renew"]): Store => Object.assign(createMemoryStore(), { renew });

  test("it is counted from before the request, and ends early by a margin, though nothing answers", async () => {
    const askedAt = performance.now() - 500;
    const lease = new CountedLease(
      { askedAt, lastsMs: 600 },
      storeWith(() => new Promise(() => undefined)),
    );
    assert.equal(lease.isGood(), false, "500 of 600 ms are over, and 100 are the margin");
    assert.equal(await lease.over, "expired");
  });

  test("a renewal extends it from when it was asked for; without one it ends", async () => {
    let renewals = 0;
    const lease = new CountedLease(
      { askedAt: performance.now(), lastsMs: 300 },
      storeWith(async () => {
        if (++renewals > 3) throw new Error("the network failed");
        return { askedAt: performance.now(), lastsMs: 300 };
      }),
    );
    assert.equal(lease.isGood(), true);
    assert.equal(await lease.over, "expired");
    assert.ok(renewals > 3);
    assert.equal(lease.isGood(), false);
  });

  test("a deposed leader's lease is over at once", async () => {
    const disk = createMemoryDisk();
    const store = createMemoryStore(disk);
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1)] }));
    disk.epoch++;
    const lease = new CountedLease({ askedAt: performance.now(), lastsMs: 3_000 }, store);
    assert.equal(await lease.over, "deposed");
    assert.equal(lease.isGood(), false);
  });
});
